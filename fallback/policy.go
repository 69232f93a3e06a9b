package fallback

import (
	"context"
	"sync"

	"github.com/escapement-io/escapement"
)

// Policy answers requests that a shared store could not decide. Safe for concurrent use.
type Policy struct {
	local     escapement.Store
	instances func() int

	mu     sync.RWMutex
	shares map[string]*share // by name of the limit
	plans  map[uint32]bool   // numbers of the shares' plans
}

// share is one instance's part of a limit.
type share struct {
	of        uint32 // the plan it is a part of, by its number
	instances int64
	plan      *escapement.Plan // nil: nothing
}

// NewPolicy divides limits among as many instances as instances says when a store fails;
// 0 means that the number is not known. The shares are kept in local, which belongs to
// this instance alone; nil means that LocalShare denies.
func NewPolicy(local escapement.Store, instances func() int) *Policy {
	return &Policy{local: local, instances: instances, shares: map[string]*share{}, plans: map[uint32]bool{}}
}

// Fixed is a number of instances that does not change.
func Fixed(n int) func() int { return func() int { return n } }

// Answer fills in an answer that the shared store could not give. A limit that is a
// shadow refuses nobody. The claims of LocalShare are charged to the shares all or none,
// and to none if another limit of the request denies.
func (p *Policy) Answer(ctx context.Context, claims []escapement.Claim, a *escapement.Answer) {
	a.Parts = append(a.Parts[:0], make([]escapement.Decision, len(claims))...)
	a.Outcome, a.Admitted = escapement.Decided, true
	var local []escapement.Claim
	var index []int
	for i := range claims {
		l := claims[i].Plan.Limit()
		allowed := l.OnFailure == escapement.Allow
		if l.OnFailure == escapement.LocalShare && claims[i].Mode != escapement.Refund {
			if plan := p.share(claims[i].Plan); plan != nil {
				c := claims[i]
				c.Plan = plan
				local, index = append(local, c), append(index, i)
				continue
			}
		}
		a.Parts[i] = escapement.Undecided(claims[i].Plan, allowed || l.Shadow)
		a.Admitted = a.Admitted && (allowed || l.Shadow)
	}
	if len(local) > 0 {
		p.locally(ctx, local, index, a)
	}
}

// locally asks the local store for shares, without charging them if the request is
// refused already.
func (p *Policy) locally(ctx context.Context, claims []escapement.Claim, index []int, a *escapement.Answer) {
	if !a.Admitted {
		for i := range claims {
			if claims[i].Mode == escapement.Take {
				claims[i].Mode = escapement.Peek
			}
		}
	}
	var answer [1]escapement.Answer
	p.local.Decide(ctx, []escapement.Request{{Claims: claims}}, answer[:])
	if answer[0].Outcome != escapement.Decided {
		for j, i := range index {
			shadow := claims[j].Plan.Limit().Shadow
			a.Parts[i] = escapement.Undecided(claims[j].Plan, shadow)
			a.Admitted = a.Admitted && shadow
		}
		return
	}
	for j, i := range index {
		d := answer[0].Parts[j].WithBasis(escapement.Fallback)
		if claims[j].Plan.Limit().Shadow {
			d.Allowed = true
		}
		a.Parts[i] = d
	}
	a.Admitted = a.Admitted && answer[0].Admitted
}

// owns reports whether claims are on a share: refunds of what a share was charged.
func (p *Policy) owns(claims []escapement.Claim) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if len(p.plans) == 0 {
		return false
	}
	for i := range claims {
		if !p.plans[claims[i].Plan.ID()] {
			return false
		}
	}
	return len(claims) > 0
}

// IsShare reports whether a plan is one that the policy made of another one.
func (p *Policy) IsShare(plan *escapement.Plan) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.plans[plan.ID()]
}

// share is the share of a plan; nil if that is nothing or not known.
func (p *Policy) share(of *escapement.Plan) *escapement.Plan {
	if p.local == nil {
		return nil
	}
	n := int64(p.instances())
	if n < 1 {
		return nil
	}
	name := of.Limit().Name
	p.mu.RLock()
	s := p.shares[name]
	p.mu.RUnlock()
	if s == nil || s.of < of.ID() || s.instances != n {
		s = p.divide(of, n)
	}
	if s.plan == nil || s.plan.Limit().Rate.Count == of.Limit().Rate.Count/n {
		return s.plan
	}
	// The count comes from the request.
	v, err := s.plan.WithCount(of.Limit().Rate.Count / n)
	if err != nil {
		return nil
	}
	return v
}

// divide makes the share of a plan, in the place of that of an older one or among others.
func (p *Policy) divide(of *escapement.Plan, n int64) *share {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := of.Limit().Name
	old := p.shares[name]
	if old != nil && (old.of > of.ID() || old.of == of.ID() && old.instances == n) {
		return old
	}
	s := &share{of: of.ID(), instances: n, plan: Share(*of.Limit(), n)}
	if old != nil && old.plan != nil {
		delete(p.plans, old.plan.ID())
	}
	if s.plan != nil {
		p.plans[s.plan.ID()] = true
	}
	p.shares[name] = s
	return s
}

// Share compiles what one of so many instances enforces of a limit: count and burst
// divided, rounded down. It is nil where that is nothing.
func Share(l escapement.Limit, instances int64) *escapement.Plan {
	l.Rate.Count /= instances
	if l.Burst > 0 {
		if l.Burst /= instances; l.Burst == 0 {
			return nil
		}
	}
	if l.Rate.Count == 0 {
		return nil
	}
	if l.Algorithm == escapement.TokenBucket || l.Algorithm == escapement.GCRA {
		l.Sync, l.SyncMode = 0, 0 // a part of a bucket may be too small to be leased, which it is not
	}
	plan, err := l.Compile()
	if err != nil {
		return nil // a headroom that leaves nothing of it
	}
	return plan
}
