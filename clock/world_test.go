package clock_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/clocktest"
)

// The virtual world. The long run is
//
//	go test ./clock -run TestWorld -v -timeout 1h -hours 2000 -steps 40000
var (
	worldHours = flag.Int("hours", 50, "virtual hours without steps, per kind of trouble")
	worldSteps = flag.Int("steps", 3000, "random steps to find")
	worldSeed  = flag.Uint64("seed", 0, "seed of the virtual worlds; 0 takes a new one")
)

func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := *worldSeed
	if seed == 0 {
		seed = rand.Uint64()>>1 + 1
	}
	t.Logf("seed %d; replay with: go test ./clock -run '^%s$' -seed %d -hours %d -steps %d",
		seed, strings.Split(t.Name(), "/")[0], seed, *worldHours, *worldSteps)
	return seed
}

// Pauses of up to 200 ms before 30 % of all readings, drift, and no step: no event.
func TestWorldWithoutStepsHasNoEvents(t *testing.T) {
	seed := seedOf(t)
	for _, c := range []struct {
		share      float64
		mono, wall float64 // ppm
	}{{0.001, 0, 0}, {0.05, 500, 500}, {0.3, 0, 0}, {0.3, 500, 500}, {0.3, -500, -500}} {
		t.Run(fmt.Sprintf("pauses %.3f drift %v", c.share, c.wall), func(t *testing.T) {
			m := clocktest.NewMachine()
			g := guardOn(t, m, clock.Config{})
			m.PauseRandomly(rand.New(rand.NewPCG(seed, 1)), c.share, 200*time.Millisecond)
			m.Drift(c.mono, c.wall)
			g.Subscribe(func(e clock.Event) {
				if e.Kind != clock.Unclear {
					t.Errorf("without a cause, after %v: %v", time.Duration(m.Elapsed()), e)
				}
			})
			for range *worldHours * 3600 {
				m.Advance(time.Second)
				g.Check()
			}
			s := g.Snapshot()
			t.Logf("%d hours: %d checks, %d unclear", *worldHours, s.Tally.Checks, s.Tally.Unclear)
			if s.Tally.Unclear == s.Tally.Checks {
				t.Error("every check was unclear, so nothing was shown")
			}
		})
	}
}

// The reading that ours replaces, a wall and a monotonic reading without a bracket, finds
// steps in the same world although there are none.
func TestWorldUnbracketedPairCriesWolf(t *testing.T) {
	seed := seedOf(t)
	m := clocktest.NewMachine()
	m.PauseRandomly(rand.New(rand.NewPCG(seed, 1)), 0.05, 200*time.Millisecond)
	false5ms, last := 0, int64(0)
	for i := range *worldHours * 3600 {
		m.Advance(time.Second)
		r := m.Read()
		d := r.Wall - int64(r.M1)
		if off := d - last; i > 0 && (off > 5e6 || off < -5e6) {
			false5ms++
		}
		last = d
	}
	t.Logf("%d hours without a step: the unbracketed pair reports %d", *worldHours, false5ms)
	if false5ms == 0 {
		t.Error("the unbracketed pair reported no step: this world is too quiet to show anything")
	}
}

// traveller walks one world and holds guarded time to its promises.
type traveller struct {
	t    *testing.T
	r    *rand.Rand
	m    *clocktest.Machine
	g    *clock.Guard
	refs []*clocktest.Reference
	lie  time.Duration // of the last reference, if any

	events []clock.Event
	last   algo.Wall
	lastAt [2]algo.Mono    // the reading of last was taken between these
	jumps  []time.Duration // that events have announced and that have not been seen yet
	half   int             // while positive, a rebase backward is under way
}

func newTraveller(t *testing.T, seed uint64) *traveller {
	r := rand.New(rand.NewPCG(seed, 7))
	w := &traveller{t: t, r: r, m: clocktest.NewMachine()}
	cfg := clock.Config{}
	for i := range r.IntN(4) {
		ref := w.m.Reference(fmt.Sprintf("ntp%d", i))
		off := time.Duration(r.Int64N(int64(8 * time.Millisecond)))
		ref.Set(off-4*time.Millisecond, 5*time.Millisecond)
		w.refs = append(w.refs, ref)
		cfg.References = append(cfg.References, clock.Follow{Reference: ref})
	}
	if n := len(w.refs); n >= 3 && r.IntN(2) == 0 {
		// A liar near the truth may narrow the agreement past it, which no vote can prevent.
		w.lie = 30*time.Millisecond + time.Duration(r.Int64N(int64(10*time.Second)))
		if r.IntN(2) == 0 {
			w.lie = -w.lie
		}
		w.refs[n-1].Set(w.lie, 5*time.Millisecond)
	}
	if r.IntN(2) == 0 { // it starts with a wrong wall clock, which references will correct
		w.m.Step(time.Duration(r.Int64N(int64(40*time.Second))) - 20*time.Second)
	}
	w.g = guardOn(t, w.m, cfg)
	w.g.Subscribe(func(e clock.Event) { w.events = append(w.events, e) })
	w.m.PauseRandomly(r, r.Float64()*0.3, time.Duration(1+r.Int64N(int64(100*time.Millisecond))))
	w.m.Drift(float64(r.IntN(200)-100), 0)
	w.lastAt[0] = w.m.Elapsed()
	w.last = w.g.Now()
	w.lastAt[1] = w.m.Elapsed()
	w.measure()
	return w
}

func (w *traveller) measure() {
	for _, ref := range w.refs {
		s, err := ref.Measure(w.t.Context())
		w.g.Learn(ref.Name(), s, err)
	}
}

// look reads guarded time and holds it to its promises: never back, at a bounded pace.
func (w *traveller) look() {
	w.t.Helper()
	from := w.m.Elapsed()
	now := w.g.Now()
	at := w.m.Elapsed()
	if now < w.last {
		w.t.Fatalf("guarded time went back by %v", time.Duration(w.last-now))
	}
	moved, most, least := int64(now-w.last), int64(at-w.lastAt[0]), int64(from-w.lastAt[1])
	slow := least - least/200
	if w.half > 0 {
		slow = least/2 - 1
	}
	fits := func(jump int64) bool {
		slack := int64(1)
		if jump != 0 {
			slack += int64(time.Millisecond)
		}
		return moved-jump <= most+most/200+slack && moved-jump >= slow-slack
	}
	if !w.land(fits) {
		w.t.Fatalf("guarded time moved by %v while %v passed (half speed: %v, jumps announced: %v)", time.Duration(moved), time.Duration(most), w.half > 0, w.jumps)
	}
	w.last, w.lastAt = now, [2]algo.Mono{from, at}
}

// land finds a set of the announced jumps, if possible empty, that explains a movement, and
// takes them off the list.
func (w *traveller) land(fits func(jump int64) bool) bool {
	for set := range 1 << len(w.jumps) {
		var sum int64
		var rest []time.Duration
		for i, j := range w.jumps {
			if set>>i&1 == 1 {
				sum += int64(j)
			} else {
				rest = append(rest, j)
			}
		}
		if fits(sum) {
			w.jumps = rest
			return true
		}
	}
	return false
}

// check runs one check of the guard and returns what it reported, and whether it was clear.
func (w *traveller) check() ([]clock.Event, bool) {
	before := w.g.Snapshot().Tally.Unclear
	w.events = nil
	w.g.Check()
	for _, e := range w.events {
		if e.Kind == clock.Suspend || e.Kind == clock.Rebased && e.Size > 0 {
			w.jumps = append(w.jumps, e.Size)
		}
		if e.Kind == clock.Rebased && e.Size < 0 {
			w.half = 3
		}
	}
	switch ppm := w.g.Snapshot().SlewPPM; {
	case ppm < -5001:
		w.half = 3
	case w.half > 0:
		w.half-- // a change takes effect a little after its check
	}
	return w.events, w.g.Snapshot().Tally.Unclear == before
}

// inBound holds the bound to its promise: while it is synchronised it contains the truth.
func (w *traveller) inBound() {
	w.t.Helper()
	early := w.m.Truth()
	b := w.g.Bound()
	late := w.m.Truth()
	if b.State != clock.Synchronised && b.State != clock.Slewing {
		return
	}
	if late < int64(b.Earliest) || early > int64(b.Latest) {
		w.t.Fatalf("the truth is outside the bound: %v before, %v after it, state %s",
			time.Duration(int64(b.Earliest)-late), time.Duration(early-int64(b.Latest)), b.State)
	}
}

func TestWorldFindsEveryStep(t *testing.T) {
	seed := seedOf(t)
	found, suspends, bounded, rebased := 0, 0, 0, uint64(0)
	for world := uint64(0); found < *worldSteps; world++ {
		w := newTraveller(t, seed+world)
		for range 300 {
			w.m.Advance(time.Duration(1 + w.r.Int64N(int64(time.Second))))
			if w.r.IntN(5) == 0 {
				w.measure()
			}
			var step, sleep time.Duration
			switch w.r.IntN(25) {
			case 0: // large
				step = 2*time.Millisecond + time.Duration(w.r.Int64N(int64(60*time.Second)))
			case 1: // small, as small as can be told when some checks are unclear
				step = 3*time.Millisecond + time.Duration(w.r.Int64N(int64(time.Millisecond)))
			case 2:
				sleep = 2*time.Millisecond + time.Duration(w.r.Int64N(int64(time.Hour)))
			case 3: // a step during a suspend
				step = 2*time.Millisecond + time.Duration(w.r.Int64N(int64(60*time.Second)))
				sleep = 2*time.Millisecond + time.Duration(w.r.Int64N(int64(time.Hour)))
			}
			if w.r.IntN(2) == 0 {
				step = -step
			}
			w.look()
			w.m.Step(step)
			w.m.Suspend(sleep)
			w.look()
			found += w.expect(step, sleep)
			if w.r.IntN(100) == 0 {
				w.freeze()
			}
			if sleep != 0 {
				suspends++
			}
			w.look()
			w.inBound()
			if w.g.Bound().State == clock.Synchronised {
				bounded++
			}
		}
		rebased += w.g.Snapshot().Tally.Rebases
	}
	t.Logf("%d steps found, %d suspends, %d rebases, truth in the bound in %d synchronised looks", found, suspends, rebased, bounded)
	if bounded == 0 || suspends == 0 || rebased == 0 {
		t.Error("no world was synchronised, slept or rebased: nothing was shown about them")
	}
}

// freeze lets time pass that no clock of the machine counts; only references can tell. They
// are asked, and guarded time is aimed again, before anything is held to the bound.
func (w *traveller) freeze() {
	w.m.Freeze(time.Duration(w.r.Int64N(int64(10 * time.Second))))
	w.measure()
	w.m.Advance(1100 * time.Millisecond)
	w.look()
	w.expect(0, 0)
	w.look()
}

// expect checks until a check is clear and compares what was reported with what happened.
func (w *traveller) expect(step, sleep time.Duration) (found int) {
	w.t.Helper()
	var seen []clock.Event
	for clear := false; !clear; {
		var events []clock.Event
		events, clear = w.check()
		for _, e := range events {
			if e.Kind == clock.Step || e.Kind == clock.Suspend || e.Kind == clock.Leap {
				seen = append(seen, e)
			}
		}
	}
	match := func(kind clock.Kind, size time.Duration) {
		w.t.Helper()
		if size == 0 {
			return
		}
		for i, e := range seen {
			if e.Kind == kind && (e.Size-size).Abs() <= time.Millisecond {
				seen = append(seen[:i], seen[i+1:]...)
				return
			}
		}
		w.t.Fatalf("a %s of %v was not reported; seen: %v", kind, size, seen)
	}
	match(clock.Suspend, sleep)
	match(clock.Step, step)
	if len(seen) != 0 {
		w.t.Fatalf("after a step of %v and a sleep of %v, reported without a cause: %v", step, sleep, seen)
	}
	if step != 0 {
		return 1
	}
	return 0
}

// At ten checks a second a step of 1.2 ms is found, whatever the clocks do besides.
func TestWorldFindsStepsOfATwelfthOfACentisecond(t *testing.T) {
	seed := seedOf(t)
	r := rand.New(rand.NewPCG(seed, 3))
	m := clocktest.NewMachine()
	g := guardOn(t, m, clock.Config{})
	m.PauseRandomly(r, 0.05, 10*time.Millisecond)
	var seen []clock.Event
	g.Subscribe(func(e clock.Event) {
		if e.Kind != clock.Unclear {
			seen = append(seen, e)
		}
	})
	for i := range 2000 {
		for range 1 + r.IntN(20) {
			m.Advance(100 * time.Millisecond)
			g.Check()
		}
		if len(seen) != 0 {
			t.Fatalf("round %d: reported without a cause: %v", i, seen)
		}
		step := 1200 * time.Microsecond
		if r.IntN(2) == 0 {
			step = -step
		}
		m.Step(step)
		before := g.Snapshot().Tally.Unclear
		g.Check()
		if g.Snapshot().Tally.Unclear != before {
			m.Step(-step) // not seen, hence not a step
			continue
		}
		if len(seen) != 1 || (seen[0].Size-step).Abs() > 200*time.Microsecond {
			t.Fatalf("round %d: a step of %v gave %v", i, step, seen)
		}
		seen = nil
	}
}

func guardOn(t *testing.T, m *clocktest.Machine, cfg clock.Config) *clock.Guard {
	t.Helper()
	cfg.Source = m
	g, err := clock.NewGuard(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
