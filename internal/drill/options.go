package drill

import (
	"errors"
	"fmt"
	"time"

	"github.com/escapement-io/escapement/clock"
)

// Change is what happens to the clocks of the process: a step, a suspend or a drift. One
// field is set, none is no change.
type Change struct {
	Step    time.Duration // of the wall clock
	Suspend time.Duration // the wall and the boot clock go on, the monotonic clock does not
	Drift   int           // of the wall clock against the monotonic one from now on, in ppm
}

// The bounds of changes. A guard tells every step of two milliseconds from a drift, and no
// drift within its allowance from none.
const (
	minChange = 2 * time.Millisecond
	maxChange = 100 * 365 * 24 * time.Hour
	maxDrift  = 500
)

func (c Change) check() error {
	set := 0
	for _, is := range []bool{c.Step != 0, c.Suspend != 0, c.Drift != 0} {
		if is {
			set++
		}
	}
	switch {
	case set != 1:
		return fmt.Errorf("drill: a change of nothing, or of several clocks at once; use a step, a suspend or a drift")
	case c.Step != 0 && (c.Step.Abs() < minChange || c.Step.Abs() > maxChange):
		return fmt.Errorf("drill: a step of %v; use %v to %v, either way", c.Step, minChange, maxChange)
	case c.Suspend != 0 && (c.Suspend < minChange || c.Suspend > maxChange):
		return fmt.Errorf("drill: a suspend of %v; use %v to %v", c.Suspend, minChange, maxChange)
	case c.Drift < -maxDrift || c.Drift > maxDrift:
		return fmt.Errorf("drill: a drift of %d ppm; use at most %d ppm, either way", c.Drift, maxDrift)
	}
	return nil
}

// String is short, for tables.
func (c Change) String() string {
	switch {
	case c.Suspend != 0:
		return "suspend " + length(c.Suspend)[1:]
	case c.Drift != 0:
		return fmt.Sprintf("drift %+dppm", c.Drift)
	case c.Step != 0:
		return length(c.Step)
	}
	return "none"
}

func length(d time.Duration) string {
	if d%time.Second == 0 {
		return fmt.Sprintf("%+ds", d/time.Second)
	}
	return fmt.Sprintf("%+gms", ms(d))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// control is what skewrun is told.
func (c Change) control() (verb, value string) {
	switch {
	case c.Suspend != 0:
		return "suspend", fmt.Sprintf("%dns", c.Suspend.Nanoseconds())
	case c.Drift != 0:
		return "rate", fmt.Sprintf("%dppm", c.Drift)
	}
	return "step", fmt.Sprintf("%+dns", c.Step.Nanoseconds())
}

// event is what a guard has to report.
func (c Change) event() (kind clock.Kind, size time.Duration, any bool) {
	switch {
	case c.Suspend != 0:
		return clock.Suspend, c.Suspend, true
	case c.Step != 0:
		return clock.Step, c.Step, true
	}
	return "", 0, false
}

// Options says what to drill.
type Options struct {
	Limit   Limit
	Rate    int           // requests per second, on a fixed schedule
	Phase   time.Duration // how long the load lasts before the first change and after each
	Changes []Change      // of the clocks, in order
	Naive   bool          // ask the recipes beside the limiter

	Cache    string          // where skewrun is compiled, once
	Child    []string        // the command that calls Serve with the same limit
	Progress func(phase int) // called as each phase begins; may be nil
}

const (
	maxRate    = 2000
	maxChanges = 64
	minPhase   = 500 * time.Millisecond // longer than a step may take to be seen
	maxRun     = 10 * time.Minute
)

// Check reports everything that is wrong with the options.
func (o *Options) Check() error {
	errs := []error{o.Limit.check()}
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("drill: "+format, args...)) }
	if o.Rate < 1 || o.Rate > maxRate {
		bad("%d requests a second; use 1 to %d", o.Rate, maxRate)
	}
	if len(o.Changes) < 1 || len(o.Changes) > maxChanges {
		bad("%d changes of the clocks; use 1 to %d, as in --step -3600s --step +320ms", len(o.Changes), maxChanges)
	}
	for _, c := range o.Changes {
		errs = append(errs, c.check())
	}
	switch {
	case o.Phase < minPhase:
		bad("phases of %v; use at least %v, so that each step is seen in its own", o.Phase, minPhase)
	case o.Phase > maxRun/time.Duration(len(o.Changes)+1):
		bad("%d phases of %v; use at most %v in all", len(o.Changes)+1, o.Phase, maxRun)
	}
	return errors.Join(errs...)
}
