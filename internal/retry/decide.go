package retry

import (
	"math"
	"math/bits"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// Kind says what may have become of an attempt.
type Kind uint8

const (
	Done     Kind = iota // an answer for the caller, good or bad: never repeated
	Refused              // by the server's own word not acted on: repeating does nothing twice
	Unsent               // it never reached anybody
	Doubtful             // it failed and may have been acted on
)

// Answer is what came back from an attempt.
type Answer struct {
	Kind Kind
	Told bool          // whether the server said how long to wait
	Wait time.Duration // what it said, 0 or more
}

// Forever is the time left of a request without a deadline.
const Forever = time.Duration(math.MaxInt64)

// Attempt is what was done so far.
type Attempt struct {
	Number     int           // of attempts made, from 1
	Idempotent bool          // doing it twice is doing it once
	Repeatable bool          // its body can be sent again
	Left       time.Duration // until the request's deadline, Forever if it has none
	Took       time.Duration // what the last attempt took
}

// Reason says why a verdict is what it is.
type Reason string

// The reasons. The first two are those of retries.
const (
	Told     Reason = "told"     // the server said how long to wait
	Backoff  Reason = "backoff"  // it said nothing
	Final    Reason = "final"    // the answer is one for the caller
	Unsafe   Reason = "unsafe"   // it may have been acted on, and doing it twice is not doing it once
	Body     Reason = "body"     // its body cannot be sent again
	Attempts Reason = "attempts" // there were as many as are allowed
	TooLong  Reason = "max_wait" // the server asks for a longer wait than is allowed
	Deadline Reason = "deadline" // the wait and another attempt would outlast the request
	Spent    Reason = "budget"   // too large a share of the traffic are retries already
)

// Verdict is the decision about the next attempt. Wait is 0 unless Retry.
type Verdict struct {
	Retry  bool
	Wait   time.Duration
	Reason Reason
}

// reserve is the least time that is left to an attempt: a timer may be late.
const reserve = time.Millisecond

// roundUp is the least spread of a wait that was told: waits are told in whole seconds,
// so those of one second would otherwise all end together.
const roundUp = time.Second

// Decide is the whole policy. The account is that of the host, before and after: it pays
// for each retry and for nothing else. Draw is uniform over all of uint64.
//
// A wait is never shorter than what was told, and leaves as much of the time left as the
// last attempt took. A wait that was told is spread by at most r.Spread per cent, a second
// or the ceiling of the backoff, whichever is most; one that was not told is uniform
// between nothing and that ceiling, r.Backoff doubled with each attempt (full jitter).
func Decide(r *Rules, a Attempt, ans Answer, acc Account, now algo.Mono, draw uint64) (Verdict, Account) {
	if no := forbidden(r, a, ans); no != "" {
		return Verdict{Reason: no}, acc
	}
	least, spread, reason := time.Duration(0), r.ceiling(a.Number), Backoff
	if ans.Told {
		least, reason = ans.Wait, Told
		if r.Spread < 0 {
			spread = 0
		} else {
			spread = max(spread, roundUp, least/100*time.Duration(r.Spread))
		}
		if least > r.MaxWait {
			return Verdict{Reason: TooLong}, acc
		}
	}
	room := a.Left - max(a.Took, reserve)
	if least >= room {
		return Verdict{Reason: Deadline}, acc
	}
	spread = min(spread, room-least, r.MaxWait-least)
	acc, ok := r.Budget.Withdraw(acc, now)
	if !ok {
		return Verdict{Reason: Spent}, acc
	}
	extra, _ := bits.Mul64(draw, uint64(spread)+1)
	return Verdict{Retry: true, Wait: least + time.Duration(extra), Reason: reason}, acc
}

// forbidden is why there must not be another attempt, whatever the time and the budget.
func forbidden(r *Rules, a Attempt, ans Answer) Reason {
	switch {
	case ans.Kind == Done:
		return Final
	case ans.Kind == Doubtful && !a.Idempotent:
		return Unsafe
	case !a.Repeatable:
		return Body
	case a.Number >= r.MaxAttempts:
		return Attempts
	}
	return ""
}

// ceiling is the longest backoff after the n-th attempt.
func (r *Rules) ceiling(n int) time.Duration {
	c := r.Backoff
	for i := 1; i < n && c < r.MaxBackoff; i++ {
		c *= 2
	}
	return min(c, r.MaxBackoff)
}
