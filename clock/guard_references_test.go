package clock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/clocktest"
)

func TestLargeStepOfASynchronisedClockIsFollowedAfterTenMinutes(t *testing.T) {
	s := tell(t, clock.Config{})
	s.m.SetKernel(synced)
	s.pass(10 * time.Second)
	s.state(clock.Synchronised)
	s.m.Step(time.Hour)
	s.pass(9 * time.Minute)
	s.saw(clock.Step)
	s.state(clock.Holdover)
	s.near("held", s.behind(), time.Hour, ms)
	s.pass(2 * time.Minute)
	s.saw(clock.Rebased)
	s.near("followed", s.behind(), 0, ms)
	if s.g.Epoch() != 1 {
		t.Errorf("epoch %d, want 1", s.g.Epoch())
	}
}

func TestTenMinutesStartAnewWhenTheClockIsSetAgain(t *testing.T) {
	s := tell(t, clock.Config{})
	s.m.SetKernel(synced)
	s.pass(10 * time.Second)
	s.m.Step(time.Hour)
	s.pass(9 * time.Minute)
	s.m.Step(2 * time.Hour)
	s.pass(9 * time.Minute)
	s.saw(clock.Step, clock.Step)
	s.pass(2 * time.Minute)
	s.saw(clock.Rebased)
	s.near("followed", s.behind(), 0, ms)
}

// A machine that boots with a wrong clock is set right when its clock is first synchronised.
func TestFirstAgreementIsFollowedAtOnce(t *testing.T) {
	s := tell(t, clock.Config{})
	s.pass(10 * time.Second)
	s.state(clock.Unknown)
	s.m.Step(365 * 24 * time.Hour)
	s.pass(time.Second)
	s.saw(clock.Step)
	s.m.SetKernel(synced)
	s.pass(2 * time.Second)
	s.saw(clock.Rebased)
	s.near("followed", s.behind(), 0, ms)
	s.state(clock.Synchronised)
}

func TestTwoReferencesRebaseForwardAtOnce(t *testing.T) {
	s := tell(t, clock.Config{}, "a", "b")
	s.pass(10 * time.Second)
	s.state(clock.Synchronised)
	s.m.Freeze(30 * time.Second)
	s.pass(11 * time.Second)
	e := s.saw(clock.Rebased)[0]
	s.near("rebased by", e.Size, 30*time.Second, 2*ms)
	s.near("and there it is", s.off(), 0, 2*ms)
}

func TestTwoReferencesRebaseBackwardAtHalfSpeed(t *testing.T) {
	m := clocktest.NewMachine()
	m.Step(10 * time.Second) // the wall clock starts ahead
	s := &story{t: t, m: m, refs: []*clocktest.Reference{m.Reference("a"), m.Reference("b")}}
	s.g = guardOn(t, m, clock.Config{References: []clock.Follow{{Reference: s.refs[0]}, {Reference: s.refs[1]}}})
	s.g.Subscribe(func(e clock.Event) { s.events = append(s.events, e) })
	s.pass(2 * time.Second)
	s.saw(clock.Rebased)
	s.state(clock.Slewing)
	from := s.g.Now()
	s.pass(10 * time.Second)
	s.near("ten seconds at half speed", time.Duration(s.g.Now()-from), 5*time.Second, 10*ms)
	s.pass(30 * time.Minute)
	s.near("half an hour later", s.off(), 0, 2*ms)
	s.saw()
	s.state(clock.Synchronised)
}

func TestWithoutABootClockASleepIsAStepAndDisrupts(t *testing.T) {
	s := tell(t, clock.Config{}, "a", "b")
	s.m.WithoutBoot()
	s.pass(10 * time.Second)
	s.m.Suspend(time.Hour)
	s.m.Advance(100 * ms)
	s.g.Check()
	if e := s.saw(clock.Step)[0]; !strings.Contains(e.Cause, "slept") {
		t.Errorf("the cause %q does not say that the machine may have slept", e.Cause)
	}
	s.state(clock.Disrupted)
	if s.g.Bound().Bounded() {
		t.Error("a disrupted bound claims to say something")
	}
	s.pass(20 * time.Second)
	s.saw(clock.Rebased)
	s.state(clock.Synchronised)
	s.near("the references have corrected it", s.off(), 0, 2*ms)
}

func TestBackupTakesOverAfterTwoRounds(t *testing.T) {
	s := tell(t, clock.Config{}, "primary", "second", "third")
	s.pass(10 * time.Second)
	s.refs[0].Set(400*ms, ms) // it lies
	s.pass(30 * time.Second)
	e := s.saw(clock.Switched)[0]
	if !strings.Contains(e.Cause, "primary") || !strings.Contains(e.Cause, "second") {
		t.Errorf("the cause %q does not name both", e.Cause)
	}
	s.near("unmoved", s.off(), 0, 2*ms)
	s.refs[0].Set(0, ms)
	s.pass(30 * time.Second)
	s.saw()
	for _, r := range s.g.Snapshot().References {
		if r.Followed != (r.Name == "second") {
			t.Errorf("%s followed: %v; a reference that agrees is kept", r.Name, r.Followed)
		}
	}
}

func TestOneBadRoundSwitchesNothing(t *testing.T) {
	s := tell(t, clock.Config{}, "primary", "second", "third")
	s.pass(10 * time.Second)
	s.refs[0].Set(400*ms, ms)
	s.measure()
	s.m.Advance(time.Second)
	s.g.Check()
	s.refs[0].Set(0, ms)
	s.pass(time.Minute)
	s.saw()
}

func TestHoldoverGrowsAndRecovers(t *testing.T) {
	s := tell(t, clock.Config{}, "a", "b")
	s.pass(10 * time.Second)
	before := s.g.Snapshot().ErrorBound
	for _, r := range s.refs {
		r.Fail(clock.ErrNoBound)
	}
	s.pass(1000 * time.Second)
	s.state(clock.Holdover)
	after := s.g.Snapshot().ErrorBound
	s.near("the bound grew by 200 ppm", after-before, 200*ms, 3*ms)
	for _, r := range s.refs {
		r.Fail(nil)
	}
	s.pass(10 * time.Second)
	s.state(clock.Synchronised)
	s.saw()
}

func TestReferencesOfOneGroupCountOnce(t *testing.T) {
	m := clocktest.NewMachine()
	a, b, honest := m.Reference("a"), m.Reference("b"), m.Reference("honest")
	a.Set(time.Minute, ms)
	b.Set(time.Minute, ms)
	g := guardOn(t, m, clock.Config{References: []clock.Follow{
		{Reference: a, Group: "one server"}, {Reference: b, Group: "one server"}, {Reference: honest},
	}})
	for range 30 {
		for _, r := range []*clocktest.Reference{a, b, honest} {
			s, err := r.Measure(t.Context())
			g.Learn(r.Name(), s, err)
		}
		m.Advance(time.Second)
		g.Check()
	}
	if off := time.Duration(int64(g.Now()) - m.Truth()); off.Abs() > 2*ms || g.Epoch() != 0 {
		t.Errorf("two clocks of one server outvoted an honest one: off by %v, epoch %d", off, g.Epoch())
	}
}

func TestMeasurementAcrossASuspendIsRefused(t *testing.T) {
	s := tell(t, clock.Config{}, "a", "b")
	s.pass(10 * time.Second)
	stale, _ := s.refs[0].Measure(t.Context())
	s.m.Suspend(time.Hour)
	s.pass(200 * ms)
	s.g.Learn("a", stale, nil)
	for _, r := range s.g.Snapshot().References {
		if r.Name == "a" && r.Problem == "" {
			t.Error("a measurement from before the suspend was accepted")
		}
	}
	s.near("unmoved", s.off(), 0, 2*ms)
}
