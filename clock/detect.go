package clock

import (
	"time"

	"github.com/escapement-io/escapement/algo"
)

const (
	stepUnit      = int64(time.Millisecond) // a difference beyond this is a step
	driftAllowed  = 600_000                 // parts per 10^9 that wall and monotonic clock may part by themselves
	leapTolerance = int64(20 * time.Millisecond)
	secondNS      = int64(time.Second)
	dayNS         = 86400 * secondNS
)

// detector finds steps and suspends in a sequence of bracketed readings. It is pure.
//
// On Linux, wall minus monotonic is exactly constant but for steps, leap seconds and
// suspends: slewing changes the speed of both alike. What is left to tolerate is the delay
// between two readings, which the bracket bounds, and on other systems and in virtual
// machines a little drift. Readings of the wall clock are never compared with each other
// alone: a gap is not a jump.
type detector struct {
	wallMinusMono int64
	slept         int64 // boot minus monotonic at the last reading
	counted       int64 // the same when a suspend was last reported
	at            algo.Mono
	hasBoot       bool
	primed        bool
}

// found is what one reading showed; zero values mean nothing happened.
type found struct {
	step    int64         // signed
	suspend int64         // length
	since   time.Duration // since the reading before
	blind   bool          // no boot clock: a forward step may have been a suspend
}

// observe takes the next reading, which look must have accepted.
func (d *detector) observe(r Reading) found {
	wm, at := r.Wall-int64(r.mid()), r.mid()
	hasBoot := r.HasBoot && !r.frozen()
	if !d.primed {
		*d = detector{wallMinusMono: wm, at: at, hasBoot: hasBoot, primed: true}
		if hasBoot {
			d.slept, d.counted = r.slept(), r.slept()
		}
		return found{blind: !hasBoot}
	}
	f := found{since: time.Duration(at - d.at), blind: !hasBoot || !d.hasBoot}
	delta := wm - d.wallMinusMono
	if !f.blind {
		delta -= r.slept() - d.slept
		// Less than a unit may be the width of a bracket; it stays in the difference and is
		// reported when it adds up.
		if grown := r.slept() - d.counted; grown >= suspendUnit {
			f.suspend = grown
			d.counted = r.slept()
		}
	}
	// Drift is allowed for running time only: a resume moves wall and boot clock alike.
	limit := stepUnit + r.width()/2 + perBillion(int64(f.since), driftAllowed)
	if delta > limit || delta < -limit {
		f.step = delta
	}
	d.wallMinusMono, d.at, d.hasBoot = wm, at, hasBoot
	if hasBoot {
		d.slept = r.slept()
		if f.blind {
			d.counted = d.slept
		}
	}
	return f
}

// isLeap reports whether a step is a leap second: one second, at a midnight of UTC, while
// the kernel was told to expect one.
func isLeap(step, wall int64, armed bool) bool {
	if off := abs(step) - secondNS; !armed || abs(off) > leapTolerance {
		return false
	}
	sinceMidnight := wall % dayNS
	return sinceMidnight < 2*secondNS || sinceMidnight > dayNS-2*secondNS
}

// perBillion is d·ppb/10⁹, rounded down, for d ≥ 0 up to some 290 years and ppb ≥ 0. It
// splits d so that nothing overflows.
func perBillion(d, ppb int64) int64 {
	return d/secondNS*ppb + d%secondNS*ppb/secondNS
}

func abs(x int64) int64 {
	if x < 0 {
		return -x
	}
	return x
}
