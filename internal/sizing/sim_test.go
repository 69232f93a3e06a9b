package sizing

import (
	"fmt"
	"testing"
	"time"

	"github.com/escapement-io/escapement/internal/sim"
)

// simulated runs what a setup describes in virtual time.
func simulated(t *testing.T, s Setup, kind sim.LoadKind, seeds int) *sim.Result {
	t.Helper()
	window := sim.Window(s.Window)
	if s.rolls() {
		window = sim.Rolling
	}
	windows := max(20, int(20*time.Second/s.Per))
	w := sim.Setup{Instances: s.Instances, Limit: s.Limit, Per: s.Per, Window: window, Mode: sim.Mode(s.Mode), Sync: s.Sync, Phases: sim.Hashed,
		For: time.Duration(windows) * s.Per, Warmup: 3 * s.Per, Seeds: seeds, Load: sim.Load{Kind: kind, Rate: s.Rate},
		Network: sim.Network{Latency: 200 * time.Microsecond, Jitter: 50 * time.Microsecond, Timeout: 50 * time.Millisecond}}
	r, err := w.Run(1)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// compared is a setup with how far the simulation may lie outside the range that its plan
// gives, in points, and how far its round trips from the estimate, in parts of it.
type compared struct {
	setup  Setup
	points float64
	trips  float64
}

// grid is N, interval, load and window in all combinations, and the edges.
func grid() (all []compared) {
	for _, l := range []struct {
		limit int64
		per   time.Duration
	}{{500, time.Second}, {1000, 10 * time.Second}} {
		for _, n := range []int{2, 12} {
			for _, share := range []time.Duration{5, 20, 50} {
				for _, load := range []float64{0.5, 1, 1.2, 1.6, 3} {
					rate := load * float64(l.limit) / l.per.Seconds()
					s := Setup{Instances: n, Rate: rate, Limit: l.limit, Per: l.per, Sync: l.per / share}
					with := func(m Mode, w Window) Setup { s := s; s.Mode, s.Window = m, w; return s }
					more := 0.0
					if load == 1 {
						more = 2 // of random demand around the limit no limiter admits all
					}
					all = append(all, compared{with(Delayed, Fixed), 1.5 + more, 0.1}, compared{with(Delayed, Sliding), 2 + more, 0.1},
						compared{with(Lease, Fixed), 1 + more, 0.2}, compared{with(Lease, Rolling), 2 + more, 0.3})
				}
			}
		}
	}
	for _, n := range []int{2, 5, 42} { // an interval of two fifths of the window, and many instances
		long := Setup{Instances: n, Rate: 160, Limit: 1000, Per: 10 * time.Second, Sync: 4 * time.Second, Mode: Lease, Window: Fixed}
		all = append(all, compared{long, 1, 0.3})
		long.Window = Rolling
		all = append(all, compared{long, 2, 0.3})
		all = append(all, compared{Setup{Instances: n, Rate: 800, Limit: 500, Per: time.Second, Sync: 200 * time.Millisecond, Mode: Delayed, Window: Fixed}, 1, 0.1})
	}
	return all
}

// TestFormulasAgreeWithSimulation holds steady error, worst case and round trips to what
// instances do in virtual time, at random demand.
func TestFormulasAgreeWithSimulation(t *testing.T) {
	for _, c := range grid() {
		s := c.setup
		p, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		r := simulated(t, s, sim.Poisson, 2)
		// Of demand below the limit, what is admitted is a part of what came.
		got := 100 * (r.Mean/s.aim() - 1)
		if s.perWindow() < float64(s.Limit) {
			got = -100 * float64(r.Refused+r.NoStore) / float64(r.Offered)
		}
		name := fmt.Sprintf("%s %s, N=%d, %d per %v at %.0f/s every %v", s.Mode, s.Window, s.Instances, s.Limit, s.Per, s.Rate, s.Sync)
		t.Logf("%-70s planned %+6.2f (%+6.2f to %+6.2f) simulated %+6.2f; trips %.2f and %.2f", name, p.Steady.Error, p.Steady.From, p.Steady.To, got, p.RoundTrips.About, r.Calls)
		if got < p.Steady.From-c.points || got > p.Steady.To+c.points {
			t.Errorf("%s: simulated %+.2f %%, planned %+.2f to %+.2f", name, got, p.Steady.From, p.Steady.To)
		}
		if r.Over > p.Worst.Over || r.OverAny > 100*(p.Worst.AnySpan/float64(s.Limit)-1) {
			t.Errorf("%s: simulated %+.2f %% in a window and %+.2f %% in a span, the worst case is %+.2f %% and %.0f", name, r.Over, r.OverAny, p.Worst.Over, p.Worst.AnySpan)
		}
		if a := p.RoundTrips.About; r.Calls < a*(1-c.trips) || r.Calls > a*(1+c.trips) || r.Calls > 1.02*p.RoundTrips.Most {
			t.Errorf("%s: simulated %.2f round trips/s, planned %.2f and at most %.2f", name, r.Calls, a, p.RoundTrips.Most)
		}
	}
}
