package escapement

import (
	"context"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// Mode says how a claim takes its units.
type Mode uint8

// The modes. A request holds Takes and Peeks; the others stand alone in theirs.
const (
	Take     Mode = iota // all or nothing
	TakeUpTo             // as much as there is
	Charge               // already spent: recorded even into debt
	Refund               // give back what Claim.Receipt says was taken
	Peek                 // change nothing
)

// MaxClaims is how many claims a request may hold.
const MaxClaims = 16

// MaxKey is the longest key in bytes; a store need not keep longer ones apart from
// their hash.
const MaxKey = 512

// Claim asks for Cost units of a limit under Key.
type Claim struct {
	Plan     *Plan
	Key      string // what is being limited: a user, an address; any bytes, empty included
	Cost     int64  // from 0; with 0 a claim is answered and changes nothing
	Mode     Mode
	Patience time.Duration // Take: also admit if the units will be there within this wait (algo.Plan.Reserve)
	Receipt  algo.Receipt  // Refund: what to give back; Charge: At says when it was spent
}

// Ask puts the claim to a state, as every store does that keeps states itself. Only what
// admits changes it.
func (c *Claim) Ask(core *algo.Plan, s *algo.State, now algo.Store) algo.Verdict {
	switch c.Mode {
	case Take:
		if c.Patience <= 0 {
			return core.Take(s, now, c.Cost)
		}
		return core.Reserve(s, now, c.Cost, c.Span())
	case TakeUpTo:
		return core.TakeUpTo(s, now, c.Cost)
	case Charge:
		return core.Charge(s, now, c.Cost, c.Receipt.At)
	case Refund:
		return core.Refund(s, now, c.Receipt)
	case Peek:
	}
	return core.Peek(s, now, c.Cost)
}

// Span is the patience on a store's line, rounded down; none is 0.
func (c *Claim) Span() algo.Span { return algo.Span(max(0, c.Patience) / time.Microsecond) }

// Request is a group of claims that is admitted or refused as a whole: either every
// claim of a limit that is not a shadow is charged, or none. Two claims on one key of
// one limit are judged on their sum.
type Request struct{ Claims []Claim }

// Outcome says what is known to have happened to a request.
type Outcome uint8

// The outcomes. Unknown counts as spent: it is never tried again.
const (
	NotRun  Outcome = iota // nothing was charged
	Decided                // Answer holds the decision
	Unknown                // the store may have charged it
)

// Answer is a store's reply to one Request.
type Answer struct {
	Outcome  Outcome
	Admitted bool
	Err      error      // why the outcome is not Decided, or rests on a fall-back; wraps ErrStoreUnavailable if trying again may help
	Parts    []Decision // one per claim, in order; the caller's buffer, grown if it is too short
}

// Store keeps state and owns the clock that dates it.
//
// Decide answers each request on one reading of the store's clock, atomically as far as
// the store spans its claims, and never consults the caller's clock. It returns when all
// answers are known or given up.
type Store interface {
	Decide(ctx context.Context, requests []Request, answers []Answer)
}

// FastStore is a Store with a shorter way for a single claim. An error means that the
// outcome is not Decided; it is the Err of the answer.
type FastStore interface {
	Store
	DecideOne(ctx context.Context, c Claim) (Decision, error)
}

// Taker is a FastStore with the shortest way for the commonest claim, a Take without
// patience. It answers as DecideOne does. A store that embeds another one and changes what
// it answers must change every way in.
type Taker interface {
	FastStore
	TakeOne(ctx context.Context, p *Plan, key string, cost int64) (Decision, error)
}
