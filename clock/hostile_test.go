package clock_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/clocktest"
)

// Whatever references claim, guarded time never goes back, stays a time, and its bound
// contains it.
func TestHostileSamplesDoNoHarm(t *testing.T) {
	seed := seedOf(t)
	r := rand.New(rand.NewPCG(seed, 5))
	extreme := []int64{0, 1, -1, math.MinInt64, math.MaxInt64, math.MinInt64 / 2, math.MaxInt64 / 2, 1e18, -1e18, 1e9, -1e9}
	any64 := func(near int64) int64 {
		switch r.IntN(4) {
		case 0:
			return extreme[r.IntN(len(extreme))]
		case 1:
			return int64(r.Uint64())
		}
		return near + r.Int64N(20e9) - 10e9
	}
	for world := range 300 {
		m := clocktest.NewMachine()
		cfg := clock.Config{}
		n := 1 + r.IntN(4)
		for i := range n {
			cfg.References = append(cfg.References, clock.Follow{Reference: m.Reference(fmt.Sprint(i))})
		}
		g := guardOn(t, m, cfg)
		last := g.Now()
		begin := m.Truth()
		var said []string
		for range 60 {
			s := clock.Sample{At: algo.Mono(any64(int64(m.Elapsed()))), Time: any64(m.Truth()), Err: time.Duration(any64(0)), RTT: time.Duration(any64(0))}
			for i := range n { // often several with one voice
				if r.IntN(2) == 0 {
					g.Learn(fmt.Sprint(i), s, nil)
					said = append(said, fmt.Sprintf("%d: %+v", i, s))
				}
			}
			m.Advance(time.Duration(r.Int64N(int64(2 * time.Second))))
			g.Check()
			now := g.Now()
			b := g.Bound()
			after := g.Now()
			switch {
			case now < last:
				t.Fatalf("world %d: guarded time went back from %d to %d after %v", world, last, now, said)
			case int64(now) < begin || int64(now) > int64(algo.MaxInstant)*1000+int64(200*time.Second):
				t.Fatalf("world %d: guarded time is %d after %v", world, now, said)
			case b.Earliest > after || b.Latest < now:
				t.Fatalf("world %d: bound %+v does not hold %d after %v", world, b, now, said)
			}
			last = after
		}
	}
}
