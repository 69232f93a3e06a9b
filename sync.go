package escapement

import (
	"context"
	"errors"
	"fmt"

	"github.com/escapement-io/escapement/algo"
)

// SyncMode says how instances that do not ask the store about every request agree.
type SyncMode uint8

// The modes. Under SyncLease the store hands quota out in advance and nothing passes
// above the limit; under SyncDelayed each instance admits from the view it was told last
// and reports what it admitted, and together they may exceed the limit.
const (
	SyncLease SyncMode = iota
	SyncDelayed
)

var syncModeNames = [...]string{SyncLease: "lease", SyncDelayed: "delayed"}

// String is the name used in configuration, such as "lease".
func (m SyncMode) String() string {
	if int(m) < len(syncModeNames) {
		return syncModeNames[m]
	}
	return fmt.Sprintf("sync_mode(%d)", uint8(m))
}

// ParseSyncMode is the inverse of SyncMode.String.
func ParseSyncMode(name string) (SyncMode, bool) {
	for m, s := range syncModeNames {
		if s == name {
			return SyncMode(m), true
		}
	}
	return 0, false
}

// Loan is what one holder of leased quota says to a store about one key. It is sent at
// most once.
type Loan struct {
	Plan *Plan // with Limit().Sync and SyncLease; Plan.Lease is how it is lent
	Key  string
	Ask  algo.Ask
}

// Granted is the answer to a Loan. Unless the outcome is Decided the Grant means nothing,
// and of an Unknown one the store may have taken in what the Ask gave back.
type Granted struct {
	Outcome Outcome
	Err     error
	Grant   algo.Grant
}

// Lender is a store that hands quota out in advance, dated by its own clock.
//
// Lend answers each loan on the record that exact claims of the limit use as well. It
// returns when all answers are known or given up. If loans and answers differ in number,
// what exceeds the shorter is not run.
type Lender interface {
	Lend(ctx context.Context, loans []Loan, answers []Granted)
}

// Report is what one instance tells a store that it admitted under one key. It is
// repeated unchanged until it is answered; the store applies it once.
type Report struct {
	Plan  *Plan // with Limit().Sync and SyncDelayed
	Key   string
	Flush algo.Flush
}

// Reported is the answer to a Report. Unless the outcome is Decided it is to be repeated.
type Reported struct {
	Outcome Outcome
	Err     error
	Flushed algo.Flushed
}

// Collector is a store that takes reports of what was admitted, dated by its own clock.
//
// Collect answers each report. It returns when all answers are known or given up. If
// reports and answers differ in number, what exceeds the shorter is not run.
type Collector interface {
	Collect(ctx context.Context, reports []Report, answers []Reported)
}

// Lease is how the limit's quota is handed out in advance; false if it is not.
func (p *Plan) Lease() (algo.Lease, bool) {
	return p.lease, p.limit.Sync > 0 && p.limit.SyncMode == SyncLease
}

// sync checks how instances agree, for a plan whose core is compiled.
func (p *Plan) sync(bad func(field, problem, hint string)) {
	l := &p.limit
	interval := l.span("sync", l.Sync, bad)
	if l.Fence && (l.Sync == 0 || l.SyncMode != SyncLease) {
		bad("fence", "set without a lease", "set sync as well, or drop it: only what was handed out in advance can be forgotten")
	}
	if l.Fence && (l.Algorithm == TokenBucket || l.Algorithm == GCRA) {
		bad("fence", "set on a "+l.Algorithm.String()+", which fills up by itself", "use fixed_window or rolling_window, or drop it")
	}
	switch {
	case l.Sync == 0:
	case l.Sync < 0:
		bad("sync", fmt.Sprintf("an interval of %v", l.Sync), "use a positive one, or none to ask the store about every request")
	case l.SyncMode > SyncDelayed:
		bad("sync_mode", "unknown", "use lease or delayed")
	case l.SyncMode == SyncLease:
		var err error
		var wrong *algo.LimitError
		if p.lease, err = p.core.Lease(interval); errors.As(err, &wrong) {
			bad("sync", wrong.Field+": "+wrong.Problem, wrong.Hint)
		}
		p.lease.Fence = l.Fence
	case l.Algorithm != FixedWindow && l.Algorithm != SlidingWindow:
		bad("sync", l.Algorithm.String()+" cannot be reported later", "use fixed_window or sliding_window, or the mode lease")
	case l.Align < Day && l.Sync >= l.Rate.Per:
		bad("sync", fmt.Sprintf("%v is not below the period of %v", l.Sync, l.Rate.Per), "use a twentieth of the period")
	}
}

// leasedAs is the algorithm that enforces a limit whose quota is handed out in advance: a
// sliding_window as a rolling_window, which promises more.
func (l *Limit) leasedAs() Algorithm {
	if l.Algorithm == SlidingWindow && l.Sync > 0 && l.SyncMode == SyncLease {
		return RollingWindow
	}
	return l.Algorithm
}

// Basis is what decisions of the limit rest on while its store answers.
func (l *Limit) Basis() Basis {
	switch {
	case l.Sync <= 0:
		return Exact
	case l.SyncMode == SyncDelayed:
		return Delayed
	}
	return Leased
}
