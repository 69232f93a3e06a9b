package escapement

import (
	"context"
	"time"
)

// Wait blocks until cost units are taken. If that would outlast ctx's deadline it
// returns a *LimitedError at once and takes nothing; if ctx ends while waiting, what was
// taken is given back. A bucket or pacing queues waiters in distinct turns; with a window
// algorithm waiters try again together when the window has room.
func (l *Limiter) Wait(ctx context.Context, key string, cost int64) error {
	for {
		patience, bounded := left(ctx)
		r, err := l.Reserve(ctx, key, cost, patience)
		if r.Decision.Allowed {
			if err := sleep(ctx, r.Decision.Delay()); err != nil {
				// The store may be away; then the units stay spent, the strict side.
				_ = r.Cancel(context.WithoutCancel(ctx))
				return err
			}
			return nil
		}
		if err != nil {
			return err
		}
		wait := r.Decision.RetryAfter()
		if l.lends() || wait > patience || wait == Never {
			return &LimitedError{Decision: r.Decision, deadline: bounded && wait != Never}
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// lends reports whether the algorithm hands out future turns.
func (l *Limiter) lends() bool {
	switch l.plan.core.Algorithm() {
	case TokenBucket, GCRA, Pacing:
		return true
	case FixedWindow, SlidingWindow, RollingWindow:
	}
	return false
}

// left is how much time ctx leaves. Deadlines are instants on package context's own
// clock, so it is asked what it calls now: the deadline of a context that ends at once.
func left(ctx context.Context) (d time.Duration, bounded bool) {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return Never, false
	}
	now, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	instant, _ := now.Deadline()
	return max(0, deadline.Sub(instant)), true
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
