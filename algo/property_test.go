package algo_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/algo/algomodel"
)

// each runs a property over random limits of an algorithm and prints the failing seed.
func each(t *testing.T, times int, algorithms []algo.Algorithm, check func(t *testing.T, a algo.Algorithm, seed uint64)) {
	for _, a := range algorithms {
		t.Run(a.String(), func(t *testing.T) {
			first := firstSeed(t)
			for n := range uint64(times) {
				if check(t, a, first+n); t.Failed() {
					t.Fatalf("seed %d; repeat with: go test ./algo -run '%s' -seed %d", first+n, t.Name(), first+n)
				}
			}
		})
	}
}

var buckets = []algo.Algorithm{algo.TokenBucket, algo.GCRA}

// admission is what one call admitted and when it acts.
type admission struct {
	at    algo.Store
	units int64
}

// spend makes random claims while the clock steps both ways, and returns what they got.
func spend(p *algo.Plan, seed uint64, calls int, kinds ...algomodel.Kind) []admission {
	r := algomodel.Rand(seed)
	h := algomodel.NewHistory(r, p)
	s := fresh(p)
	var got []admission
	for range calls {
		o := h.Next()
		if !slices.Contains(kinds, o.Kind) {
			o.Kind = algomodel.Take
		}
		a := algomodel.Of(algomodel.Apply(p, s, o))
		h.Saw(o, a)
		if a.Admitted && a.Units > 0 {
			got = append(got, admission{a.Receipt.At, a.Units})
		}
	}
	return got
}

// TestConservation: whatever the clock does, what a bucket admits never exceeds its
// capacity plus the rate times the time the clock was seen to go forward.
func TestConservation(t *testing.T) {
	each(t, 300, buckets, func(t *testing.T, a algo.Algorithm, seed uint64) {
		q, p := algomodel.RandomLimit(algomodel.Rand(seed), a)
		got := spend(&p, seed, 200, algomodel.Take, algomodel.TakeUpTo, algomodel.Reserve)
		if len(got) == 0 {
			return
		}
		tick := algo.Store(p.Tick())
		first, last, total := got[0].at/tick*tick, got[0].at, new(big.Int)
		for _, g := range got {
			last = max(last, g.at)
			total.Add(total, big.NewInt(g.units))
		}
		bound := new(big.Rat).Mul(big.NewRat(q.Count, int64(q.Per)), new(big.Rat).SetInt64(int64(last-first)))
		bound.Add(bound, new(big.Rat).SetInt64(p.Capacity()))
		if new(big.Rat).SetInt(total).Cmp(bound) > 0 {
			t.Errorf("%+v admitted %v in %d µs, at most %v", q, total, last-first, bound.FloatString(3))
		}
	})
}

// densest is the most units in any half-open span of length per.
func densest(got []admission, per algo.Span) int64 {
	slices.SortStableFunc(got, func(a, b admission) int { return int(max(-1, min(1, a.at-b.at))) })
	var most, sum int64
	from := 0
	for _, g := range got {
		sum += g.units
		for got[from].at <= g.at-algo.Store(per) {
			sum -= got[from].units
			from++
		}
		most = max(most, sum)
	}
	return most
}

// TestEverySpan: a rolling window admits at most Count in every span of one period,
// wherever it begins; the other window counters at most twice that.
func TestEverySpan(t *testing.T) {
	windows := []algo.Algorithm{algo.RollingWindow, algo.SlidingWindow, algo.FixedWindow}
	each(t, 300, windows, func(t *testing.T, a algo.Algorithm, seed uint64) {
		q, p := algomodel.RandomLimit(algomodel.Rand(seed), a)
		if q.Calendar != nil {
			return // windows of many lengths
		}
		bound := q.Count
		if a != algo.RollingWindow {
			bound *= 2
		}
		got := spend(&p, seed, 400, algomodel.Take, algomodel.TakeUpTo)
		if most := densest(got, q.Per); most > bound {
			t.Errorf("%+v admitted %d within one period, at most %d", q, most, bound)
		}
	})
}

// TestTurns: pacing hands out turns in order, each at least the time of the units before
// it after the last, rounded up to the grid, and none later than MaxDelay.
func TestTurns(t *testing.T) {
	each(t, 300, []algo.Algorithm{algo.Pacing}, func(t *testing.T, a algo.Algorithm, seed uint64) {
		q, p := algomodel.RandomLimit(algomodel.Rand(seed), a)
		got := spend(&p, seed, 200, algomodel.Take, algomodel.TakeUpTo, algomodel.Reserve)
		tick := int64(p.Tick())
		for i := 1; i < len(got); i++ {
			apart := int64(got[i].at)/tick - int64(got[i-1].at)/tick
			// units*Per/Count ticks have to fit between the two turns; each turn may be
			// rounded up by less than a tick.
			need := new(big.Int).Mul(big.NewInt(got[i-1].units), big.NewInt(int64(q.Per)))
			have := new(big.Int).Mul(big.NewInt((apart+1)*tick), big.NewInt(q.Count))
			if got[i].at < got[i-1].at || need.Cmp(have) >= 0 {
				t.Errorf("%+v: turn %d at %d, %d units before it at %d", q, i, got[i].at, got[i-1].units, got[i-1].at)
				return
			}
		}
	})
}

// TestPollingIsFree: requests that are refused change no answer of the requests between
// them, at whatever pace they come.
func TestPollingIsFree(t *testing.T) {
	each(t, 100, algorithms, func(t *testing.T, a algo.Algorithm, seed uint64) {
		r := algomodel.Rand(seed)
		_, p := algomodel.RandomLimit(r, a)
		h := algomodel.NewHistory(r, &p)
		h.Forward = true
		quiet, polled := fresh(&p), fresh(&p)
		last := h.Now()
		for range 60 {
			o := h.Next()
			for i := range algo.Store(20) {
				now := last + (o.Now-last)*i/20
				if v := p.Peek(polled, now, 1); v.Admitted {
					continue
				}
				if v := p.Reserve(polled, now, 1, 0); v.Admitted {
					t.Errorf("Peek refuses at %d, Reserve admits", now)
				}
			}
			last = o.Now
			one, two := algomodel.Of(algomodel.Apply(&p, quiet, o)), algomodel.Of(algomodel.Apply(&p, polled, o))
			if one != two {
				t.Errorf("%v: polled %+v, left alone %+v", o, two, one)
				return
			}
			h.Saw(o, one)
		}
	})
}

// TestCancelOrder: reservations cancelled before their turn leave what there would be
// without them, in whatever order they are cancelled.
func TestCancelOrder(t *testing.T) {
	lenders := []algo.Algorithm{algo.TokenBucket, algo.GCRA, algo.Pacing}
	each(t, 300, lenders, func(t *testing.T, a algo.Algorithm, seed uint64) {
		r := algomodel.Rand(seed)
		_, p := algomodel.RandomLimit(r, a)
		s, without := fresh(&p), fresh(&p)
		used := 1 + r.Int64N(p.Capacity())
		p.Take(s, epoch, used)
		p.Take(without, epoch, used)
		var turns []algo.Receipt
		soonest := algo.Store(1) << 60
		for range 1 + r.IntN(8) {
			v := p.Reserve(s, epoch, 1+r.Int64N(p.Capacity()), algo.Never)
			if v.Admitted && v.Delay() > 0 {
				turns = append(turns, v.Receipt())
				soonest = min(soonest, v.Receipt().At)
			} else if v.Admitted {
				p.Take(without, epoch, v.Units())
			}
		}
		if len(turns) == 0 {
			return
		}
		r.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
		now := epoch
		for _, turn := range turns {
			now += algo.Store(r.Int64N(int64(soonest - now)))
			p.Refund(s, now, turn)
		}
		got, want := p.Peek(s, now, 0), p.Peek(without, now, 0)
		if algomodel.Of(got) != algomodel.Of(want) {
			t.Errorf("after %d cancellations %+v, without them %+v", len(turns), algomodel.Of(got), algomodel.Of(want))
		}
	})
}

// TestCancelledPastIsGone: what was taken at 0 has refilled by 10, so that cancelling it
// then must not admit a third burst.
func TestCancelledPastIsGone(t *testing.T) {
	for _, a := range buckets {
		p := compile(t, algo.Params{Algorithm: a, Count: 1, Per: sec, Burst: 10})
		s := fresh(p)
		first := p.Take(s, epoch, 10)
		ten := epoch + algo.Store(10*sec)
		if v := p.Take(s, ten, 10); !v.Admitted {
			t.Fatalf("%v: the second ten are refused", a)
		}
		if v := p.Refund(s, ten, first.Receipt()); v.Units() != 0 || v.Remaining() != 0 {
			t.Errorf("%v: gave back %d, remaining %d; want 0, 0", a, v.Units(), v.Remaining())
		}
		if v := p.Take(s, ten, 1); v.Admitted || v.RetryAfter() != sec {
			t.Errorf("%v: admitted %v, retry after %d; want false, %d", a, v.Admitted, v.RetryAfter(), sec)
		}
	}
}

// TestStepIsWorthOneCapacity: under Rebase a clock that nothing vouches for may step
// back by anything; each step admits at most one capacity more than the time that passes.
func TestStepIsWorthOneCapacity(t *testing.T) {
	each(t, 200, buckets, func(t *testing.T, a algo.Algorithm, seed uint64) {
		r := algomodel.Rand(seed)
		p := compile(t, algo.Params{Algorithm: a, Count: 10, Per: sec, Burst: 1 + r.Int64N(50)})
		s := fresh(p)
		clock, forward, total, steps := epoch, algo.Span(0), int64(0), int64(0)
		for range 400 {
			pass := algo.Span(r.Int64N(int64(sec)))
			clock, forward = clock+algo.Store(pass), forward+pass
			if r.IntN(40) == 0 {
				clock += algo.Store(r.Int64N(int64(2*hour))) - algo.Store(hour)
				steps++
			}
			p.Rebase(s, clock)
			v := p.TakeUpTo(s, clock, 1+r.Int64N(p.Capacity()))
			total += v.Units()
		}
		// A step of less than two seconds leaves the state ahead: that only refuses.
		if most := p.Capacity()*(1+steps) + int64(forward)*10/int64(sec); total > most {
			t.Errorf("admitted %d in %v with %d steps, at most %d", total, fmt.Sprint(forward), steps, most)
		}
	})
}
