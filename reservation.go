package escapement

import (
	"context"
	"sync/atomic"
	"time"
)

// Reservation is a turn that was taken in advance. Act after Decision.Delay, or Cancel.
type Reservation struct {
	Decision Decision

	limiter  *Limiter
	key      string
	returned atomic.Bool
}

// Reserve takes cost units that will be there within patience; Decision.Delay says when
// to act. Turns of one key are distinct. A refused reservation holds nothing. Window
// algorithms lend nothing from a later window: they reserve only what is there.
func (l *Limiter) Reserve(ctx context.Context, key string, cost int64, patience time.Duration) (*Reservation, error) {
	d, err := l.decide(ctx, Claim{Plan: l.plan, Key: key, Cost: cost, Patience: patience})
	return &Reservation{Decision: d, limiter: l, key: key}, err
}

// Cancel gives back exactly what was taken, in whatever order reservations are
// cancelled, if their turn has not come; after it, what time has not given back already.
// A second call does nothing.
func (r *Reservation) Cancel(ctx context.Context) error {
	if r.returned.Swap(true) {
		return nil
	}
	return r.limiter.Refund(ctx, r.key, r.Decision)
}
