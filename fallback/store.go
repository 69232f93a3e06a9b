package fallback

import (
	"context"
	"errors"

	"github.com/escapement-io/escapement"
)

// Store is a shared store with answers for when it fails. Safe for concurrent use.
type Store struct {
	shared escapement.Store
	fast   escapement.FastStore // shared, if it has the shorter way
	policy *Policy
}

var _ escapement.FastStore = (*Store)(nil)

// New answers for shared by policy.
func New(shared escapement.Store, policy *Policy) *Store {
	s := &Store{shared: shared, policy: policy}
	s.fast, _ = shared.(escapement.FastStore)
	return s
}

// Decide answers each request by the shared store, and those it has no decision on by
// their limits' OnFailure: the answer is Decided then, its parts have the basis Fallback,
// and Err says why. What is at fault in the request itself, and a caller that gave up, are
// answered as the shared store does.
func (s *Store) Decide(ctx context.Context, requests []escapement.Request, answers []escapement.Answer) {
	n := min(len(requests), len(answers))
	var own []int
	for i := range n {
		if s.policy.owns(requests[i].Claims) {
			own = append(own, i)
		}
	}
	if len(own) == 0 {
		s.shared.Decide(ctx, requests, answers)
	} else {
		for i := range n {
			if len(own) > 0 && own[0] == i {
				own = own[1:]
				s.policy.local.Decide(ctx, requests[i:i+1], answers[i:i+1])
				continue
			}
			s.shared.Decide(ctx, requests[i:i+1], answers[i:i+1])
		}
	}
	for i := range n {
		if answers[i].Outcome != escapement.Decided && failed(answers[i].Err) {
			s.policy.Answer(ctx, requests[i].Claims, &answers[i])
		}
	}
}

// DecideOne answers a claim that stands alone, as Decide does. The error is nil where
// OnFailure decides.
func (s *Store) DecideOne(ctx context.Context, c escapement.Claim) (escapement.Decision, error) {
	if s.fast != nil && !s.policy.owns([]escapement.Claim{c}) {
		d, err := s.fast.DecideOne(ctx, c)
		if err == nil || !failed(err) {
			return d, err
		}
		a := escapement.Answer{}
		s.policy.Answer(ctx, []escapement.Claim{c}, &a)
		return a.Parts[0], nil
	}
	requests := [1]escapement.Request{{Claims: []escapement.Claim{c}}}
	answers := [1]escapement.Answer{}
	s.Decide(ctx, requests[:], answers[:])
	if a := &answers[0]; a.Outcome == escapement.Decided {
		return a.Parts[0], nil
	}
	return escapement.Decision{}, answers[0].Err
}

// failed reports whether the store is to blame, and not the request.
func failed(err error) bool {
	return !errors.Is(err, escapement.ErrRequest) && !errors.Is(err, escapement.ErrCost) && !errors.Is(err, context.Canceled)
}
