package escapement

import (
	"errors"
	"fmt"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// Algorithm names how a limit spends its rate.
type Algorithm = algo.Algorithm

// The algorithms; see docs/algorithms.md for what each one promises.
const (
	TokenBucket   = algo.TokenBucket
	GCRA          = algo.GCRA
	FixedWindow   = algo.FixedWindow
	SlidingWindow = algo.SlidingWindow
	RollingWindow = algo.RollingWindow
	Pacing        = algo.Pacing
)

// Align says where the windows of a fixed_window begin.
type Align uint8

// Calendar alignments replace the period of the rate; weeks begin on Monday.
const (
	Epoch    Align = iota // on multiples of the period since 1970-01-01T00:00Z
	FirstUse              // with the first request after the last window ended
	Day                   // at midnight in the limit's zone
	Week
	Month
)

var alignNames = [...]string{Epoch: "epoch", FirstUse: "first_use", Day: "day", Week: "week", Month: "month"}

// String is the name used in configuration, such as "first_use".
func (a Align) String() string {
	if int(a) < len(alignNames) {
		return alignNames[a]
	}
	return fmt.Sprintf("align(%d)", uint8(a))
}

// ParseAlign is the inverse of Align.String.
func ParseAlign(name string) (Align, bool) {
	for a, s := range alignNames {
		if s == name {
			return Align(a), true
		}
	}
	return 0, false
}

// OnFailure says what a limit answers when its store cannot: the store is away, or an
// in-memory store is at its cap and does not know the key.
type OnFailure uint8

// The policies. Under Deny an outage refuses; under Allow it admits without counting;
// under LocalShare each instance enforces its share of the limit on its own.
const (
	Deny OnFailure = iota
	Allow
	LocalShare
)

var onFailureNames = [...]string{Deny: "deny", Allow: "allow", LocalShare: "local_share"}

// String is the name used in configuration, such as "local_share".
func (f OnFailure) String() string {
	if int(f) < len(onFailureNames) {
		return onFailureNames[f]
	}
	return fmt.Sprintf("on_failure(%d)", uint8(f))
}

// ParseOnFailure is the inverse of OnFailure.String.
func ParseOnFailure(name string) (OnFailure, bool) {
	for f, s := range onFailureNames {
		if s == name {
			return OnFailure(f), true
		}
	}
	return 0, false
}

// Limit is the description of one limit. It is plain data; Compile checks it. Two limits
// that share a store are told apart by Name; a limit that comes back under the same name
// with another definition adopts what was used (see algo.Plan.Adopt). Sync is for the stores of
// packages lease (SyncLease) and batch (SyncDelayed); any other is asked about every request.
type Limit struct {
	Name      string         // shown in headers, metrics and logs: [a-z0-9_-], at most 64
	Algorithm Algorithm      // zero means TokenBucket
	Rate      Rate           // Per stays zero with a calendar alignment
	Burst     int64          // token_bucket, gcra: capacity; zero means Rate.Count
	MaxDelay  time.Duration  // pacing: the longest a caller may be held
	Align     Align          // fixed_window: where windows begin
	Zone      *time.Location // calendar alignment: nil means UTC
	Buckets   int            // rolling_window above 64: how finely the period is cut; zero means 128, 256 up to 1 s
	Headroom  int            // per cent of count and burst to keep back: 20 enforces 1600 of 2000
	OnFailure OnFailure      // what to answer when the store cannot
	Shadow    bool           // decide and count, refuse nobody
	Sync      time.Duration  // between two agreements of the instances that share the store; zero: every request asks it
	SyncMode  SyncMode       // how they agree: zero means SyncLease
	Fence     bool           // SyncLease: a store that has lost writes lends nothing while what they promised may be in use
}

// Plan is a Limit compiled: what a Store needs to decide. Safe for concurrent use.
type Plan struct {
	limit Limit
	core  algo.Plan
	lease algo.Lease
	id    uint32
	own   record // what its decisions refer to
}

// Limit is the description the plan was compiled from.
func (p *Plan) Limit() *Limit { return &p.limit }

// Core is the plan in integers.
func (p *Plan) Core() *algo.Plan { return &p.core }

// ID numbers plans in the order they were compiled in this process; a later plan of the
// same name replaces an earlier one. Variants of a plan share its number.
func (p *Plan) ID() uint32 { return p.id }

// Compile checks the limit and turns it into a plan. The error joins every problem
// found; each is an *algo.LimitError naming the field and what to do.
func (l Limit) Compile() (*Plan, error) {
	var errs []error
	bad := func(field, problem, hint string) {
		errs = append(errs, &algo.LimitError{Field: field, Problem: problem, Hint: hint})
	}
	if !validName(l.Name) {
		bad("name", fmt.Sprintf("%q is not a name", l.Name), "use 1 to 64 of a-z, 0-9, _ and -")
	}
	if l.Headroom < 0 || l.Headroom > 99 {
		bad("headroom", fmt.Sprintf("%d is not a percentage", l.Headroom), "use 0 to 99, such as 20 to enforce 80 %")
		l.Headroom = 0
	}
	if l.Zone != nil && l.Align < Day {
		bad("zone", "set without a calendar alignment", "add align: day, week or month, or drop zone")
	}
	if l.OnFailure > LocalShare {
		bad("on_failure", "unknown", "use deny, allow or local_share")
	}
	q := l.params(bad)
	core, err := algo.Compile(q)
	p := &Plan{limit: l, core: core}
	if err == nil {
		p.sync(bad)
	}
	if err = errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	p.id, p.own.plan = nextID(), p
	return p, nil
}

// params translates to the integers of package algo, headroom taken off.
func (l *Limit) params(bad func(field, problem, hint string)) algo.Params {
	if l.Algorithm == 0 {
		l.Algorithm = TokenBucket
	}
	q := algo.Params{Algorithm: l.leasedAs(), FirstUse: l.Align == FirstUse, Buckets: l.Buckets}
	q.Count = l.enforced("count", l.Rate.Count, bad)
	q.Burst = l.enforced("burst", l.Burst, bad)
	q.Per = l.span("per", l.Rate.Per, bad)
	q.MaxDelay = l.span("max_delay", l.MaxDelay, bad)
	if l.Align >= Day {
		if l.Align > Month {
			bad("align", "unknown", "use epoch, first_use, day, week or month")
		}
		q.Calendar = newCalendar(l.Align, l.Zone)
	}
	return q
}

// enforced is n less the headroom, rounded down.
func (l *Limit) enforced(field string, n int64, bad func(field, problem, hint string)) int64 {
	if l.Headroom == 0 || n <= 0 {
		return n
	}
	share := int64(100 - l.Headroom)
	e := n/100*share + n%100*share/100
	if e == 0 {
		bad(field, fmt.Sprintf("nothing is left of %d with a headroom of %d %%", n, l.Headroom), "use a smaller headroom")
		return n
	}
	return e
}

func (l *Limit) span(field string, d time.Duration, bad func(field, problem, hint string)) algo.Span {
	if d%time.Microsecond != 0 {
		bad(field, fmt.Sprintf("%v is not a whole number of microseconds", d), "use microseconds or longer units")
	}
	return algo.Span(d / time.Microsecond)
}

// WithCount is the plan with another count per window, for limits whose count depends on
// the request. Variants share the state and the number of the plan. Only fixed_window
// and sliding_window have them.
func (p *Plan) WithCount(count int64) (*Plan, error) {
	v := *p
	v.limit.Rate.Count = count
	var errs []error
	enforced := v.limit.enforced("count", count, func(field, problem, hint string) {
		errs = append(errs, &algo.LimitError{Field: field, Problem: problem, Hint: hint})
	})
	core, err := p.core.WithCount(enforced)
	if err = errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	v.core, v.own.plan = core, &v
	if v.sync(func(field, problem, hint string) {
		errs = append(errs, &algo.LimitError{Field: field, Problem: problem, Hint: hint})
	}); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return &v, nil
}

func validName(s string) bool {
	if len(s) == 0 || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
