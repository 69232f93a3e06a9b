package algo_test

import (
	"testing"

	"github.com/escapement-io/escapement/algo"
)

var takes = []struct {
	name string
	q    algo.Params
}{
	{"token_bucket", algo.Params{Algorithm: algo.TokenBucket, Count: 1000, Per: sec}},
	{"gcra", algo.Params{Algorithm: algo.GCRA, Count: 1000, Per: sec}},
	{"fixed_window", algo.Params{Algorithm: algo.FixedWindow, Count: 1000, Per: sec}},
	{"fixed_window/first_use", algo.Params{Algorithm: algo.FixedWindow, Count: 1000, Per: sec, FirstUse: true}},
	{"sliding_window", algo.Params{Algorithm: algo.SlidingWindow, Count: 1000, Per: sec}},
	{"rolling_window/log", algo.Params{Algorithm: algo.RollingWindow, Count: 64, Per: sec}},
	{"rolling_window/ring", algo.Params{Algorithm: algo.RollingWindow, Count: 1000, Per: sec}},
	{"pacing", algo.Params{Algorithm: algo.Pacing, Count: 1000, Per: sec, MaxDelay: sec}},
}

// BenchmarkTake asks at 1.5 times the rate: two of three are admitted.
func BenchmarkTake(b *testing.B) {
	for _, c := range takes {
		b.Run(c.name, func(b *testing.B) {
			p := compile(b, c.q)
			s := fresh(p)
			every := algo.Store(int64(c.q.Per) * 2 / (3 * c.q.Count))
			now := epoch
			b.ReportAllocs()
			for b.Loop() {
				p.Take(s, now, 1)
				now += every
			}
		})
	}
}

// TestTakeDoesNotAllocate covers every call but Rebase of a ring.
func TestTakeDoesNotAllocate(t *testing.T) {
	for _, c := range takes {
		p := compile(t, c.q)
		s := fresh(p)
		now := epoch
		allocs := testing.AllocsPerRun(2000, func() {
			v := p.Take(s, now, 1)
			p.Reserve(s, now, 2, sec)
			p.TakeUpTo(s, now, 3)
			p.Peek(s, now, 1)
			p.Charge(s, now, 1, now-1000)
			p.Refund(s, now, v.Receipt())
			_ = v.Remaining() + int64(v.RetryAfter()+v.ResetAfter())
			p.Fresh(s, now)
			now += 500
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", c.name, allocs)
		}
	}
}
