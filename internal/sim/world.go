package sim

import (
	"container/heap"
	"math/rand"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// instant is nanoseconds of true time since the beginning of a world, which nobody in it
// can read.
type instant = time.Duration

// event is something that happens.
type event struct {
	at  instant
	seq int64 // of two at the same instant, the one planned first happens first
	do  func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	e := (*q)[len(*q)-1]
	(*q)[len(*q)-1].do = nil
	*q = (*q)[:len(*q)-1]
	return e
}

// world is one run of a Setup.
type world struct {
	setup  *Setup
	rng    *rand.Rand
	now    instant
	seq    int64
	queue  events
	clocks []clockFault
	nodes  []*node
	store  *store
	book   book
	lost   int // calls whose caller does not know what came of them
}

// clockFault is how an instance's or the store's clock differs from true time.
type clockFault struct {
	offset, base time.Duration // of the wall clock, of the monotonic one
	ppm          int64
	steps        []Step // of the wall clock
}

func (c *clockFault) mono(t instant) algo.Mono {
	return algo.Mono(t + t/1_000_000*time.Duration(c.ppm) + c.base)
}

func (c *clockFault) wall(t instant) time.Duration {
	w := t + t/1_000_000*time.Duration(c.ppm) + c.offset
	for _, s := range c.steps {
		if t >= s.At {
			w += s.By
		}
	}
	return w
}

// at plans something.
func (w *world) at(t instant, do func()) {
	w.seq++
	heap.Push(&w.queue, event{max(t, w.now), w.seq, do})
}

// on plans something that an instance does: not while it is paused, and never once it is
// dead.
func (w *world) on(n *node, t instant, do func()) {
	w.at(t, func() {
		switch until := w.paused(n.id); {
		case n.dead:
		case until > w.now:
			w.on(n, until, do)
		default:
			do()
		}
	})
}

func (w *world) paused(instance int) (until instant) {
	for _, p := range w.setup.Pauses {
		if p.Instance == instance && w.now >= p.At && w.now < p.At+p.For {
			until = max(until, p.At+p.For)
		}
	}
	return until
}

// when is the first true instant at which an instance's monotonic clock shows m.
func (w *world) when(n *node, m algo.Mono) instant {
	c := &w.clocks[n.id]
	d := instant(m - c.mono(w.now))
	t := w.now + max(0, d-d/1_000_000*time.Duration(c.ppm))
	for c.mono(t) < m {
		t += time.Microsecond
	}
	return t
}

func (w *world) mono(n *node) algo.Mono { return w.clocks[n.id].mono(w.now) }

func (w *world) oneWay() time.Duration {
	d := w.setup.Network.Latency
	if j := w.setup.Network.Jitter; j > 0 {
		d += time.Duration(w.rng.ExpFloat64() * float64(j))
	}
	return d
}

// call is one round trip: do runs at the store, back at the caller with what it returned,
// or with nil when the caller has waited long enough.
func (w *world) call(n *node, do func(*store) any, back func(reply any)) {
	n.trips++
	there, home := w.oneWay(), w.oneWay()
	fate := w.rng.Float64()
	lost, gone := fate < w.setup.Network.Loss, fate < w.setup.Network.Loss/2
	deadline := w.now + w.setup.Network.Timeout
	unanswered := func() {
		w.lost++
		w.on(n, deadline, func() { back(nil) })
	}
	if gone { // the request, not the reply
		unanswered()
		return
	}
	w.at(w.now+there, func() {
		if w.setup.Store.down(w.now) {
			unanswered()
			return
		}
		reply := do(w.store)
		if lost || w.now+home > deadline {
			unanswered()
			return
		}
		w.on(n, w.now+home, func() { back(reply) })
	})
}

// run lets requests arrive and everything else happen until the end, and then lets the
// instances say goodbye.
func (w *world) run(requests []request) {
	end := w.setup.For
	for i := range w.nodes {
		for _, c := range w.setup.Crashes {
			if c.Instance == i {
				w.at(c.At, func() { w.nodes[i].dead = true })
			}
		}
	}
	w.store.plan(w)
	next := 0
	for {
		if next < len(requests) && (len(w.queue) == 0 || requests[next].at <= w.queue[0].at) {
			r := &requests[next]
			next++
			w.now = r.at
			if n := w.route(r.instance, next); n != nil {
				r.instance = n.id
				w.arrive(n, r)
			}
			continue
		}
		if len(w.queue) == 0 || w.queue[0].at > end {
			break
		}
		w.step()
	}
	w.now = max(w.now, end)
	w.leave()
}

func (w *world) step() {
	e := heap.Pop(&w.queue).(event)
	w.now = e.at
	e.do()
}

func (w *world) arrive(n *node, r *request) {
	if until := w.paused(n.id); until > w.now {
		w.on(n, until, func() { n.arrive(r) })
		return
	}
	n.arrive(r)
}

// route is the instance a request goes to: the balancer moves those of a dead one.
func (w *world) route(instance, turn int) *node {
	for i := range w.nodes {
		n := w.nodes[(instance+i*(1+turn%max(1, len(w.nodes)-1)))%len(w.nodes)]
		if !n.dead {
			return n
		}
	}
	for _, n := range w.nodes {
		if !n.dead {
			return n
		}
	}
	return nil
}

// leave shuts the instances down in order, for at most a minute of virtual time.
func (w *world) leave() {
	for _, n := range w.nodes {
		if !n.dead {
			n.leave()
		}
	}
	for limit := w.now + time.Minute; len(w.queue) > 0 && w.queue[0].at < limit; {
		w.step()
	}
}
