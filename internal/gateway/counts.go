package gateway

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/clock"
)

// counts is what a limit did since the process started; it outlives reloads.
type counts struct {
	by        [escapement.Fallback]verdicts // answered by the store, by basis
	fallback  atomic.Int64                  // answered by on_failure, without the store
	closed    atomic.Int64                  // of fallback: refused
	units     atomic.Int64                  // admitted, of requests that passed
	refused   atomic.Int64                  // requests that were answered with this limit's refusal
	invalid   atomic.Int64                  // the request gave no valid count or window, or one window too many
	delayed   atomic.Int64                  // held until their turn
	cancelled atomic.Int64                  // gave up while they were held

	mu     sync.Mutex
	recent recent
}

// verdicts is what a store answered on one basis.
type verdicts struct {
	decided atomic.Int64
	denied  atomic.Int64 // of decided: refused by this limit in force, whoever else did
	shadow  atomic.Int64 // of decided: refused, had the limit been in force
}

// add counts one decision.
func (c *counts) add(d *escapement.Decision, shadow bool) {
	basis := d.Basis()
	if basis >= escapement.Fallback {
		c.fallback.Add(1)
		if !d.Allowed {
			c.closed.Add(1)
		}
		return
	}
	v := &c.by[basis]
	v.decided.Add(1)
	switch {
	case d.Allowed:
	case shadow:
		v.shadow.Add(1)
	default:
		v.denied.Add(1)
	}
}

// tally adds up the counters. What is counted meanwhile may be in some and not in others.
func (c *counts) tally() tally {
	t := tally{refused: c.closed.Load(), fallback: c.fallback.Load()}
	t.decided = t.fallback
	for i := range c.by {
		t.refused += c.by[i].denied.Load()
		t.decided += c.by[i].decided.Load()
	}
	return t
}

// sample takes the tally of every limit to what it was of late.
func (g *Gateway) sample(second int64) {
	for _, l := range g.current.Load().limits {
		l.counts.mu.Lock()
		l.counts.recent.add(second, l.counts.tally())
		l.counts.mu.Unlock()
	}
}

// sampleAlways samples at each full second of the monotonic clock since it was called.
func (g *Gateway) sampleAlways(ctx context.Context) {
	start := clock.Mono()
	next := time.NewTimer(time.Second)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C: // never early
			passed := clock.Since(start)
			g.sample(int64(passed / time.Second))
			next.Reset(time.Second - passed%time.Second)
		}
	}
}
