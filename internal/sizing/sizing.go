// Package sizing computes what it costs that instances share a limit and agree on it now
// and then: error, worst case, round trips and the load of the store. It holds formulas
// only; docs/sync-and-leases.md derives them, and tests compare them with internal/sim.
package sizing

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// Setup is what is asked about: one key of one limit, with the same demand at each
// instance.
type Setup struct {
	Instances int
	Rate      float64 // requests a second over all instances
	Limit     int64   // per window
	Per       time.Duration
	Window    Window
	Mode      Mode
	Sync      time.Duration // between two agreements; zero: a twentieth of the window. Exact has none
	Keys      int           // with such demand at a time, for the load of the store; zero: 1
}

// Window says what the limit is about.
type Window string

// The windows; fixed ones begin on multiples of the period.
const (
	Fixed   Window = "fixed"
	Sliding Window = "sliding"
	Rolling Window = "rolling"
)

// Mode says how instances agree.
type Mode string

// The modes. Under Exact every request asks the store.
const (
	Delayed Mode = "delayed"
	Lease   Mode = "lease"
	Exact   Mode = "exact"
)

// Bounds of a Setup.
const (
	MaxInstances = 10_000
	MaxKeys      = 100_000_000
	MaxRate      = 1e9
)

// Problem is something wrong with one field of a Setup, named as the flag is.
type Problem struct{ Field, Text, Hint string }

func (p *Problem) Error() string { return p.Field + ": " + p.Text + "; " + p.Hint }

// problems collects what is wrong with a Setup.
type problems []error

func (l *problems) add(field, hint, format string, args ...any) {
	*l = append(*l, &Problem{field, fmt.Sprintf(format, args...), hint})
}

// normal is the Setup with what is left out filled in, and the number of buckets of a
// leased rolling window. The error joins a *Problem for everything that is wrong.
func (s Setup) normal() (Setup, int64, error) {
	var wrong problems
	if s.Instances < 1 || s.Instances > MaxInstances {
		wrong.add("instances", fmt.Sprintf("use 1 to %d", MaxInstances), "%d instances", s.Instances)
	}
	if !(s.Rate > 0 && s.Rate <= MaxRate) {
		wrong.add("rate", fmt.Sprintf("use requests a second over all instances, above 0 and up to %.0f", float64(MaxRate)), "%v requests a second", s.Rate)
	}
	if s.Keys == 0 {
		s.Keys = 1
	}
	if s.Keys < 1 || s.Keys > MaxKeys {
		wrong.add("keys", fmt.Sprintf("use 1 to %d", MaxKeys), "%d keys", s.Keys)
	}
	limit := escapement.Limit{Name: "planned", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: s.Limit, Per: s.Per}}
	switch s.Window {
	case Fixed:
	case Sliding:
		limit.Algorithm = escapement.SlidingWindow
	case Rolling:
		limit.Algorithm = escapement.RollingWindow
	default:
		wrong.add("window", "use fixed, sliding or rolling", "%q is none of the windows", s.Window)
	}
	switch s.Mode {
	case Lease:
		limit.Sync = s.interval(&wrong)
	case Delayed:
		limit.Sync, limit.SyncMode = s.interval(&wrong), escapement.SyncDelayed
	case Exact:
		if s.Sync != 0 {
			wrong.add("sync", "leave it out, or use --mode lease or delayed", "with --mode exact every request asks the store")
		}
	default:
		wrong.add("mode", "use delayed, lease or exact", "%q is none of the modes", s.Mode)
	}
	plan, err := limit.Compile()
	if err := errors.Join(append(wrong, limitProblems(err)...)...); err != nil {
		return s, 0, err
	}
	lease, _ := plan.Lease()
	return s, lease.Buckets, nil
}

// interval fills Sync in where it is left out. It is zero if it does not fit the window,
// so that the limit is judged without it.
func (s *Setup) interval(wrong *problems) time.Duration {
	if s.Sync == 0 {
		s.Sync = max((s.Per / 20).Truncate(time.Millisecond), 20*time.Millisecond)
	}
	switch {
	case s.Per <= 0:
	case s.Sync >= s.Per:
		wrong.add("sync", fmt.Sprintf("use less, such as a twentieth of it, %v", s.Per/20), "%v is not below the window of %v", s.Sync, s.Per)
		return 0
	case s.Mode == Lease && s.Window != Fixed && 2*s.Sync > s.Per:
		wrong.add("sync", fmt.Sprintf("use at most %v, or a fixed window", s.Per/2), "%v is above half the window of %v: leases enforce a rolling one and hand out no more than half of it ahead", s.Sync, s.Per)
		return 0
	}
	return s.Sync
}

// limitProblems names the fields of a limit as the flags are.
func limitProblems(err error) (out []error) {
	if err == nil {
		return nil
	}
	list := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		list = joined.Unwrap()
	}
	for _, e := range list {
		if nested, ok := e.(interface{ Unwrap() []error }); ok {
			out = append(out, limitProblems(errors.Join(nested.Unwrap()...))...)
			continue
		}
		p := &Problem{Field: "limit", Text: e.Error(), Hint: "change the limit"}
		if l, ok := errors.AsType[*algo.LimitError](e); ok {
			p = &Problem{Field: l.Field, Text: l.Problem, Hint: l.Hint}
			if p.Field == "count" {
				p.Field = "limit"
			}
		}
		out = append(out, p)
	}
	return out
}

// perWindow is the demand in a window.
func (s *Setup) perWindow() float64 { return s.Rate * s.Per.Seconds() }

// each is the demand at one instance, in requests a second.
func (s *Setup) each() float64 { return s.Rate / float64(s.Instances) }

// aim is what a limiter that knows all at once admits in a window.
func (s *Setup) aim() float64 { return math.Min(s.perWindow(), float64(s.Limit)) }

// rolls reports whether leases make a rolling window of the limit, or it is one.
func (s *Setup) rolls() bool { return s.Mode == Lease && s.Window != Fixed || s.Window == Rolling }
