package clocktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/escapement-io/escapement/clock"
)

// axes are the four times of a machine, relative to its start.
type axes struct{ truth, wall, mono, boot time.Duration }

func read(m *Machine) axes {
	return axes{
		truth: time.Duration(m.Truth() - Epoch), wall: time.Duration(m.Wall() - Epoch),
		mono: time.Duration(m.Elapsed()), boot: time.Duration(int64(m.Elapsed()) + m.slept),
	}
}

func TestAxesAreIndependent(t *testing.T) {
	const s = time.Second
	m := NewMachine()
	for _, c := range []struct {
		name string
		do   func()
		want axes
	}{
		{"advance", func() { m.Advance(10 * s) }, axes{10 * s, 10 * s, 10 * s, 10 * s}},
		{"step", func() { m.Step(-3 * s) }, axes{10 * s, 7 * s, 10 * s, 10 * s}},
		{"suspend", func() { m.Suspend(5 * s) }, axes{15 * s, 12 * s, 10 * s, 15 * s}},
		{"freeze", func() { m.Freeze(2 * s) }, axes{17 * s, 12 * s, 10 * s, 15 * s}},
		{"slew of both clocks", func() { m.Drift(1000, 0); m.Advance(1000 * s) }, axes{1017 * s, 1013 * s, 1011 * s, 1016 * s}},
		{"drift of the wall clock", func() { m.Drift(0, -1000); m.Advance(1000 * s) }, axes{2017 * s, 2012 * s, 2011 * s, 2016 * s}},
	} {
		c.do()
		if got := read(m); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestPauseStrikesTheReadingItNames(t *testing.T) {
	for n := range 5 {
		m := NewMachine()
		m.PauseAt(n, time.Millisecond)
		r := m.Read()
		wall, boot := r.Wall-Epoch, r.Boot
		at := []int64{int64(r.M0), wall, int64(r.M1), boot, int64(r.M2)}
		for i, v := range at {
			want := int64(50 * (i + 1))
			if i >= n {
				want += int64(time.Millisecond)
			}
			if v != want {
				t.Errorf("pause at %d: reading %d is %d, want %d", n, i, v, want)
			}
		}
		if again := m.Read(); again.M2-again.M0 != 200 {
			t.Errorf("pause at %d struck twice", n)
		}
	}
}

func TestRandomPausesReplay(t *testing.T) {
	run := func() (at []clock.Reading) {
		m := NewMachine()
		m.PauseRandomly(rand.New(rand.NewPCG(1, 2)), 0.3, time.Second)
		for range 100 {
			at = append(at, m.Read())
		}
		return at
	}
	a, b := run(), run()
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("reading %d differs: %+v and %+v", i, a[i], b[i])
		}
	}
	if a[99].M2 < 1e9 {
		t.Errorf("hardly a pause in 500 readings: %v", a[99].M2)
	}
}

func TestWithoutBoot(t *testing.T) {
	m := NewMachine()
	m.WithoutBoot()
	if r := m.Read(); r.HasBoot || r.Boot != 0 {
		t.Errorf("%+v", r)
	}
}

func TestReference(t *testing.T) {
	m := NewMachine()
	m.Advance(time.Hour)
	m.Step(time.Minute)
	r := m.Reference("ntp")
	r.Set(3*time.Second, time.Millisecond)
	s, err := r.Measure(context.Background())
	if err != nil || s.Time != m.Truth()+int64(3*time.Second) || s.At != m.Elapsed() || s.Err != time.Millisecond {
		t.Errorf("%+v, %v", s, err)
	}
	broken := errors.New("broken")
	r.Fail(broken)
	if _, err := r.Measure(context.Background()); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if r.Asked() != 2 {
		t.Errorf("asked %d times", r.Asked())
	}
}
