package ledgers

import (
	"context"
	"sync/atomic"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// Verdict says what becomes of a request.
type Verdict uint8

// The verdicts, as those of packages lease and batch.
const (
	Refused Verdict = iota
	Admitted
	Waiting
	Unavailable
)

// Request is one request on its way through a ledger.
type Request struct {
	Cost  int64
	Since algo.Mono

	Counted, Queued bool // the ledger's own
}

// Answer is what a ledger says to a request. A stamp is what it counts in: a window or a
// bucket, as the ledger numbers them.
type Answer struct {
	Verdict    Verdict
	Stamp      int64
	Until      algo.Mono
	RetryAfter algo.Span
	Fallback   bool // Admitted, Refused: without the store, by this instance's part of the limit
	Send       bool // Admitted: Poll has something to send
}

// Said is what a decision tells beside the ledger's own figures.
type Said struct {
	Admitted bool
	None     bool // nothing was taken
	Stamp    int64
	Units    int64
	Wait     algo.Span
}

// Left is what a decision tells to be left of so many units. Where a refused claim found
// nothing at hand although the store has some, it is less than what was refused: a client
// that is told of room for its request comes again at once.
func (s Said) Left(units int64) int64 {
	if s.Admitted {
		return units
	}
	return min(units, max(0, s.Units-1))
}

// Setting is when a ledger syncs and who it speaks for.
type Setting struct {
	Instance int64
	Numbers  *atomic.Int64 // the last that a message of the instance has, if they are numbered
	Interval algo.Span
	Phase    algo.Mono
	MaxWait  algo.Mono
}

// Figures are what the store told last about a key.
type Figures struct {
	Count  int64 // the limit
	Used   int64 // in the open window, by all instances, as far as they reported
	Unseen int64 // of it, what others reported within the last interval: nobody here knew of it
	Late   int64 // units that came after their window, since the last time
	Lost   int64 // units that were handed out and forgotten by the store, since the last time
}

// Ledger is one instance's part of one key, by value in an L. It is guarded by a lock; a
// call never blocks.
type Ledger[L, M, R any] interface {
	*L
	// Open makes the ledger ready for the plan.
	Open(p *escapement.Plan, s Setting)
	// Replan goes on under another plan of the same limit; false if that needs a new ledger.
	Replan(p *escapement.Plan) bool
	// Retime changes when the ledger syncs, from its next tick on.
	Retime(now algo.Mono, interval algo.Span, phase algo.Mono)

	// Warm has the processor fetch what Take needs. A reading of the clock waits for what
	// is being read, but can be waited for at the same time. The result means nothing.
	Warm() int64
	// Take takes cost if that can be decided here and now, and otherwise changes nothing.
	Take(now algo.Mono, cost int64) (stamp int64, ok bool)
	// Decide is Take and, if that took, the Verdict of it: the way of most requests.
	Decide(core *algo.Plan, now algo.Mono, cost int64) (v algo.Verdict, ok bool)
	// Admit decides a request that Take did not take, or lets it wait.
	Admit(now algo.Mono, r *Request) Answer
	// Withdraw forgets a request that waits.
	Withdraw(r *Request)
	// Usable is how much Take would take.
	Usable(now algo.Mono) int64
	// Charge counts what was spent at an instant, zero for now; it returns how much.
	Charge(now algo.Mono, units int64, at algo.Store) (stamp, charged int64)
	// PutBack undoes what a receipt of at says was taken, as far as that is possible.
	PutBack(now algo.Mono, at algo.Store, units int64) int64
	// Told reports whether the ledger knows of its key what a Peek asks.
	Told(now algo.Mono) bool
	// Remaining is what is known to be left of the limit.
	Remaining() int64
	// Verdict makes the verdict of a decision.
	Verdict(core *algo.Plan, now algo.Mono, s Said) algo.Verdict
	// Line is where the store's line is; false if that is not known.
	Line(now algo.Mono) (algo.Store, bool)

	Next() (algo.Mono, bool)
	Poll(now algo.Mono) (M, bool)
	Absorb(now algo.Mono, reply *R)
	Failed(now algo.Mono)
	Leave(now algo.Mono) (M, bool)
	Idle() bool
	Figures() Figures
}

// Item is one message to the store.
type Item[M any] struct {
	Plan    *escapement.Plan
	Key     string
	Message M
}

// Result is the store's reply to an Item; without Known the reply means nothing.
type Result[R any] struct {
	Known bool
	Err   error
	Reply R
}

// Call sends messages and waits for the replies.
type Call[M, R any] func(ctx context.Context, items []Item[M], results []Result[R])
