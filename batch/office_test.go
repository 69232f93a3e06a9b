package batch

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

var errLost = errors.New("a message was lost")

// office is a collector in this process: the records of all keys, and the store's clock.
type office struct {
	mu      sync.Mutex
	random  *rand.Rand
	records map[string]*algo.Delayed
	counted map[string]map[algo.Store]int64 // units by window, as last recorded
	late    int64
	offset  time.Duration // of the store's line from the monotonic clock
	delay   time.Duration // the longest each way
	lose    float64       // part of the calls, half of them before the store, half after it
	away    bool
	calls   int
	applied map[string]map[int64]int64 // the last flush of each instance
}

func newOffice(seed uint64) *office {
	return &office{random: rand.New(rand.NewPCG(seed, 1)), offset: 20_000*24*time.Hour - time.Duration(clock.Mono()),
		records: map[string]*algo.Delayed{}, counted: map[string]map[algo.Store]int64{}, applied: map[string]map[int64]int64{}}
}

func (o *office) now() algo.Store {
	return algo.Store((time.Duration(clock.Mono()) + o.offset) / time.Microsecond)
}

// set takes the collector away, or brings it back.
func (o *office) set(away bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.away = away
}

// pass lets a message travel, and reports whether it arrives.
func (o *office) pass() bool {
	o.mu.Lock()
	d, ok := time.Duration(0), !o.away && o.random.Float64() >= o.lose/2
	if o.delay > 0 {
		d = time.Duration(o.random.Int64N(int64(o.delay)))
	}
	o.mu.Unlock()
	if d > 0 {
		time.Sleep(d)
	}
	return ok
}

func (o *office) Collect(_ context.Context, reports []escapement.Report, answers []escapement.Reported) {
	lost := func() {
		for i := range answers {
			answers[i] = escapement.Reported{Outcome: escapement.Unknown, Err: errLost}
		}
	}
	if !o.pass() {
		lost()
		return
	}
	o.mu.Lock()
	o.calls++
	for i := range reports {
		answers[i] = escapement.Reported{Outcome: escapement.Decided, Flushed: o.flush(&reports[i])}
	}
	o.mu.Unlock()
	if !o.pass() {
		lost()
	}
}

func (o *office) flush(r *escapement.Report) algo.Flushed {
	name := r.Plan.Limit().Name + "/" + r.Key
	d := o.records[name]
	if d == nil {
		d = &algo.Delayed{}
		o.records[name], o.counted[name], o.applied[name] = d, map[algo.Store]int64{}, map[int64]int64{}
	}
	f := r.Plan.Core().Flush(d, o.now(), &r.Flush)
	if r.Flush.Number > o.applied[name][r.Flush.Instance] {
		o.applied[name][r.Flush.Instance] = r.Flush.Number
		o.late += f.Late
	}
	c := o.counted[name]
	c[d.Start] = d.Used
	if _, per := r.Plan.Core().Rate(); d.Before > 0 {
		c[d.Start-algo.Store(per)] = d.Before
	}
	return f
}

// total is all that was recorded under a name.
func (o *office) total(name string) (n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, units := range o.counted[name] {
		n += units
	}
	return n + o.late
}
