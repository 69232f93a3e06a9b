package redisstore

import (
	"math/rand/v2"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// randomPlan draws a limit of any algorithm that compiles.
func randomPlan(r *rand.Rand, name string) *escapement.Plan {
	for {
		l := escapement.Limit{Name: name, Algorithm: escapement.Algorithm(1 + r.IntN(6)), Shadow: r.IntN(10) == 0}
		l.Rate = escapement.Rate{
			Count: []int64{1, 2, 7, 10, 60, 64, 65, 100, 1000, 999_983, 10_000_000, 1 + r.Int64N(1_000_000)}[r.IntN(12)],
			Per:   []time.Duration{time.Microsecond, time.Millisecond, time.Second, 10 * time.Second, 13 * time.Second, time.Minute, time.Hour, 24 * time.Hour, 365 * 24 * time.Hour}[r.IntN(9)],
		}
		switch l.Algorithm {
		case escapement.TokenBucket, escapement.GCRA:
			l.Burst = []int64{0, 1, 3, 50, 1_000_000, 1 << 40}[r.IntN(6)]
		case escapement.Pacing:
			l.MaxDelay = []time.Duration{0, time.Millisecond, time.Second, time.Minute}[r.IntN(4)]
		case escapement.FixedWindow:
			switch r.IntN(4) {
			case 0:
				l.Align = escapement.FirstUse
			case 1:
				l.Align, l.Rate.Per = escapement.Day+escapement.Align(r.IntN(3)), 0
				l.Zone, _ = time.LoadLocation([]string{"UTC", "Europe/Berlin", "America/New_York"}[r.IntN(3)])
			}
		case escapement.SlidingWindow: // nothing but its rate
		case escapement.RollingWindow:
			if r.IntN(2) == 0 && l.Rate.Count > algo.LogMax {
				l.Buckets = algo.MinBuckets + r.IntN(100)
			}
		}
		if p, err := l.Compile(); err == nil {
			return p
		}
	}
}

// record is what the model keeps of a key.
type record struct {
	core    *algo.Plan
	text    string
	st      algo.State
	written algo.Store
	receipt algo.Receipt
}

// asOf is when a wire's plan adopts the record.
func (rec *record) asOf(w *wire, now algo.Store) algo.Store {
	written := rec.st.At
	switch rec.text[0] {
	case 'f', 'u', 'c', 's':
		written = rec.written
	case 'r':
		written += algo.Store(rec.core.Numbers().Width) - 1
	}
	return min(now, max(w.since, written))
}
