package escapement

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/escapement-io/escapement/algo"
)

// Limiter applies one Limit through one Store. Safe for concurrent use.
type Limiter struct {
	plan  *Plan
	store Store
	fast  FastStore // store, if it has the shorter way
	short Taker     // store, if it has the shortest way and nothing is left to do after it
	obs   Observer
}

// Option configures a Limiter.
type Option func(*Limiter)

// WithObserver reports every decision to o.
func WithObserver(o Observer) Option { return func(l *Limiter) { l.obs = o } }

// New compiles the limit and joins it to a store. The error joins every problem of the
// limit.
func New(store Store, limit Limit, opts ...Option) (*Limiter, error) {
	plan, err := limit.Compile()
	if store == nil {
		err = errors.Join(err, fmt.Errorf("%w: no store for limit %q; pass one, such as memstore.New()", ErrRequest, limit.Name))
	}
	if err != nil {
		return nil, err
	}
	return NewLimiter(store, plan, opts...), nil
}

// NewLimiter joins a compiled plan to a store; neither may be nil.
func NewLimiter(store Store, plan *Plan, opts ...Option) *Limiter {
	l := &Limiter{plan: plan, store: store}
	l.fast, _ = store.(FastStore)
	for _, o := range opts {
		o(l)
	}
	if l.obs == nil && !plan.limit.Shadow {
		l.short, _ = store.(Taker)
	}
	return l
}

// Plan is what the limiter enforces.
func (l *Limiter) Plan() *Plan { return l.plan }

// Take asks for cost units under key. A refusal is not an error. If the store cannot
// answer, the decision follows the limit's OnFailure and the error says why; the
// decision may be acted on all the same. A cost that is not valid, or a context that is
// already done, is an error with a refusal, and nothing is taken.
func (l *Limiter) Take(ctx context.Context, key string, cost int64) (Decision, error) {
	if l.short == nil || uint64(cost) > uint64(algo.MaxInt) || ctx.Err() != nil {
		return l.decide(ctx, Claim{Plan: l.plan, Key: key, Cost: cost})
	}
	d, err := l.short.TakeOne(ctx, l.plan, key, cost)
	if err != nil {
		return fallback(l.plan), err
	}
	return d, nil
}

// Peek answers whether one unit would be admitted, and changes nothing: Remaining and
// ResetAfter speak of the state as it is.
func (l *Limiter) Peek(ctx context.Context, key string) (Decision, error) {
	return l.decide(ctx, Claim{Plan: l.plan, Key: key, Cost: 1, Mode: Peek})
}

// TakeUpTo takes as much of most as there is, possibly nothing: Decision.Units says how
// much.
func (l *Limiter) TakeUpTo(ctx context.Context, key string, most int64) (Decision, error) {
	return l.decide(ctx, Claim{Plan: l.plan, Key: key, Cost: most, Mode: TakeUpTo})
}

// Charge records units that were already spent, even into debt. at is the Decision.At of
// an earlier answer that says when, or zero for now.
func (l *Limiter) Charge(ctx context.Context, key string, units int64, at algo.Store) (Decision, error) {
	return l.decide(ctx, Claim{Plan: l.plan, Key: key, Cost: units, Mode: Charge, Receipt: algo.Receipt{At: at}})
}

// Refund gives back what d took, as far as time has not given it back already (see
// algo.Plan.Refund). Whoever calls it twice gives back twice; a Reservation does not.
func (l *Limiter) Refund(ctx context.Context, key string, d Decision) error {
	if !d.Allowed || d.Basis() == Fallback || d.Units() == 0 {
		return nil
	}
	_, err := l.decide(ctx, Claim{Plan: d.Plan(), Key: key, Mode: Refund, Receipt: d.Receipt()})
	return err
}

func (l *Limiter) decide(ctx context.Context, c Claim) (Decision, error) {
	if c.Cost < 0 || c.Cost > algo.MaxInt {
		return unanswered(c.Plan), ErrCost
	}
	if err := ctx.Err(); err != nil {
		return unanswered(c.Plan), err
	}
	d, err := l.ask(ctx, c)
	if err != nil {
		d = fallback(c.Plan)
	} else if c.Plan.limit.Shadow {
		d.Allowed = true
	}
	if l.obs != nil {
		l.report(c, d, err)
	}
	return d, err
}

// observation is what an observer is shown of one decision.
type observation struct {
	claim    Claim
	decision Decision
}

var observations = sync.Pool{New: func() any { return new(observation) }}

// report shows copies that are used again, so that no decision is allocated for it.
func (l *Limiter) report(c Claim, d Decision, err error) {
	o := observations.Get().(*observation)
	o.claim, o.decision = c, d
	l.obs.Decided(&o.claim, &o.decision, err)
	*o = observation{} // a pool keeps nobody's key
	observations.Put(o)
}

func (l *Limiter) ask(ctx context.Context, c Claim) (Decision, error) {
	if l.fast != nil {
		return l.fast.DecideOne(ctx, c)
	}
	requests := [1]Request{{Claims: []Claim{c}}}
	answers := [1]Answer{{Parts: make([]Decision, 0, 1)}}
	l.store.Decide(ctx, requests[:], answers[:])
	if a := &answers[0]; a.Outcome == Decided {
		return a.Parts[0], nil
	}
	return Decision{}, answers[0].Err
}
