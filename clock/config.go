package clock

import (
	"errors"
	"fmt"
	"time"
)

// Config says what a Guard follows and what it reports. The zero value follows this
// machine's system clock.
type Config struct {
	// Source is where clocks are read. Default: Machine().
	Source Source

	// References are the clocks to follow, in order of preference; the first is the
	// primary, the others vote and stand by. Default: System() alone. At most 16.
	References []Follow

	// Warning is the size from which a step is reported at level Warning. Steps are
	// detected from 1 ms whatever is set here. Default: 5 ms.
	Warning time.Duration

	// Critical is the size from which a step is reported at level Critical; so is the third
	// step within a minute, whatever its size. Default: 100 ms.
	Critical time.Duration

	// IgnoreSuspend leaves the time during which the machine was suspended out of guarded
	// time: it then has to be taken in from the references, like any other error.
	IgnoreSuspend bool

	// DriftPPM is how fast the error of a reading may grow, in parts per million.
	// Default: 200. Use 50 for a machine whose crystal is known to be good.
	DriftPPM int

	// CheckEvery is how often Run looks at the clocks: a step is seen within this time
	// where the platform gives no hint. Default: 100 ms.
	CheckEvery time.Duration
}

// Follow is a reference and how to use it.
type Follow struct {
	Reference Reference

	// Every is how often it is measured, ± 10 %. Default: 64 s. While the references do
	// not agree it is measured every 10 s at least. The system clock is read once a second
	// whatever is set here.
	Every time.Duration

	// Group names what the reference is synchronised by, if it shares that with others:
	// references of one group count once. Default: a group of its own.
	Group string
}

const (
	maxReferences = 16
	minEvery      = time.Second
)

// withDefaults completes a configuration and reports everything that is wrong with it.
func (c Config) withDefaults() (Config, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("clock: "+format, args...)) }

	if c.Source == nil {
		c.Source = Machine()
	}
	if len(c.References) == 0 {
		c.References = []Follow{{Reference: System()}}
	}
	c.References = append([]Follow(nil), c.References...)
	if n := len(c.References); n > maxReferences {
		bad("references: %d are given: use at most %d", n, maxReferences)
	}
	seen := map[string]bool{}
	for i := range c.References {
		f := &c.References[i]
		if f.Reference == nil {
			bad("references[%d]: no reference is given: use System, StoreTime or package clock/ntp", i)
			continue
		}
		name := f.Reference.Name()
		if seen[name] {
			bad("references[%d]: the name %q is taken: give each reference a name of its own", i, name)
		}
		seen[name] = true
		if f.Every == 0 {
			f.Every = 64 * time.Second
		}
		if f.Every < minEvery {
			bad("references[%d] (%s): every %v is too often: use at least %v", i, name, f.Every, minEvery)
		}
		if f.Group == "" {
			f.Group = "reference " + name
		}
	}
	setDefault(&c.Warning, 5*time.Millisecond)
	setDefault(&c.Critical, 100*time.Millisecond)
	setDefault(&c.CheckEvery, 100*time.Millisecond)
	if c.DriftPPM == 0 {
		c.DriftPPM = 200
	}
	if c.Warning < 0 || c.Critical < c.Warning {
		bad("warning %v and critical %v: use 0 < warning <= critical", c.Warning, c.Critical)
	}
	if c.CheckEvery < time.Millisecond || c.CheckEvery > 10*time.Second {
		bad("check every %v: use 1ms to 10s", c.CheckEvery)
	}
	if c.DriftPPM < 0 || c.DriftPPM > 100_000 {
		bad("drift of %d ppm: use 1 to 100000", c.DriftPPM)
	}
	return c, errors.Join(errs...)
}

func setDefault(d *time.Duration, to time.Duration) {
	if *d == 0 {
		*d = to
	}
}
