// Package twogateways drills a limit that real gateway processes share by way of a real
// Redis: what they admit together, window by window, counted by what each of them says of
// its own decisions.
package twogateways

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/escapement-io/escapement"
)

// The modes of a drill: how the gateways agree.
const (
	Delayed = "delayed"
	Leased  = "lease"
	Exact   = "exact"
)

// windows are the kinds of windows by name.
var windows = map[string]escapement.Algorithm{
	"fixed": escapement.FixedWindow, "sliding": escapement.SlidingWindow, "rolling": escapement.RollingWindow,
}

// Options of a drill.
type Options struct {
	Instances int
	Limit     int64
	Per       time.Duration
	Window    string        // fixed, sliding or rolling
	Sync      time.Duration // how often the gateways agree; of no use to Exact
	Mode      string
	Rate      int           // requests per second of all gateways together, on a fixed schedule, in turn
	For       time.Duration // how long the load lasts
	// Burst has every gateway be asked Limit times at once, at the start of a window after
	// some without requests, instead of Rate.
	Burst  bool
	Faults Faults

	// Gateway is the command that runs gateway i on a configuration.
	Gateway  func(configuration string, i int) []string
	Progress func(what string) // called as the drill goes on; may be nil
}

// Faults are what happens to the gateways and the store during the load. The zero Faults
// are none.
type Faults struct {
	Skew      time.Duration   // of the wall clock of the first gateway, all the time
	Steps     []time.Duration // of the wall clock of the last gateway, spread evenly over the load
	StoreStep []time.Duration // of the store's clock, likewise

	KillGateway time.Duration // when the last gateway is killed; zero: never
	KillStore   time.Duration // when the store, which syncs every write, is killed and started again
	Failover    time.Duration // when the store is killed, and its replica, which lags by Lag, promoted
	Lag         time.Duration
}

// clocks says whether any clock is to be wrong.
func (f *Faults) clocks() bool {
	return f.Skew != 0 || len(f.Steps)+len(f.StoreStep) > 0
}

const (
	maxInstances = 64
	maxLimit     = 100_000
	maxRate      = 5000
	maxBurst     = 50_000 // requests of a burst, of all gateways
	maxPer       = 5 * time.Minute
	maxFor       = time.Hour
	maxSteps     = 100
	maxStep      = 24 * time.Hour

	// pause is how many windows of a burst pass without requests.
	pause = 4
)

// Check reports every problem.
func (o *Options) Check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("drill: "+format, args...)) }
	if o.Instances < 1 || o.Instances > maxInstances {
		bad("%d instances; use 1 to %d", o.Instances, maxInstances)
	}
	if o.Limit < 1 || o.Limit > maxLimit {
		bad("a limit of %d; use 1 to %d", o.Limit, maxLimit)
	}
	if o.Per < 100*time.Millisecond || o.Per > maxPer {
		bad("a window of %v; use 100ms to %v", o.Per, maxPer)
	}
	if _, ok := windows[o.Window]; !ok {
		bad("window %q; use fixed, sliding or rolling", o.Window)
	}
	if !slices.Contains([]string{Delayed, Leased, Exact}, o.Mode) {
		bad("mode %q; use delayed, lease or exact", o.Mode)
	}
	if o.Rate < 1 || o.Rate > maxRate {
		bad("%d requests per second; use 1 to %d", o.Rate, maxRate)
	}
	if burst := o.Limit * int64(max(1, o.Instances)); o.Burst && burst > maxBurst {
		bad("bursts of %d requests; use at most %d for all instances together", burst, maxBurst)
	}
	if o.For > maxFor || o.For < max(o.Per, time.Second) {
		bad("a run of %v; use at least %v, and at most %v", o.For, max(o.Per, time.Second), maxFor)
	}
	if len(errs) == 0 {
		if _, err := o.plan(); err != nil {
			errs = append(errs, fmt.Errorf("drill: %w", err))
		}
	}
	o.Faults.check(o, bad)
	return errors.Join(errs...)
}

func (f *Faults) check(o *Options, bad func(format string, args ...any)) {
	steps := slices.Concat(f.Steps, f.StoreStep, []time.Duration{f.Skew})
	if len(steps) > maxSteps {
		bad("%d steps; use at most %d", len(steps), maxSteps)
	}
	for _, s := range steps {
		if s.Abs() > maxStep {
			bad("a step or skew of %v; use at most %v", s, maxStep)
		}
	}
	var ends []string
	for _, e := range []struct {
		name string
		at   time.Duration
	}{{"gateway", f.KillGateway}, {"store", f.KillStore}, {"failover", f.Failover}} {
		if e.at == 0 {
			continue
		}
		ends = append(ends, e.name)
		if e.at < 0 || e.at >= o.For {
			bad("the end of the %s at %v; use a time within the load of %v", e.name, e.at, o.For)
		}
	}
	if len(ends) > 1 {
		bad("ends of %s in one run; use one of them", strings.Join(ends, " and "))
	}
	if len(ends) > 0 && f.clocks() {
		bad("wrong clocks and the end of a %s in one run; use one of them", ends[0])
	}
	if f.KillGateway > 0 && o.Instances < 2 {
		bad("the end of the only gateway; use at least 2 instances")
	}
	if f.Failover > 0 && (f.Lag <= 0 || f.Lag > 3*time.Second || f.Lag > f.Failover) {
		bad("a replica that lags by %v; use up to 3s, and less than the time of the failover", f.Lag)
	}
	if o.Burst && (len(ends) > 0 || f.clocks()) {
		bad("bursts and faults in one run; use one of them")
	}
}

// algorithm is what enforces the limit: a lease keeps a sliding window as a rolling one.
func (o *Options) algorithm() escapement.Algorithm {
	if o.Mode == Leased && o.Window == "sliding" {
		return escapement.RollingWindow
	}
	return windows[o.Window]
}

// limit is the one under drill, as the gateways are configured to enforce it.
func (o *Options) limit() escapement.Limit {
	l := escapement.Limit{Name: limitName, Algorithm: o.algorithm(), Rate: escapement.Rate{Count: o.Limit, Per: o.Per}}
	if o.opened() {
		l.Align = escapement.FirstUse
	}
	switch o.Mode {
	case Delayed:
		l.Sync, l.SyncMode = o.Sync, escapement.SyncDelayed
	case Leased:
		l.Sync, l.SyncMode = o.Sync, escapement.SyncLease
	}
	return l
}

// plan compiles the limit.
func (o *Options) plan() (*escapement.Plan, error) {
	if o.Mode != Exact && o.Sync <= 0 {
		return nil, fmt.Errorf("an interval of %v; use a positive one", o.Sync)
	}
	return o.limit().Compile()
}

// opened says whether windows open with their first use and not on multiples of their
// length, as limit-count-advanced does it.
func (o *Options) opened() bool { return o.Mode == Delayed && o.Window == "fixed" }

// each is after how many windows there is one that counts: all of them, or those of
// bursts.
func (o *Options) each() int {
	if o.Burst {
		return 1 + pause
	}
	return 1
}
