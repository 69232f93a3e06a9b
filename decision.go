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
// computed from the state right after the decision when they are asked for. A decision is
// four words, which is as much as calls hand on in registers.
type Decision struct {
	Allowed bool

	head   algo.Head // marked with the basis
	record *record   // nil without a plan
	body   algo.Body
}

// record is what a decision refers to: the one of its plan, or its own if the verdict
// cannot be packed.
type record struct {
	plan    *Plan
	verdict *algo.Verdict
}

// Decide makes the decision that a verdict of the plan's core amounts to. Stores call it.
// It allocates if the verdict cannot be packed (see algo.Plan.Pack).
func Decide(p *Plan, v algo.Verdict, b Basis) Decision {
	w, ok := p.core.Pack(&v, uint8(b))
	if !ok {
		return keep(p, v, b)
	}
	return Decision{Allowed: v.Admitted, head: w.Head, record: &p.own, body: w.Body}
}

// keep is Decide for a verdict that cannot be packed.
func keep(p *Plan, v algo.Verdict, b Basis) Decision {
	return Decision{Allowed: v.Admitted, head: algo.PackMark(uint8(b)).Head, record: &record{p, &v}}
}

// DecideDrawn is Decide of a bucket's Take, exact, from what Plan.Core().Draw answers: now
// is the instant of the decision, not before that of the state.
func DecideDrawn(p *Plan, now algo.Store, cost, backlog int64, admitted bool) Decision {
	w, ok := algo.PackDrawn(now, cost, backlog, admitted)
	if !ok {
		return keepDrawn(p, now, cost, backlog, admitted)
	}
	return Decision{Allowed: admitted, head: w.Head, record: &p.own, body: w.Body}
}

func keepDrawn(p *Plan, now algo.Store, cost, backlog int64, admitted bool) Decision {
	return keep(p, p.core.Drawn(now, cost, backlog, admitted), Exact)
}

// Undecided is what becomes of a claim whose store could not answer, on the basis
// Fallback. The plan may be nil.
func Undecided(p *Plan, allowed bool) Decision {
	d := unanswered(p)
	d.Allowed, d.head = allowed, algo.PackMark(uint8(Fallback)).Head
	return d
}

// fallback is the decision of a limit whose store could not answer.
func fallback(p *Plan) Decision {
	return Undecided(p, p.limit.OnFailure == Allow || p.limit.Shadow)
}

// unanswered is a refusal that rests on nothing.
func unanswered(p *Plan) (d Decision) {
	if p != nil {
		d.record = &p.own
	}
	return d
}

// verdict is what the state said; it knows nothing if the store did not answer.
func (d *Decision) verdict() algo.Verdict {
	switch {
	case d.record == nil:
		return algo.Verdict{}
	case d.record.verdict != nil:
		return *d.record.verdict
	}
	return d.record.plan.core.Unpack(algo.Packed{Head: d.head, Body: d.body})
}

// Basis says what the decision rests on.
func (d *Decision) Basis() Basis { return Basis(d.head.Mark()) }

// Plan is the plan that decided: the newest of the claim's name that the store knows.
func (d *Decision) Plan() *Plan {
	if d.record == nil {
		return nil
	}
	return d.record.plan
}

// Limit is the capacity that is enforced, headroom taken off: what can be taken at once
// from rest, in units.
func (d *Decision) Limit() int64 {
	if d.record == nil {
		return 0
	}
	return d.record.plan.core.Capacity()
}

// Remaining is how many whole units were left right after the decision, rounded down;
// 0 if it is not known.
func (d *Decision) Remaining() int64 {
	v := d.verdict()
	return v.Remaining()
}

// RetryAfter is the least wait after which the same claim is admitted if nobody else
// asks: 0 if it was allowed, Never if its cost exceeds the capacity. It ends on a tick of
// the plan. Without an answer from the store it is not known and 0.
func (d *Decision) RetryAfter() time.Duration {
	if d.Allowed {
		return 0
	}
	v := d.verdict()
	return duration(v.RetryAfter())
}

// ResetAfter is how long until the state is as new if nobody acts.
func (d *Decision) ResetAfter() time.Duration {
	v := d.verdict()
	return duration(v.ResetAfter())
}

// Delay is how long an allowed caller must wait before it acts: pacing and reservations.
func (d *Decision) Delay() time.Duration {
	v := d.verdict()
	return duration(v.Delay())
}

// Units is what was asked for, or with TakeUpTo what was taken, or with Charge what could
// be recorded: the rest was dropped.
func (d *Decision) Units() int64 {
	v := d.verdict()
	return v.Units()
}

// At is the instant of the decision on the store's line.
func (d *Decision) At() algo.Store {
	v := d.verdict()
	return v.Now()
}

// Receipt is what a Refund claim needs to give the units back.
func (d *Decision) Receipt() algo.Receipt {
	v := d.verdict()
	return v.Receipt()
}

// duration saturates: a wait of more than 292 years is Never.
func duration(s algo.Span) time.Duration {
	if s > algo.Span(Never/time.Microsecond) {
		return Never
	}
	return time.Duration(s) * time.Microsecond
}
