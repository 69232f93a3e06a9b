package redisstore

import (
	"container/heap"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/escapement-io/escapement/algo"
)

var worldSeed = flag.Uint64("world", 0, "seed of the simulated worlds; 0 draws one")

// world is a deployment in simulated time: one store whose clock steps, one bucket of 10
// per second, callers with clocks of their own, delays, pauses and restarts.
type world struct {
	r       *rand.Rand
	now     int64 // true time, µs
	events  events
	plan    algo.Plan
	state   algo.State
	offset  int64 // of the store's clock
	record  lineRecord
	callers []*simCaller
	naive   bool // callers vouch for nothing: the store's clock is believed

	admitted []int64
	slow     float64
	pause    func(w *world) int64 // of the store, for a call
}

type simCaller struct {
	id, machine string
	w           *witness
	lost        int64 // time its clock did not count
	fresh       newcomer
	up          bool
	stopped     int64 // true time until which it is not scheduled
}

func (c *simCaller) local(now int64) int64 { return now - c.lost }

// lineRecord does what line.lua does.
type lineRecord struct {
	epoch, adj, line, at int64
	who                  string
	voter                string
	dev, voted           int64
}

func (l *lineRecord) read(raw int64, who string) stamp {
	return stamp{raw: raw, epoch: l.epoch, adj: l.adj, line: l.line, at: l.at, other: l.who != who}
}

func (l *lineRecord) stamp(raw int64, b bounds, epoch int64, c *simCaller, dev int64, votes bool) stamp {
	before := l.read(raw, c.id)
	if votes && epoch == l.epoch {
		d := l.dev - dev
		if l.voter != "" && l.voter != c.machine && max(d, -d) <= 4000 && raw >= l.voted && raw-l.voted <= 2_000_000 {
			l.epoch, l.adj, l.voter = l.epoch+1, l.adj-dev, ""
		} else {
			l.voter, l.dev, l.voted = c.machine, dev, raw
		}
	}
	if mark := max(int64(b.lo), min(int64(b.hi), raw+b.adj)); mark >= l.line {
		l.line, l.at, l.who = mark, raw, c.id
	}
	before.epoch, before.adj = l.epoch, l.adj
	return before
}

type event struct {
	at int64
	n  int
	do func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].n < e[j].n
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (w *world) after(d int64, do func()) {
	heap.Push(&w.events, event{w.now + d, len(w.events) + int(w.now), do})
}

const simBase = 1_780_000_000_000_000

func newWorld(t testing.TB, seed uint64, callers, machines int) *world {
	p, err := algo.Compile(algo.Params{Algorithm: algo.TokenBucket, Count: 10, Per: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{r: rand.New(rand.NewPCG(seed, 7)), plan: p, slow: 0.01}
	for i := range callers {
		c := &simCaller{id: fmt.Sprint("c", i), machine: fmt.Sprint("m", i%machines), w: newWitness(), lost: w.r.Int64N(1_000_000_000)}
		w.callers = append(w.callers, c)
		w.start(c)
	}
	return w
}

// suspend stops a caller and its clock for 10 s.
func (w *world) suspend(c *simCaller) {
	c.stopped = w.now + 10*second
	w.after(10*second, func() { c.lost += 10 * second })
}

// deliver hands a reply to a caller, when it runs.
func (w *world) deliver(c *simCaller, do func()) {
	w.after(w.trip(), func() {
		if w.now < c.stopped {
			w.after(c.stopped-w.now+1, do)
			return
		}
		do()
	})
}

// trip is the time from caller to store or back: now and then 200 ms.
func (w *world) trip() int64 {
	d := 100 + w.r.Int64N(900)
	if w.r.Float64() < w.slow {
		d += 200_000
	}
	if w.pause != nil {
		d += w.pause(w)
	}
	return d
}

func (w *world) start(c *simCaller) {
	c.up, c.w, c.fresh = true, newWitness(), newcomer{}
	w.lookUp(c)
}

// lookUp is one look of a newcomer, until it has the line.
func (w *world) lookUp(c *simCaller) {
	me := c.w
	send := w.now
	w.after(w.trip(), func() {
		s := w.record.read(w.raw(), c.id)
		w.deliver(c, func() {
			if c.w != me || !c.up {
				return
			}
			if !c.fresh.look(me, "store", c.local(send), c.local(w.now), s) {
				w.after(50_000, func() { w.lookUp(c) })
				return
			}
			w.stampBy(c)
			w.ask(c)
		})
	})
}

func (w *world) raw() int64 { return simBase + w.now + w.offset }

func (w *world) stampBy(c *simCaller) {
	me := c.w
	if !c.up {
		return
	}
	if w.now < c.stopped {
		w.after(c.stopped-w.now+1, func() { w.stampBy(c) })
		return
	}
	if !me.known {
		return
	}
	send := w.now
	b, _ := me.bounds("store", c.local(w.now))
	dev, votes := me.vote("store")
	epoch := me.node("store").epoch
	w.after(w.trip(), func() {
		s := w.record.stamp(w.raw(), b, epoch, c, dev, votes)
		w.deliver(c, func() {
			if c.w != me || !c.up {
				return
			}
			if !me.recorded("store", c.local(send), c.local(w.now), s) {
				w.start(c)
				return
			}
			w.after(1_000_000, func() { w.stampBy(c) })
		})
	})
}

// ask is one decision and the next.
func (w *world) ask(c *simCaller) {
	me := c.w
	if !c.up || !me.known {
		return
	}
	gap := int64(len(w.callers)) * 5_000
	w.after(w.r.Int64N(2*gap), func() {
		if c.w != me || !c.up {
			return
		}
		if w.now < c.stopped {
			w.after(c.stopped-w.now+1, func() { w.ask(c) })
			return
		}
		b, ok := me.bounds("store", c.local(w.now))
		if !ok {
			return
		}
		send := w.now
		w.after(w.trip(), func() {
			raw := w.raw()
			now := max(b.lo, min(b.hi, algo.Store(raw+b.adj)))
			if w.naive {
				now = algo.Store(raw)
			}
			if v := w.plan.Take(&w.state, now, 1); v.Admitted {
				w.admitted = append(w.admitted, w.now)
			}
			w.deliver(c, func() {
				if c.w == me {
					me.reply("store", c.local(send), c.local(w.now), raw)
				}
			})
		})
		w.ask(c)
	})
}

func (w *world) run(until int64) {
	for len(w.events) > 0 && w.events[0].at <= until {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
	w.now = until
}

// at schedules something for a true instant.
func (w *world) at(t int64, do func()) { w.after(t-w.now, do) }

// outcome is what was admitted beyond what is right from begin to end, and the longest gap.
func (w *world) outcome(begin, end int64) (extra, gap int64) {
	last := begin
	n := int64(0)
	for _, a := range w.admitted {
		if a < begin || a > end {
			continue
		}
		n++
		gap = max(gap, a-last)
		last = a
	}
	return n - (end-begin)/100_000, max(gap, end-last)
}

const second = int64(1_000_000)

func seedOf(t *testing.T) uint64 {
	s := *worldSeed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("replay: go test ./redisstore -run %s -world %d", t.Name(), s)
	return s
}

// TestWorlds: whatever happens to clocks, no more is admitted than is right, and nobody
// waits long. The numbers are bounds, over true time.
func TestWorlds(t *testing.T) {
	seed := seedOf(t)
	step := func(w *world, at int64, by int64) { w.at(at, func() { w.offset += by }) }
	random := func(w *world) int64 {
		d := second/2 + w.r.Int64N(60*second)
		if w.r.IntN(2) == 0 {
			return -d
		}
		return d
	}
	worlds := []struct {
		name              string
		callers, machines int
		setup             func(w *world)
		least, most, gap  int64 // admitted beyond right, and µs
		epochs            int64 // steps that the record adopts at least; none if 0, whatever if negative
	}{
		{"no step", 6, 6, func(*world) {}, -3, 3, 300_000, 0},
		{"two steps", 6, 6, func(w *world) { step(w, 30*second, random(w)); step(w, 70*second, random(w)) }, -3, 3, 300_000, 2},
		{"two steps, one machine", 3, 1, func(w *world) { step(w, 30*second, random(w)); step(w, 70*second, random(w)) }, -3, 3, 300_000, 0},
		{"two steps, alone", 1, 1, func(w *world) { step(w, 30*second, random(w)); step(w, 70*second, random(w)) }, -3, 3, 300_000, 0},
		{"18 flaps", 2, 2, func(w *world) {
			for i := range 18 {
				step(w, 30*second+int64(i)*second, second/2-int64(i%2)*second)
			}
		}, -3, 3, 300_000, -1},
		{"pauses of the store", 6, 6, func(w *world) {
			w.pause = func(w *world) int64 {
				if w.now%(5*second) < 300_000 {
					return 300_000 - w.now%(5*second)
				}
				return 0
			}
		}, -3, 3, 450_000, 0},
		{"a caller loses 10 s", 6, 6, func(w *world) {
			w.at(50*second, func() { w.suspend(w.callers[1]) })
		}, -3, 3, 300_000, 0},
		{"the whole host loses 10 s", 2, 1, func(w *world) {
			w.at(50*second, func() {
				for _, c := range w.callers {
					w.suspend(c)
				}
			})
		}, -203, 3, 10_300_000, 0},
		{"the whole host is stopped for 10 s", 2, 1, func(w *world) {
			w.at(50*second, func() {
				for _, c := range w.callers {
					c.stopped = w.now + 10*second
				}
			})
		}, -95, 3, 10_300_000, 0},
		{"a restart 50 ms after a step", 6, 6, func(w *world) {
			step(w, 30*second, random(w))
			w.at(30*second+50_000, func() { w.start(w.callers[2]) })
		}, -3, 3, 300_000, 1},
		{"a failover that loses the record", 6, 6, func(w *world) {
			w.at(40*second, func() { w.offset += random(w); w.record = lineRecord{} })
		}, -3, 3, 300_000, -1},
		{"alone, down 1 s, no step", 1, 1, func(w *world) {
			w.at(50*second, func() { w.callers[0].up = false })
			w.at(51*second, func() { w.start(w.callers[0]) })
		}, -24, 3, 3_400_000, 0},
		{"alone, restarted after a step", 1, 1, func(w *world) {
			step(w, 50*second, random(w))
			w.at(50*second+10_000, func() { w.callers[0].up = false })
			w.at(51*second, func() { w.start(w.callers[0]) })
		}, -35, 3, 3_500_000, 0},
	}
	for _, c := range worlds {
		t.Run(c.name, func(t *testing.T) {
			lowest, highest, longest := int64(1)<<60, -int64(1)<<60, int64(0)
			for i := range uint64(20) {
				w := newWorld(t, seed+i, c.callers, c.machines)
				c.setup(w)
				w.run(120 * second)
				extra, gap := w.outcome(2*second, 120*second)
				lowest, highest, longest = min(lowest, extra), max(highest, extra), max(longest, gap)
				if extra < c.least || extra > c.most || gap > c.gap {
					t.Errorf("world %d: admitted %+d beyond right, longest gap %d ms; want %+d to %+d and %d", seed+i, extra, gap/1000, c.least, c.most, c.gap/1000)
				}
				if c.epochs >= 0 && w.record.epoch < c.epochs || c.epochs == 0 && w.record.epoch > 0 {
					t.Errorf("world %d: the record adopted %d steps, want %d", seed+i, w.record.epoch, c.epochs)
				}
			}
			t.Logf("admitted %+d to %+d beyond right, longest gap %d ms", lowest, highest, longest/1000)
		})
	}
}

// What the witness is for: believing the store's clock, in the same worlds.
func TestWorldsWithoutWitness(t *testing.T) {
	seed := seedOf(t)
	w := newWorld(t, seed, 6, 6)
	w.naive = true
	w.at(30*second, func() { w.offset -= 45 * second })
	w.run(120 * second)
	if extra, gap := w.outcome(2*second, 120*second); gap < 30*second {
		t.Errorf("a step back by 45 s cost %d admissions and a gap of %d ms: then nothing would be needed", extra, gap/1000)
	}
}
