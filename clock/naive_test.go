package clock_test

import (
	"testing"
	"time"

	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/clocktest"
	"github.com/escapement-io/escapement/internal/naive"
)

// Recipes that are in circulation, each beside ours in the same world: the recipe must fail
// where it is said to fail, ours must not.

func TestSafeElapsedCeilingLosesADaysQuota(t *testing.T) {
	const perDay = 1000
	m := clocktest.NewMachine()
	l := clock.NewLineFrom(m)
	wall, line := m.Wall(), l.Now()
	m.Advance(24 * time.Hour)

	credit := float64(naive.Elapsed(m.Wall()/1e6, wall/1e6, 0)) / 86_400_000 * perDay
	if credit > 42 {
		t.Errorf("the ceiling credits %.1f of %d after an idle day: it was to lose most of them", credit, perDay)
	}
	if ours := float64(l.Now()-line) / 86_400e6 * perDay; ours < perDay-0.01 || ours > perDay+0.01 {
		t.Errorf("the line credits %.2f of %d", ours, perDay)
	}
}

func TestSafeElapsedDiscountStarvesASkewedNode(t *testing.T) {
	const skew = 3 * time.Second // of this node, stable and known
	m := clocktest.NewMachine()
	m.Step(skew)
	l := clock.NewLineFrom(m)
	wall, line := m.Wall(), l.Now()
	recipe, ours := 0.0, 0.0 // tokens at 10 per second, over a minute of calls
	for range 600 {
		m.Advance(100 * time.Millisecond)
		recipe += float64(naive.Elapsed(m.Wall()/1e6, wall/1e6, skew.Milliseconds())) / 100
		wall = m.Wall()
		now := l.Now()
		ours += float64(now-line) / 100e3
		line = now
	}
	if recipe != 0 {
		t.Errorf("the discount left %.0f tokens of 600: it was to leave none", recipe)
	}
	if ours < 599.9 || ours > 600.1 {
		t.Errorf("the line gives %.1f tokens of 600", ours)
	}
}

func TestSafeElapsedCreditsAStepUpToTheCeiling(t *testing.T) {
	m := clocktest.NewMachine()
	l := clock.NewLineFrom(m)
	wall, line := m.Wall(), l.Now()
	m.Advance(time.Second)
	m.Step(59 * time.Second)
	if seen := naive.Elapsed(m.Wall()/1e6, wall/1e6, 0); seen != 60_000 {
		t.Errorf("the recipe sees %d ms of a second: it was to believe the step", seen)
	}
	if ours := l.Now() - line; ours < 1_000_000 || ours > 1_000_010 {
		t.Errorf("the line sees %d µs of a second", ours)
	}
}

// naiveGuard is the recipe that freezes time, on a machine.
type naiveGuard struct {
	naive.Guard
	m *clocktest.Machine
}

func newNaiveGuard(m *clocktest.Machine, intended bool) *naiveGuard {
	return &naiveGuard{naive.Guard{Intended: intended, Last: m.Wall() / 1e6}, m}
}

func (g *naiveGuard) now() int64 { return g.Now(g.m.Wall()/1e6, int64(g.m.Elapsed())) }

// ours is a guard on a machine of its own that goes through the same history.
func ours(t *testing.T) (*clocktest.Machine, *clock.Guard, *int) {
	m := clocktest.NewMachine()
	g := guardOn(t, m, clock.Config{})
	steps := 0
	g.Subscribe(func(e clock.Event) {
		if e.Kind == clock.Step {
			steps++
		}
	})
	return m, g, &steps
}

func TestClockGuardAsWrittenJumpsByTheUptimeOnSilence(t *testing.T) {
	m := clocktest.NewMachine()
	m.Advance(10 * 24 * time.Hour) // uptime
	recipe := newNaiveGuard(m, false)
	before := recipe.now()
	m.Advance(6 * time.Millisecond) // silence
	if jump := recipe.now() - before; jump < 864_000_000 {
		t.Errorf("the recipe moved by %d ms: it was to move by the uptime", jump)
	}

	m, g, steps := ours(t)
	m.Advance(10 * 24 * time.Hour)
	g.Check()
	from := g.Now()
	m.Advance(6 * time.Millisecond)
	g.Check()
	if d := time.Duration(g.Now() - from); d < 6*time.Millisecond || d > 7*time.Millisecond || *steps != 0 {
		t.Errorf("ours moved by %v with %d steps reported", d, *steps)
	}
}

func TestClockGuardAsIntendedFreezesOnSilence(t *testing.T) {
	m := clocktest.NewMachine()
	recipe := newNaiveGuard(m, true)
	for range 100 {
		m.Advance(10 * time.Millisecond) // a request every 10 ms, no step at all
		recipe.now()
	}
	if !recipe.Frozen || recipe.Jumps == 0 {
		t.Error("the recipe was to mistake silence for a jump")
	}

	m, g, steps := ours(t)
	for range 100 {
		m.Advance(10 * time.Millisecond)
		g.Check()
	}
	if *steps != 0 {
		t.Errorf("ours reports %d steps", *steps)
	}
}

func TestClockGuardAsIntendedNeverComesBackFromAForwardStep(t *testing.T) {
	m := clocktest.NewMachine()
	recipe := newNaiveGuard(m, true)
	m.Step(320 * time.Millisecond)
	for range 900_000 {
		m.Advance(time.Millisecond)
		recipe.now()
	}
	if behind := m.Wall()/1e6 - recipe.now(); behind < 319 {
		t.Errorf("the recipe is %d ms behind after a quarter of an hour: it was to stay 320 behind", behind)
	}

	m, g, steps := ours(t)
	m.Step(320 * time.Millisecond)
	for range 9000 {
		m.Advance(100 * time.Millisecond)
		g.Check()
	}
	if behind := time.Duration(m.Wall() - int64(g.Now())); behind.Abs() > time.Millisecond || *steps != 1 {
		t.Errorf("ours is %v behind after a quarter of an hour, %d steps reported", behind, *steps)
	}
}

func TestClockGuardAsIntendedGoesBackWhenItThaws(t *testing.T) {
	m := clocktest.NewMachine()
	recipe := newNaiveGuard(m, true)
	var worst, last int64
	for i := range 200 {
		if i == 50 {
			m.Step(-50 * time.Millisecond)
		}
		m.Advance(time.Millisecond)
		now := recipe.now()
		worst = max(worst, last-now)
		last = now
	}
	if worst < 45 {
		t.Errorf("the recipe went back by %d ms at most: it was to go back by some 49", worst)
	}

	m, g, _ := ours(t)
	prev := g.Now()
	for i := range 200 {
		if i == 50 {
			m.Step(-50 * time.Millisecond)
		}
		m.Advance(time.Millisecond)
		g.Check()
		now := g.Now()
		if now < prev {
			t.Fatalf("ours went back by %v", time.Duration(prev-now))
		}
		prev = now
	}
}

func TestClockGuardAsIntendedMissesItsWayOut(t *testing.T) {
	m := clocktest.NewMachine()
	recipe := newNaiveGuard(m, true)
	for i := range 2000 {
		if i == 50 {
			m.Step(-50 * time.Millisecond)
		}
		m.Advance(7 * time.Millisecond)
		recipe.now()
	}
	if !recipe.Frozen {
		t.Error("the recipe was to be frozen 14 s later: calls every 7 ms miss its door of 5 ms")
	}

	m, g, steps := ours(t)
	for i := range 60_000 {
		if i == 50 {
			m.Step(-50 * time.Millisecond)
		}
		m.Advance(7 * time.Millisecond)
		g.Check()
	}
	if off := time.Duration(m.Wall() - int64(g.Now())); off.Abs() > time.Millisecond || *steps != 1 {
		t.Errorf("ours is %v off after seven minutes, %d steps reported", off, *steps)
	}
}

func TestClockGuardReportsOneFreezeForManySteps(t *testing.T) {
	m := clocktest.NewMachine()
	recipe := newNaiveGuard(m, true)
	mine, g, steps := ours(t)
	for range 5 {
		m.Step(time.Second)
		m.Advance(100 * time.Millisecond)
		recipe.now()
		mine.Step(time.Second)
		mine.Advance(100 * time.Millisecond)
		g.Check()
	}
	if recipe.Jumps != 1 || *steps != 5 {
		t.Errorf("five steps: the recipe reports %d, ours %d; want 1 and 5", recipe.Jumps, *steps)
	}
}

// One sample of an offset, without a bound of its error, raises an alarm whenever a reply is
// late. Ours takes the best of eight and knows how good it is.
func TestMeasureSkewBySingleSampleCriesWolf(t *testing.T) {
	const limit = 100 * time.Millisecond
	exchange := func(late bool) clock.Exchange {
		x := clock.Exchange{Before: 0, Remote: int64(100 * time.Microsecond), After: 200_000}
		if late { // the way back took 400 ms
			x.After += 400_000_000
		}
		return x
	}
	single := exchange(true)
	mid := int64(single.Before+single.After) / 2
	if skew := time.Duration(mid - single.Remote); skew < limit {
		t.Errorf("one late reply shows a skew of %v: it was to raise the alarm at %v", skew, limit)
	}

	var eight []clock.Exchange
	for i := range 8 {
		eight = append(eight, exchange(i == 3))
	}
	s, ok := clock.Best(eight)
	off := time.Duration(int64(s.At) - s.Time)
	if !ok || off != 0 || clock.Judge(off, s.Err, limit) != clock.Good {
		t.Errorf("best of eight: %v ± %v", off, s.Err)
	}
	s, _ = clock.Best([]clock.Exchange{exchange(true)})
	if got := clock.Judge(time.Duration(int64(s.At)-s.Time), s.Err, limit); got != clock.Uncertain {
		t.Errorf("a single late sample is judged %s, want uncertain", got)
	}
}
