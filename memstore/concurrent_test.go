package memstore

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCloseTwice(t *testing.T) {
	s := New()
	s.Close()
	s.Close()
	p := compile(t, escapement.Limit{Name: "closed", Rate: escapement.PerHour(1)})
	if d := mustTake(t, s, p, "k", 1); !d.Allowed {
		t.Error("a closed store does not answer")
	}
}

// The sweeper alone drops what no longer counts.
func TestSweeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		defer s.Close()
		p := compile(t, escapement.Limit{Name: "s", Rate: escapement.PerSecond(10)})
		day := compile(t, escapement.Limit{Name: "d", Rate: escapement.Rate{Count: 10, Per: 24 * time.Hour}})
		for i := range 1000 {
			mustTake(t, s, p, strconv.Itoa(i), 1)
		}
		mustTake(t, s, day, "stays", 1)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if st := s.Stats(); st.Keys != 1 || st.Dropped != 1000 {
			t.Errorf("after a cycle: %+v", st)
		}
	})
}

// synced is a clock that counts how often it is synced.
type synced struct {
	manual
	times atomic.Int64
}

func (c *synced) Sync() { c.times.Add(1) }

func TestSweeperSyncsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(synced)
		s := New(WithClock(c))
		defer s.Close()
		time.Sleep(3*time.Second + time.Millisecond)
		if n := c.times.Load(); n != 12 {
			t.Errorf("synced %d times in 3 seconds, want 12", n)
		}
	})
}

// A clock that goes back stops the store's time: nothing is given twice, also by records
// that were dropped in between.
func TestTimeGoesBack(t *testing.T) {
	for _, a := range []escapement.Algorithm{escapement.TokenBucket, escapement.FixedWindow, escapement.SlidingWindow, escapement.RollingWindow} {
		c := newManual()
		s := newStore(t, WithClock(c))
		p := compile(t, escapement.Limit{Name: "back", Algorithm: a, Rate: escapement.PerSecond(10)})
		admitted := int64(0)
		for range 50 {
			d := mustTake(t, s, p, "k", 10)
			if d.Allowed {
				admitted += 10
			}
			c.Advance(500 * time.Millisecond)
			sweepAll(s)
			c.Advance(-490 * time.Millisecond)
		}
		// The furthest instant seen is 50*10+500 ms after the first.
		if admitted > 20 {
			t.Errorf("%v: %d admitted within a second of 10 a second", a, admitted)
		}
	}
}

// Many callers on one key, on a clock that runs: what is admitted stays within what the
// limit allows for the time that has passed, however the calls interleave.
func TestNeverMoreThanTheRate(t *testing.T) {
	line := clock.NewLine()
	s := newStore(t, WithClock(line))
	const rate, burst = 20_000, 100
	p := compile(t, escapement.Limit{Name: "rate", Rate: escapement.PerSecond(rate), Burst: burst})
	single := NewSingle(p, WithClock(line))
	for name, store := range map[string]escapement.FastStore{"store": s, "single": single} {
		from := line.Now()
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 4000 {
					d, err := store.DecideOne(t.Context(), claim(p, "hot", 1))
					if err != nil {
						t.Error(err)
						return
					}
					if d.Allowed {
						admitted.Add(1)
					}
				}
			})
		}
		wg.Wait()
		elapsed := int64(line.Now() - from)
		if most := burst + elapsed*rate/1_000_000 + 1; admitted.Load() > most {
			t.Errorf("%s: %d admitted in %d µs, at most %d are due", name, admitted.Load(), elapsed, most)
		}
	}
}

// Everything at once, for the race detector: claims, groups, new plans, resets, sweeps.
func TestEverythingAtOnce(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := newManual()
	s := newStore(t, WithClock(c), WithKeys(), WithMaxKeys(500))
	var wg sync.WaitGroup
	stop := make(chan struct{})
	limits := []escapement.Limit{
		{Name: "x", Rate: escapement.PerSecond(10)},
		{Name: "y", Algorithm: escapement.RollingWindow, Rate: escapement.PerSecond(10)},
		{Name: "z", Algorithm: escapement.RollingWindow, Rate: escapement.PerSecond(100)},
	}
	var plans [3]atomic.Pointer[escapement.Plan]
	for i, l := range limits {
		plans[i].Store(compile(t, l))
	}
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(g)))
			for range 500 {
				claims := make([]escapement.Claim, 1+r.IntN(4))
				for i := range claims {
					claims[i] = claim(plans[r.IntN(3)].Load(), strconv.Itoa(r.IntN(400)), r.Int64N(4))
				}
				var a [1]escapement.Answer
				s.Decide(t.Context(), []escapement.Request{{Claims: claims}}, a[:])
				if a[0].Outcome == escapement.Decided && len(a[0].Parts) != len(claims) {
					t.Errorf("%d decisions for %d claims", len(a[0].Parts), len(claims))
				}
			}
		})
	}
	var upkeep sync.WaitGroup
	upkeep.Go(func() {
		r := rand.New(rand.NewPCG(seed, 99))
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			k := r.IntN(3)
			l := limits[k]
			l.Rate.Count += int64(r.IntN(60))
			p, err := l.Compile()
			if err != nil {
				t.Error(err)
				return
			}
			plans[k].Store(p)
			if i%2 == 0 {
				s.Adopt(p)
			}
			s.Reset("x", strconv.Itoa(r.IntN(400)))
			if _, err := s.ResetPrefix("y", strconv.Itoa(r.IntN(9))); err != nil {
				t.Error(err)
			}
			sweepAll(s)
			s.Stats()
			c.Advance(10 * time.Millisecond)
		}
	})
	wg.Wait()
	close(stop)
	upkeep.Wait()
	c.Advance(time.Hour)
	sweepAll(s)
	if st := s.Stats(); st.Keys != 0 || st.Bytes != 0 || count(s) != 0 {
		t.Errorf("an hour later: %+v, %d records", st, count(s))
	}
}

// asked and answered are what porcupine sees of one call.
type asked struct{ mode, cost int }
type answered struct {
	allowed     bool
	units, left int64
}

// Calls on one key while time stands still must look as if they came one after another.
func TestLinearizable(t *testing.T) {
	const capacity = 12
	spec := porcupine.Model{
		Init: func() any { return int64(capacity) },
		Step: func(state, input, output any) (bool, any) {
			left, in, out := state.(int64), input.(asked), output.(answered)
			switch escapement.Mode(in.mode) {
			case escapement.Take:
				ok := left >= int64(in.cost)
				if ok {
					left -= int64(in.cost)
				}
				return out.allowed == ok && out.left == left, left
			case escapement.TakeUpTo:
				got := min(left, int64(in.cost))
				return out.units == got && out.left == left-got, left - got
			case escapement.Peek:
			case escapement.Charge, escapement.Refund: // not asked here
			}
			return out.left == left && out.allowed == (left >= int64(in.cost)), left
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v -> %+v", in, out) },
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, a := range []escapement.Algorithm{escapement.TokenBucket, escapement.FixedWindow, escapement.SlidingWindow, escapement.RollingWindow} {
		c := newManual()
		p := compile(t, escapement.Limit{Name: "one", Algorithm: a, Rate: escapement.Rate{Count: capacity, Per: 24 * time.Hour}})
		line := clock.NewLineFrom(still{})
		for name, store := range map[string]escapement.FastStore{"store": newStore(t, WithClock(c)), "single": NewSingle(p, WithClock(line))} {
			var mu sync.Mutex
			var history []porcupine.Operation
			var wg sync.WaitGroup
			for g := range 16 {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(seed, uint64(g)))
					for range 10 {
						in := asked{[]int{0, 0, 0, 1, 4}[r.IntN(5)], 1 + r.IntN(2)}
						call := int64(clock.Mono())
						d, err := store.DecideOne(t.Context(), escapement.Claim{Plan: p, Key: "k", Cost: int64(in.cost), Mode: escapement.Mode(in.mode)})
						ret := int64(clock.Mono())
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						history = append(history, porcupine.Operation{ClientId: g, Input: in, Call: call, Output: answered{d.Allowed, d.Units(), d.Remaining()}, Return: ret})
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			if got := porcupine.CheckOperationsTimeout(spec, history, time.Minute); got != porcupine.Ok {
				t.Errorf("%v, %s: %d calls: %s", a, name, len(history), got)
			}
		}
	}
}

// still is a machine on which no time passes.
type still struct{}

func (still) Mono() algo.Mono { return 0 }

func (still) Read() clock.Reading { return clock.Reading{Wall: 1_800_000_000_000_000_000} }

func TestNoAllocation(t *testing.T) {
	for _, a := range []escapement.Algorithm{escapement.TokenBucket, escapement.GCRA, escapement.FixedWindow, escapement.SlidingWindow, escapement.RollingWindow, escapement.Pacing} {
		for _, count := range []int64{10, 1_000_000} {
			l := escapement.Limit{Name: "alloc", Algorithm: a, Rate: escapement.Rate{Count: count, Per: 24 * time.Hour}}
			p := compile(t, l)
			for name, store := range map[string]escapement.FastStore{"store": newStore(t), "keyed": newStore(t, WithKeys()), "single": NewSingle(p)} {
				limiter := escapement.NewLimiter(store, p)
				limiter.Take(t.Context(), "k", 1)
				n := testing.AllocsPerRun(100, func() {
					limiter.Take(t.Context(), "k", 1)
					limiter.Take(t.Context(), "k", count)
					limiter.Peek(t.Context(), "k")
					limiter.TakeUpTo(t.Context(), "k", 1)
					limiter.Take(t.Context(), "unknown", 2*count)
				})
				if n != 0 {
					t.Errorf("%v of %d, %s: %v allocations", a, count, name, n)
				}
			}
		}
	}
}
