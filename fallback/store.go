package fallback

import (
	"context"

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
// and Err says why.
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
		if answers[i].Outcome != escapement.Decided {
			s.policy.Answer(ctx, requests[i].Claims, &answers[i])
		}
	}
}

// DecideOne answers a claim that stands alone. The error is nil where OnFailure decides.
func (s *Store) DecideOne(ctx context.Context, c escapement.Claim) (escapement.Decision, error) {
	if s.fast != nil && !s.policy.owns([]escapement.Claim{c}) {
		if d, err := s.fast.DecideOne(ctx, c); err == nil {
			return d, nil
		}
		a := escapement.Answer{}
		s.policy.Answer(ctx, []escapement.Claim{c}, &a)
		return a.Parts[0], nil
	}
	requests := [1]escapement.Request{{Claims: []escapement.Claim{c}}}
	answers := [1]escapement.Answer{}
	s.Decide(ctx, requests[:], answers[:])
	return answers[0].Parts[0], nil
}
