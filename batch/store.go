package batch

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

// Store admits the claims of limits with Sync and SyncDelayed from what a collector told
// last, and reports to it later; it hands all other claims to an exact store. Safe for
// concurrent use.
//
// What it decides has the basis Delayed. Remaining is the last known figure of all
// instances less what was admitted here since, never negative; Receipt.At is the start of
// the window that the units count in. The first request of a key, and of a window that
// only the store can place, waits for a reply, at most Options.MaxWait. When what was told
// is spent or over and the collector does not answer, a claim is not decided, and the
// error wraps ErrStoreUnavailable: package fallback answers it by the limit's OnFailure.
// What was admitted is kept through an outage and counts in the window it happened in.
//
// In a request of several claims those of delayed limits are asked first, in order, and
// what they counted is undone if another one refuses; the part of a claim that was not
// asked then has no plan. A Refund undoes what is not reported yet; a Charge counts
// whatever is left.
type Store struct {
	s *ledgers.Store[keeper, algo.Flush, algo.Flushed, *keeper]
}

var _ escapement.Taker = (*Store)(nil)

// NewStore reports to collector, and asks exact about all other limits; they may be one
// store. It starts a goroutine that Close ends.
func NewStore(collector escapement.Collector, exact escapement.Store, opts Options) *Store {
	return &Store{ledgers.New[keeper](exact, ledgers.Config[algo.Flush, algo.Flushed]{
		Options: opts,
		Mode:    escapement.SyncDelayed,
		Basis:   escapement.Delayed,
		Call:    collect(collector),
		Longest: longest,
	})}
}

// calendarLongest is how far the interval of a calendar window may stretch.
const calendarLongest algo.Span = 60_000_000

// longest is how far the interval of a plan may stretch: beyond half of a window hardly
// anything of it would be known.
func longest(p *escapement.Plan) algo.Span {
	if per := p.Core().Numbers().Per; per > 0 {
		return per / 2
	}
	return calendarLongest
}

// collect is a call to the collector.
func collect(collector escapement.Collector) ledgers.Call[algo.Flush, algo.Flushed] {
	return func(ctx context.Context, items []ledgers.Item[algo.Flush], results []ledgers.Result[algo.Flushed]) {
		reports, answers := make([]escapement.Report, len(items)), make([]escapement.Reported, len(items))
		for i := range items {
			reports[i] = escapement.Report{Plan: items[i].Plan, Key: items[i].Key, Flush: items[i].Message}
		}
		collector.Collect(ctx, reports, answers)
		for i := range answers {
			a := &answers[i]
			results[i] = ledgers.Result[algo.Flushed]{Known: a.Outcome == escapement.Decided, Err: a.Err, Reply: a.Flushed}
		}
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

// TakeOne implements escapement.Taker. It allocates next to nothing while a view is current.
func (s *Store) TakeOne(ctx context.Context, p *escapement.Plan, key string, cost int64) (escapement.Decision, error) {
	return s.s.TakeOne(ctx, p, key, cost)
}

// Snapshot reads the counters; it is cheap.
func (s *Store) Snapshot() Snapshot { return s.s.Snapshot() }

// Close reports what is counted, again and again until it is answered, within ctx at the
// latest; the error says how many keys are left. Claims of delayed limits are answered as
// if the collector were away from then on.
func (s *Store) Close(ctx context.Context) error { return s.s.Close(ctx) }
