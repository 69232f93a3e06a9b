package escapement

import (
	"time"

	"github.com/escapement-io/escapement/algo"
)

// Never is the wait for a claim that no amount of waiting can satisfy.
const Never time.Duration = 1<<63 - 1

// Basis says what a decision rests on, and so how much to trust it.
type Basis uint8

// The bases.
const (
	Exact    Basis = iota // decided on the state itself
	Delayed               // on a view that is up to one sync interval old
	Leased                // from quota handed out in advance
	Fallback              // without the store, by the limit's OnFailure
)

var basisNames = [...]string{Exact: "exact", Delayed: "delayed", Leased: "leased", Fallback: "fallback"}

// String is the value shown in metrics, such as "exact".
func (b Basis) String() string { return basisNames[b] }

// Decision is the answer to one claim. The fields of headers are methods: they are
// computed from the state right after the decision when they are asked for.
type Decision struct {
	Allowed bool
	Basis   Basis

	plan    *Plan
	verdict algo.Verdict
}

// Decide makes the decision that a verdict of the plan's core amounts to. Stores call it.
func Decide(p *Plan, v algo.Verdict, b Basis) Decision {
	return Decision{Allowed: v.Admitted, Basis: b, plan: p, verdict: v}
}

// DecideTake is Decide of what Plan.Core().Take answers, exact, in a decision that is zero.
// Filling it in where it stands spares stores on their shortest way two copies.
func DecideTake(d *Decision, p *Plan, s *algo.State, now algo.Store, cost int64) {
	d.plan = p
	d.Allowed = p.core.TakeInto(&d.verdict, s, now, cost)
}

// DecideDrained is DecideTake for a bucket that the store judged itself: backlog is the
// credits still to drain at now, right after the decision.
func DecideDrained(d *Decision, p *Plan, now algo.Store, cost, backlog int64, admitted bool) {
	d.Allowed, d.plan = admitted, p
	p.core.DrainedInto(&d.verdict, now, cost, backlog, admitted)
}

// fallback is the decision of a limit whose store could not answer.
func fallback(p *Plan) Decision {
	return Decision{Allowed: p.limit.OnFailure == Allow || p.limit.Shadow, Basis: Fallback, plan: p}
}

// Plan is the plan that decided: the newest of the claim's name that the store knows.
func (d *Decision) Plan() *Plan { return d.plan }

// Limit is the capacity that is enforced, headroom taken off: what can be taken at once
// from rest, in units.
func (d *Decision) Limit() int64 {
	if d.plan == nil {
		return 0
	}
	return d.plan.core.Capacity()
}

// Remaining is how many whole units were left right after the decision, rounded down;
// 0 if it is not known.
func (d *Decision) Remaining() int64 { return d.verdict.Remaining() }

// RetryAfter is the least wait after which the same claim is admitted if nobody else
// asks: 0 if it was allowed, Never if its cost exceeds the capacity. It ends on a tick of
// the plan. Without an answer from the store it is not known and 0.
func (d *Decision) RetryAfter() time.Duration {
	if d.Allowed {
		return 0
	}
	return duration(d.verdict.RetryAfter())
}

// ResetAfter is how long until the state is as new if nobody acts.
func (d *Decision) ResetAfter() time.Duration { return duration(d.verdict.ResetAfter()) }

// Delay is how long an allowed caller must wait before it acts: pacing and reservations.
func (d *Decision) Delay() time.Duration { return duration(d.verdict.Delay()) }

// Units is what was asked for, or with TakeUpTo what was taken.
func (d *Decision) Units() int64 { return d.verdict.Units() }

// Dropped is how many units of a Charge could not be recorded.
func (d *Decision) Dropped() int64 { return d.verdict.Dropped }

// At is the instant of the decision on the store's line.
func (d *Decision) At() algo.Store { return d.verdict.Now() }

// Receipt is what a Refund claim needs to give the units back.
func (d *Decision) Receipt() algo.Receipt { return d.verdict.Receipt() }

// duration saturates: a wait of more than 292 years is Never.
func duration(s algo.Span) time.Duration {
	if s > algo.Span(Never/time.Microsecond) {
		return Never
	}
	return time.Duration(s) * time.Microsecond
}
