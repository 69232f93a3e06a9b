package escapement

import (
	"context"
	"fmt"

	"github.com/escapement-io/escapement/algo"
)

// Use is one limit's part in TakeAll.
type Use struct {
	Limiter *Limiter
	Key     string
	Cost    int64
}

// TakeAll charges every limit or none of them, and reports each one's decision, in order.
// It is allowed if every limit that is not a shadow has room. Limits that share a store
// are decided in one atomic step; with several stores, what was taken is given back if a
// later store refuses. If a store cannot answer, its limits follow their OnFailure and
// the error says why.
func TakeAll(ctx context.Context, uses ...Use) (allowed bool, parts []Decision, err error) {
	if len(uses) == 0 || len(uses) > MaxClaims {
		return false, nil, fmt.Errorf("%w: %d limits in one request, want 1 to %d", ErrRequest, len(uses), MaxClaims)
	}
	for _, u := range uses {
		if u.Cost < 0 || u.Cost > algo.MaxInt {
			return false, nil, fmt.Errorf("%w: %d for limit %s", ErrCost, u.Cost, u.Limiter.plan.limit.Name)
		}
	}
	if err := ctx.Err(); err != nil {
		return false, nil, err
	}
	parts = make([]Decision, len(uses))
	done := make([]bool, len(uses))
	allowed = true
	for i := range uses {
		if done[i] || !allowed {
			continue
		}
		ok, e := takeShared(ctx, uses, i, parts, done)
		if e != nil {
			err = e
		}
		allowed = allowed && ok
	}
	if !allowed {
		release(context.WithoutCancel(ctx), uses, parts, done)
	}
	for i, u := range uses {
		if u.Limiter.obs != nil && done[i] {
			u.Limiter.obs.Decided(&Claim{Plan: u.Limiter.plan, Key: u.Key, Cost: u.Cost}, &parts[i], err)
		}
	}
	return allowed, parts, err
}

// takeShared asks the store of uses[from] for all claims that belong to it.
func takeShared(ctx context.Context, uses []Use, from int, parts []Decision, done []bool) (bool, error) {
	store := uses[from].Limiter.store
	var claims []Claim
	var index []int
	for i := from; i < len(uses); i++ {
		if u := uses[i]; !done[i] && u.Limiter.store == store {
			claims = append(claims, Claim{Plan: u.Limiter.plan, Key: u.Key, Cost: u.Cost})
			index = append(index, i)
		}
	}
	requests := [1]Request{{Claims: claims}}
	var answers [1]Answer
	store.Decide(ctx, requests[:], answers[:])
	a := &answers[0]
	ok := a.Admitted
	if a.Outcome != Decided {
		ok = true
	}
	for j, i := range index {
		done[i] = true
		if a.Outcome == Decided {
			parts[i] = a.Parts[j]
			continue
		}
		parts[i] = fallback(uses[i].Limiter.plan)
		ok = ok && parts[i].Allowed
	}
	return ok, a.Err
}

// release gives back what stores that admitted had taken for a request that another
// store refused. Claims of a refused store hold nothing.
func release(ctx context.Context, uses []Use, parts []Decision, done []bool) {
	refused := map[Store]bool{}
	for i, u := range uses {
		if done[i] && !parts[i].Allowed && !u.Limiter.plan.limit.Shadow {
			refused[u.Limiter.store] = true
		}
	}
	for i, u := range uses {
		if done[i] && !refused[u.Limiter.store] {
			// Best effort: a store that is away keeps it, on the strict side.
			_ = u.Limiter.Refund(ctx, u.Key, parts[i])
		}
	}
}
