package lease

import (
	"context"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/ledgers"
)

// Options are what a user of a Store may choose; the zero Options are good:
//
//	Instance  int64          // tells processes that share a store apart, 1 to 2^53-1, never used twice; zero draws one
//	Phase     *time.Duration // where ticks fall within their interval on the store's line; nil spreads them
//	MaxKeys   int            // keys in memory, 2^20; a claim of a new key beyond wraps escapement.ErrFull
//	MaxWait   time.Duration  // how long a claim may wait for the store in all: 20 ms; its deadline for a decision is a good choice
//	Calls     int            // calls that may be under way at once: 8
//	Deadline  time.Duration  // ends a call: 250 ms
//	Instances func() int     // how many instances share the store, for the bounds in a Snapshot; nil or 0 is not known
type Options = ledgers.Options

// Snapshot is what the ledgers of a Store came to: counts of Keys, Calls, FailedCalls, Admitted,
// Refused, Unavailable (spent, and the store away) and Full (no room for a key), and in Limits
// for each limit its Name, the Interval in force, its Bound, and Over, the most units above the
// limit that were seen.
type Snapshot = ledgers.Snapshot

// Store admits the claims of limits with Sync and SyncLease from quota that a lender
// handed out, and hands all others to an exact store. Safe for concurrent use.
//
// What it decides has the basis Leased. Remaining is what the lender had when it last
// answered and what is held here, of a refused claim less than its cost; Receipt.At of a
// fixed window is the window's start. A request for which nothing is held waits for the
// lender at most Options.MaxWait. If the lender does not answer then, the claim is not
// decided, and the error wraps ErrStoreUnavailable: package fallback answers it by the
// limit's OnFailure. Under LocalShare a window limit goes on by this instance's part of the
// demand, as the lender told it last, less what it was lent of the window; such decisions
// have the basis Fallback.
//
// In a request of several claims those of leases are asked first, in order, and put back
// what they gave if another one refuses; the part of a claim that was not asked then has
// no plan. A Refund gives back as long as its window lasts, of a rolling window until the
// use is reported. A Charge takes what is held, and the rest at the lender if it has it;
// TakeUpTo takes what is held.
type Store struct {
	s *ledgers.Store[keeper, algo.Ask, algo.Grant, *keeper]
}

var _ escapement.Taker = (*Store)(nil)

// NewStore leases from lender, and asks exact about all other limits; they may be one
// store. It starts a goroutine that Close ends.
func NewStore(lender escapement.Lender, exact escapement.Store, opts Options) *Store {
	return &Store{ledgers.New[keeper](exact, ledgers.Config[algo.Ask, algo.Grant]{
		Options:    opts,
		Mode:       escapement.SyncLease,
		Basis:      escapement.Leased,
		Call:       lend(lender),
		Spend:      spend(lender),
		Longest:    longest,
		PeekBehind: true,
	})}
}

// longest is how far the interval of a plan may stretch.
func longest(p *escapement.Plan) algo.Span {
	l, _ := p.Lease()
	return l.Longest()
}

// lend is a call to the lender.
func lend(lender escapement.Lender) ledgers.Call[algo.Ask, algo.Grant] {
	return func(ctx context.Context, items []ledgers.Item[algo.Ask], results []ledgers.Result[algo.Grant]) {
		loans, answers := make([]escapement.Loan, len(items)), make([]escapement.Granted, len(items))
		for i := range items {
			loans[i] = escapement.Loan{Plan: items[i].Plan, Key: items[i].Key, Ask: items[i].Message}
		}
		lender.Lend(ctx, loans, answers)
		for i := range answers {
			a := &answers[i]
			results[i] = ledgers.Result[algo.Grant]{Known: a.Outcome == escapement.Decided, Err: a.Err, Reply: a.Grant}
		}
	}
}

// spend charges units at the lender, all or none.
func spend(lender escapement.Lender) func(context.Context, *escapement.Plan, string, int64) (int64, error) {
	return func(ctx context.Context, p *escapement.Plan, key string, units int64) (int64, error) {
		loans := [1]escapement.Loan{{Plan: p, Key: key, Ask: algo.Ask{Exact: units}}}
		var answers [1]escapement.Granted
		lender.Lend(ctx, loans[:], answers[:])
		switch a := &answers[0]; {
		case a.Outcome != escapement.Decided:
			return 0, a.Err
		case a.Grant.Admitted:
			return units, nil
		}
		return 0, nil
	}
}

// Decide implements escapement.Store.
func (s *Store) Decide(ctx context.Context, requests []escapement.Request, answers []escapement.Answer) {
	s.s.Decide(ctx, requests, answers)
}

// DecideOne implements escapement.FastStore.
func (s *Store) DecideOne(ctx context.Context, c escapement.Claim) (escapement.Decision, error) {
	return s.s.DecideOne(ctx, c)
}

// TakeOne implements escapement.Taker. It allocates nothing while quota is held.
func (s *Store) TakeOne(ctx context.Context, p *escapement.Plan, key string, cost int64) (escapement.Decision, error) {
	return s.s.TakeOne(ctx, p, key, cost)
}

// Snapshot reads the counters; it is cheap.
func (s *Store) Snapshot() Snapshot { return s.s.Snapshot() }

// Close gives back what is held, once, within ctx at the latest. Claims of leased limits
// are answered as if the lender were away from then on.
func (s *Store) Close(ctx context.Context) error { return s.s.Close(ctx) }
