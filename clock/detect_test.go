package clock

import (
	"testing"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// at is a clean reading d after the start, with the wall clock off and the machine having
// slept so long.
func at(d, off, slept time.Duration) Reading {
	m := algo.Mono(d)
	return Reading{M0: m, Wall: epoch + int64(d+off) + 50, M1: m + 100, Boot: int64(d+slept) + 150, M2: m + 200, HasBoot: true}
}

func TestDetector(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	var d detector
	for _, c := range []struct {
		name    string
		r       Reading
		step    time.Duration
		suspend time.Duration
	}{
		{"the first reading shows nothing", at(0, 0, 0), 0, 0},
		{"a second", at(s, 0, 0), 0, 0},
		{"an idle hour is no jump", at(3600*s, 0, 0), 0, 0},
		{"+320 ms", at(3601*s, 320*ms, 0), 320 * ms, 0},
		{"reported once", at(3602*s, 320*ms, 0), 0, 0},
		{"-50 ms", at(3603*s, 270*ms, 0), -50 * ms, 0},
		{"-1 h", at(3604*s, 270*ms-3600*s, 0), -3600 * s, 0},
		{"0.9 ms is too little", at(3605*s, 270*ms-3600*s+900*time.Microsecond, 0), 0, 0},
		{"a sleep of 10 s", at(3606*s, 270*ms-3590*s+900*time.Microsecond, 10*s), 0, 10 * s},
		{"a sleep of 1 h, and +5 s in it", at(3607*s, 270*ms+15*s+900*time.Microsecond, 3610*s), 5 * s, 3600 * s},
		{"quiet", at(3608*s, 270*ms+15*s+900*time.Microsecond, 3610*s), 0, 0},
	} {
		f := d.observe(c.r)
		if f.step != int64(c.step) || f.suspend != int64(c.suspend) {
			t.Errorf("%s: step %v suspend %v, want %v and %v", c.name, time.Duration(f.step), time.Duration(f.suspend), c.step, c.suspend)
		}
	}
}

func TestDetectorWithoutBootClock(t *testing.T) {
	blind := func(d, off time.Duration) Reading {
		r := at(d, off, 0)
		r.HasBoot, r.Boot = false, 0
		return r
	}
	var d detector
	d.observe(blind(0, 0))
	f := d.observe(blind(time.Second, time.Hour))
	if f.step != int64(time.Hour) || !f.blind {
		t.Errorf("a sleep of an hour without a boot clock: %+v, want a step that says it is blind", f)
	}
}

// A pause in any of the gaps of a reading, of any length, is not an event, and neither does
// it hide a step that is larger than the drift allowed meanwhile.
func TestPauseAtAnyReading(t *testing.T) {
	for gap := range 5 {
		for _, pause := range []time.Duration{time.Microsecond, 15 * time.Microsecond, 150 * time.Microsecond, 6 * time.Millisecond, 2 * time.Second, time.Hour} {
			a := &pausing{axes: newAxes(), gap: gap, pause: int64(pause)}
			var d detector
			r, ok := look(a)
			if !ok {
				t.Fatalf("gap %d, pause %v: not read in %d tries", gap, pause, tries)
			}
			d.observe(r)
			for _, step := range []time.Duration{0, 5 * time.Millisecond, 0, -5 * time.Millisecond, 0} {
				if pause == time.Hour {
					step = 0 // after an hour unwatched, only drift of more than 2 s would be a step
				}
				a.armed = true
				a.pass(time.Second)
				a.step(step)
				r, ok := look(a)
				if !ok {
					t.Fatalf("gap %d, pause %v: not read in %d tries", gap, pause, tries)
				}
				f := d.observe(r)
				if f.suspend != 0 || abs(f.step-int64(step)) > int64(100*time.Microsecond) {
					t.Errorf("gap %d, pause %v, step %v: found step %v suspend %v", gap, pause, step, time.Duration(f.step), time.Duration(f.suspend))
				}
			}
		}
	}
}

// pausing pauses in one gap of the next reading.
type pausing struct {
	*axes
	gap   int
	pause int64
	armed bool
}

func (p *pausing) Read() Reading {
	gap := 0
	pass := func() int64 {
		if p.armed && gap == p.gap {
			p.armed = false
			p.mono += p.pause
			p.wall += p.pause
		}
		gap++
		return p.tick()
	}
	var r Reading
	r.M0 = algo.Mono(pass())
	pass()
	r.Wall = p.wall
	r.M1 = algo.Mono(pass())
	pass()
	r.Boot, r.HasBoot = p.mono+p.slept, true
	r.M2 = algo.Mono(pass())
	return r
}

func TestIsLeap(t *testing.T) {
	midnight := epoch/dayNS*dayNS + dayNS
	for _, c := range []struct {
		name       string
		step, wall int64
		armed      bool
		want       bool
	}{
		{"inserted", -secondNS, midnight - secondNS, true, true},
		{"deleted", secondNS, midnight + secondNS/10, true, true},
		{"nobody told the kernel", -secondNS, midnight, false, false},
		{"not at midnight", -secondNS, midnight + 3600*secondNS, true, false},
		{"not a second", -2 * secondNS, midnight, true, false},
	} {
		if got := isLeap(c.step, c.wall, c.armed); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
