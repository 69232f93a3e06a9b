package clock_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/clocktest"
)

const ms = time.Millisecond

// story is a guard on a scripted machine, with what it reported so far.
type story struct {
	t      *testing.T
	m      *clocktest.Machine
	g      *clock.Guard
	refs   []*clocktest.Reference
	events []clock.Event
}

func tell(t *testing.T, cfg clock.Config, references ...string) *story {
	t.Helper()
	s := &story{t: t, m: clocktest.NewMachine()}
	for _, name := range references {
		if name == "system" {
			cfg.References = append(cfg.References, clock.Follow{Reference: clock.System()})
			continue
		}
		r := s.m.Reference(name)
		s.refs = append(s.refs, r)
		cfg.References = append(cfg.References, clock.Follow{Reference: r})
	}
	s.g = guardOn(t, s.m, cfg)
	s.g.Subscribe(func(e clock.Event) { s.events = append(s.events, e) })
	return s
}

// pass lets time pass with ten checks a second; references are measured every ten seconds.
func (s *story) pass(d time.Duration) {
	for i := range int(d / (100 * ms)) {
		if i%100 == 0 {
			s.measure()
		}
		s.m.Advance(100 * ms)
		s.g.Check()
	}
}

func (s *story) measure() {
	for _, r := range s.refs {
		got, err := r.Measure(s.t.Context())
		s.g.Learn(r.Name(), got, err)
	}
}

// behind is the raw wall clock minus guarded time.
func (s *story) behind() time.Duration { return time.Duration(s.m.Wall() - int64(s.g.Now())) }

// off is guarded time minus the truth.
func (s *story) off() time.Duration { return time.Duration(int64(s.g.Now()) - s.m.Truth()) }

func (s *story) near(what string, got, want, within time.Duration) {
	s.t.Helper()
	if (got - want).Abs() > within {
		s.t.Errorf("%s: %v, want %v ± %v", what, got, want, within)
	}
}

func (s *story) state(want clock.State) {
	s.t.Helper()
	if got := s.g.Bound().State; got != want {
		s.t.Errorf("state %s, want %s", got, want)
	}
}

// saw compares the kinds reported since the last call, and forgets them.
func (s *story) saw(want ...clock.Kind) []clock.Event {
	s.t.Helper()
	var got []string
	for _, e := range s.events {
		got = append(got, string(e.Kind))
	}
	var names []string
	for _, k := range want {
		names = append(names, string(k))
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		s.t.Fatalf("events %v, want %v", s.events, want)
	}
	seen := s.events
	s.events = nil
	return seen
}

var synced = clock.KernelState{Known: true, Synchronised: true, MaxError: 5 * ms}

func TestForwardStepIsSlewedOverTenMinutes(t *testing.T) {
	s := tell(t, clock.Config{})
	s.pass(10 * time.Second)
	s.m.Step(320 * ms)
	s.near("at the moment of the step", s.behind(), 320*ms, ms)
	s.pass(time.Second)
	e := s.saw(clock.Step)[0]
	if e.Size != 320*ms || e.Direction() != "forward" || e.Level != clock.Critical {
		t.Errorf("reported %+v, want +320ms, forward, critical", e)
	}
	if e.After-e.Before != int64(320*ms) {
		t.Errorf("before %d and after %d are %v apart", e.Before, e.After, time.Duration(e.After-e.Before))
	}
	s.near("a second later", s.behind(), 320*ms, ms)
	s.pass(5 * time.Minute)
	s.near("five minutes later", s.behind(), 160*ms, ms)
	s.pass(4 * time.Minute)
	s.near("nine minutes later", s.behind(), 32*ms, ms)
	s.pass(61 * time.Second)
	s.near("ten minutes later", s.behind(), 0, ms)
	s.saw()
}

func TestBackwardStepNeverTakesTimeBack(t *testing.T) {
	s := tell(t, clock.Config{})
	s.pass(10 * time.Second)
	last := s.g.Now()
	s.m.Step(-50 * ms)
	for range 3000 {
		s.m.Advance(ms)
		now := s.g.Now()
		if d := time.Duration(now - last); d < 995*time.Microsecond || d > 1006*time.Microsecond {
			t.Fatalf("guarded time moved by %v in a millisecond", d)
		}
		last = now
		s.g.Check()
	}
	if e := s.saw(clock.Step)[0]; e.Size != -50*ms || e.Level != clock.Warning {
		t.Errorf("reported %+v, want -50ms, warning", e)
	}
	s.pass(2 * time.Minute)
	s.near("two minutes later", s.behind(), 0, ms)
}

func TestLargeStepWithoutAWitnessIsHeld(t *testing.T) {
	s := tell(t, clock.Config{})
	s.pass(10 * time.Second)
	s.m.Step(-time.Hour)
	s.pass(20 * time.Minute)
	s.saw(clock.Step)
	s.near("nobody confirms it", s.behind(), -time.Hour, ms)
	s.near("so guarded time keeps to the truth", s.off(), 0, 5*ms)
	s.state(clock.Unknown)
	if s.g.Epoch() != 0 {
		t.Error("the epoch grew without a rebase")
	}
}

func TestSuspendIsCountedAtOnce(t *testing.T) {
	s := tell(t, clock.Config{}, "a", "b")
	s.pass(10 * time.Second)
	s.m.Suspend(time.Hour)
	s.m.Advance(ms)
	s.g.Check()
	s.m.Advance(ms)
	e := s.saw(clock.Suspend)[0]
	s.near("slept", e.Size, time.Hour, ms)
	s.near("counted", s.off(), 0, 2*ms)
	if b := s.g.Bound(); b.State != clock.Synchronised || int64(b.Earliest) > s.m.Truth() || int64(b.Latest) < s.m.Truth() {
		t.Errorf("the bound %+v does not hold the truth %d", b, s.m.Truth())
	}
	if s.g.Epoch() != 0 {
		t.Error("a suspend is no rebase")
	}
}

func TestSuspendCanBeIgnored(t *testing.T) {
	s := tell(t, clock.Config{IgnoreSuspend: true})
	s.pass(10 * time.Second)
	s.m.Suspend(time.Hour)
	s.pass(10 * time.Second)
	s.saw(clock.Suspend)
	s.near("left out", s.behind(), time.Hour, ms)
}

func TestLeapSecond(t *testing.T) {
	s := tell(t, clock.Config{})
	k := synced
	k.LeapArmed = true
	s.m.SetKernel(k)
	const day = int64(24 * time.Hour)
	s.m.Advance(time.Duration(day - clocktest.Epoch%day))
	s.g.Check()
	s.m.Step(-time.Second)
	s.pass(100 * ms)
	if e := s.saw(clock.Leap)[0]; e.Size != -time.Second {
		t.Errorf("reported %+v", e)
	}
}

func TestThirdStepInAMinuteIsCritical(t *testing.T) {
	s := tell(t, clock.Config{Warning: 20 * ms})
	var levels []clock.Level
	for range 3 {
		s.m.Step(6 * ms)
		s.pass(10 * time.Second)
		levels = append(levels, s.saw(clock.Step)[0].Level)
	}
	if levels[0] != clock.Info || levels[1] != clock.Info || levels[2] != clock.Critical {
		t.Errorf("levels %v, want info, info, critical", levels)
	}
}

func TestUnclearIsReportedOncePerRun(t *testing.T) {
	s := tell(t, clock.Config{})
	blind := func(checks int) {
		for range checks {
			for i := range 8 {
				s.m.PauseAt(5*i+1, 10*ms)
			}
			s.g.Check()
		}
	}
	blind(3)
	s.saw(clock.Unclear)
	s.pass(100 * ms)
	blind(1)
	s.saw(clock.Unclear)
	if n := s.g.Snapshot().Tally.Unclear; n != 4 {
		t.Errorf("%d unclear checks counted, want 4", n)
	}
}

func TestSubscribersMayLookAndCancel(t *testing.T) {
	m := clocktest.NewMachine()
	g := guardOn(t, m, clock.Config{})
	calls := 0
	var cancel func()
	cancel = g.Subscribe(func(clock.Event) {
		calls++
		if g.Snapshot().Tally.StepsForward != 1 {
			t.Error("the snapshot does not count the step")
		}
		cancel()
	})
	for range 2 {
		m.Step(time.Second / 2)
		m.Advance(time.Second)
		g.Check()
	}
	if calls != 1 {
		t.Errorf("called %d times, want once", calls)
	}
}

func TestSnapshotAsJSON(t *testing.T) {
	s := tell(t, clock.Config{}, "system", "ntp a")
	s.m.SetKernel(synced)
	s.pass(2 * time.Second)
	b, err := json.Marshal(s.g.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"state":"synchronised"`, `"votes":2`, `"name":"ntp a"`, `"counts_suspends":true`, `"max_error_ns":5000000`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s is missing in %s", want, b)
		}
	}
}

func TestConfigReportsEveryProblemAtOnce(t *testing.T) {
	m := clocktest.NewMachine()
	_, err := clock.NewGuard(clock.Config{
		References: []clock.Follow{{Reference: m.Reference("a"), Every: time.Millisecond}, {Reference: m.Reference("a")}, {}},
		Warning:    time.Second, Critical: ms, CheckEvery: time.Hour, DriftPPM: -1,
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"references[0]", "references[1]", "references[2]", "warning", "check every", "drift"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
}

// alwaysWide is a source that cannot be read closely.
type alwaysWide struct{ *clocktest.Machine }

func (a alwaysWide) Read() clock.Reading {
	a.PauseAt(1, time.Second)
	return a.Machine.Read()
}

func TestUnreadableClocksAreAnError(t *testing.T) {
	_, err := clock.NewGuard(clock.Config{Source: alwaysWide{clocktest.NewMachine()}})
	if !errors.Is(err, clock.ErrUnreadable) {
		t.Errorf("got %v, want ErrUnreadable", err)
	}
}

func TestRunChecksMeasuresAndStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tell(t, clock.Config{}, "a", "b")
		done := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { s.g.Run(ctx); close(done) }()
		sleep := func(d time.Duration) {
			for range d / (10 * ms) {
				time.Sleep(10 * ms)
				s.m.Advance(10 * ms)
			}
			synctest.Wait()
		}
		sleep(5 * time.Second)
		s.state(clock.Synchronised)
		asked := s.refs[0].Asked()
		s.m.Step(320 * ms)
		synctest.Wait() // by the hint, without any time passing
		if e := s.saw(clock.Step)[0]; !strings.Contains(e.Cause, "timer") {
			t.Errorf("the step was %s, want by the hint", e.Cause)
		}
		sleep(2 * time.Second)
		if s.refs[0].Asked() == asked {
			t.Error("the references were not asked after the step")
		}
		asked = s.refs[0].Asked()
		sleep(10 * time.Minute)
		if n := s.refs[0].Asked() - asked; n < 7 || n > 12 {
			t.Errorf("asked %d times in ten minutes, want one in 64 s ± 10 %%", n)
		}
		s.near("kept to the references", s.off(), 0, 2*ms)
		cancel()
		<-done
	})
}
