package retry

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/memstore"
)

// world is a fleet of clients in front of one server with a limit, in virtual time. For a
// while the server refuses everything, as a limiter on a stepped clock does.
type world struct {
	clients int
	rate    int           // requests a second of all clients together
	limit   int           // of the server, a second
	from    time.Duration // when it begins to refuse everything
	outage  time.Duration
	end     time.Duration
	policy  policy
}

// policy is what a client does after the n-th attempt was refused.
type policy func(c *client, n int, told time.Duration, now time.Duration, draw uint64) (wait time.Duration, again bool)

type client struct {
	rules Rules
	acc   Account
}

const (
	roundTrip = 5 * time.Millisecond
	bin       = 100 * time.Millisecond
)

// atOnce is what libraries did in the incident: as many attempts as ours, without a wait.
func atOnce(c *client, n int, _, _ time.Duration, _ uint64) (time.Duration, bool) {
	return 0, n < c.rules.MaxAttempts
}

// asTold waits exactly what it was told, and has no budget.
func asTold(c *client, n int, told, _ time.Duration, _ uint64) (time.Duration, bool) {
	return told, n < c.rules.MaxAttempts
}

// ours is Decide.
func ours(c *client, n int, told, now time.Duration, draw uint64) (time.Duration, bool) {
	a := Attempt{Number: n, Repeatable: true, Left: Forever, Took: roundTrip}
	var v Verdict
	v, c.acc = Decide(&c.rules, a, Answer{Kind: Refused, Told: true, Wait: told}, c.acc, algo.Mono(now), draw)
	return v.Wait, v.Retry
}

type event struct {
	at     time.Duration
	client int
	n      int // of the attempt
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any          { last := (*e)[len(*e)-1]; *e = (*e)[:len(*e)-1]; return last }

// aftermath is how long after the outage attempts are still counted as its own.
const aftermath = 2 * time.Second

// result counts during the outage and its aftermath.
type result struct {
	requests, attempts int
	amplification      float64
	peak               float64       // attempts in the worst tenth of a second, in multiples of the usual
	calm               time.Duration // from the end of the outage to the last tenth of a second with refusals above 1 %
}

type line struct{ now atomic.Int64 }

func (l *line) Now() algo.Store {
	return algo.Store(1_000_000_000_000_000 + time.Duration(l.now.Load()).Microseconds())
}

func (w world) run(t *testing.T, seed uint64) result {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	l := &line{}
	store := memstore.New(memstore.WithClock(l))
	defer func() { _ = store.Close() }()
	lim, err := escapement.New(store, escapement.Limit{Name: "server", Rate: escapement.PerSecond(int64(w.limit)), Burst: int64(w.limit / 10)})
	if err != nil {
		t.Fatal(err)
	}
	gap := func() time.Duration {
		return time.Duration(rnd.ExpFloat64() * float64(time.Second) * float64(w.clients) / float64(w.rate))
	}
	clients := make([]client, w.clients)
	queue := &events{}
	for i := range clients {
		r := complete(t, Rules{})
		clients[i] = client{r, r.Budget.Open(0)}
		heap.Push(queue, event{gap(), i, 1})
	}
	var res result
	bins := make([]struct{ attempts, refused int }, w.end/bin+1)
	for queue.Len() > 0 && (*queue)[0].at < w.end {
		e := heap.Pop(queue).(event)
		c := &clients[e.client]
		l.now.Store(int64(e.at))
		counted := e.at >= w.from && e.at < w.from+w.outage+aftermath
		if e.n == 1 {
			heap.Push(queue, event{e.at + gap(), e.client, 1})
			c.acc = c.rules.Budget.Request(c.acc, algo.Mono(e.at))
			if counted {
				res.requests++
			}
		}
		b := &bins[e.at/bin]
		b.attempts++
		if counted {
			res.attempts++
		}
		told := time.Second
		if e.at < w.from || e.at >= w.from+w.outage {
			d, err := lim.Take(context.Background(), "", 1)
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed {
				continue
			}
			told = (d.RetryAfter() + time.Second - 1).Truncate(time.Second)
		}
		b.refused++
		now := e.at + roundTrip
		if wait, again := w.policy(c, e.n, told, now, rnd.Uint64()); again {
			heap.Push(queue, event{now + wait, e.client, e.n + 1})
		}
	}
	for i, b := range bins {
		res.peak = max(res.peak, float64(b.attempts)/(float64(w.rate)*bin.Seconds()))
		if over := time.Duration(i+1)*bin - (w.from + w.outage); over > 0 && b.refused*100 > b.attempts {
			res.calm = over
		}
	}
	res.amplification = float64(res.attempts) / float64(res.requests)
	return res
}

// Ten services of 90 requests a second each, a limit of 1000 a second.
func TestHerd(t *testing.T) {
	base := seeded(t)
	var herdCalm, oursCalm time.Duration
	for i := range uint64(10) {
		w := world{clients: 10, rate: 900, limit: 1000, from: 5 * time.Second, outage: 320 * time.Millisecond, end: 12 * time.Second}
		run := func(name string, p policy) result {
			w.policy = p
			r := w.run(t, base+i)
			t.Logf("outage %v, %-8s amplification %.2f, peak %.2f, calm after %v", w.outage, name, r.amplification, r.peak, r.calm)
			return r
		}
		expect := func(what string, ok bool) {
			if !ok {
				t.Errorf("outage %v: not so: %s", w.outage, what)
			}
		}
		storm, herd, calm := run("at once", atOnce), run("as told", asTold), run("ours", ours)
		expect("retries at once triple the load", storm.peak >= 3)
		expect("those who were told the same come back as a second wave", herd.peak >= 1.6 && herd.calm >= time.Second)
		expect("ours adds a tenth", calm.amplification <= 1.1 && calm.peak <= 1.9 && calm.calm <= 4*time.Second)
		herdCalm, oursCalm = herdCalm+herd.calm, oursCalm+calm.calm

		w.outage, w.end = 10*time.Second, 30*time.Second
		storm, herd, calm = run("at once", atOnce), run("as told", asTold), run("ours", ours)
		expect("retries at once multiply the load", storm.amplification >= 3 && storm.peak >= 4)
		expect("waiting without a budget does too, and goes on for seconds", herd.amplification >= 3 && herd.calm >= 4*time.Second)
		expect("ours adds a tenth and the burst", calm.amplification <= 1.12 && calm.peak <= 1.9 && calm.calm <= 3*time.Second)
		herdCalm, oursCalm = herdCalm+herd.calm, oursCalm+calm.calm
	}
	t.Logf("until calm, all seeds together: as told %v, ours %v", herdCalm, oursCalm)
	if oursCalm > herdCalm/4 {
		t.Errorf("ours takes %v until calm, waiting as told without spread and budget %v", oursCalm, herdCalm)
	}
}
