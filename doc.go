// Package escapement decides who may act now and who must wait.
//
// A Limit says how much; a Store keeps the state and owns the clock that dates it; a
// Limiter joins the two. No call takes the current time: state that is dated by the
// caller's clock is the one mistake this package exists to rule out.
//
//	store := memstore.New()
//	defer store.Close()
//	limiter, err := escapement.New(store, escapement.Limit{
//		Name: "login", Algorithm: escapement.TokenBucket, Rate: escapement.PerMinute(5),
//	})
//	…
//	d, err := limiter.Take(ctx, userID, 1)
//	if !d.Allowed { … come back after d.RetryAfter() … }
//
// Take is the call most programs want. Wait blocks until its turn or says at once that
// the deadline is too near; Reserve takes a future turn that can be cancelled; Peek
// changes nothing; TakeAll charges several limits, or none of them. A refusal is an
// answer, not an error; an error means that the store could not answer, and what then
// happens is the limit's own policy, OnFailure.
//
// Processes share a limit by way of package redisstore. Before it, packages lease and batch
// spare most of the calls, and package fallback answers while it is away.
//
// Which clock decides: in memory the monotonic clock of the process; in a shared store
// the store's. A step of any wall clock changes no verdict.
//
// Arithmetic is exact, in integers below 2^53 (package algo); a limit that cannot be
// exact is refused by New. Waits are rounded up, what remains is rounded down.
package escapement
