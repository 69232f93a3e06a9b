package ledgers

import (
	"context"

	"github.com/escapement-io/escapement"
)

// Decide answers each request. Those without a claim of this store's own go to the store
// behind, together.
func (s *Store[L, M, R, P]) Decide(ctx context.Context, requests []escapement.Request, answers []escapement.Answer) {
	n := min(len(requests), len(answers))
	from := 0
	for i := range n {
		if !s.concerns(requests[i].Claims) {
			continue
		}
		if from < i {
			s.exact.Decide(ctx, requests[from:i], answers[from:i])
		}
		s.one(ctx, requests[i].Claims, &answers[i])
		from = i + 1
	}
	if from < n {
		s.exact.Decide(ctx, requests[from:n], answers[from:n])
	}
}

func (s *Store[L, M, R, P]) concerns(claims []escapement.Claim) bool {
	for i := range claims {
		if p := claims[i].Plan; p != nil && p.ID() != 0 && s.owns(p) {
			return true
		}
	}
	return false
}

// one answers a request of which a claim is this store's own.
func (s *Store[L, M, R, P]) one(ctx context.Context, claims []escapement.Claim, a *escapement.Answer) {
	*a = escapement.Answer{Parts: a.Parts[:0]}
	if a.Err = s.checkAll(claims); a.Err != nil {
		return
	}
	if len(claims) == 1 {
		d, err := s.DecideOne(ctx, claims[0])
		if a.Err = err; err == nil {
			a.Outcome, a.Admitted = escapement.Decided, d.Allowed || d.Plan().Limit().Shadow
			a.Parts = append(a.Parts, d)
		}
		return
	}
	g := group{claims: claims, parts: make([]escapement.Decision, len(claims)), asked: make([]bool, len(claims))}
	a.Admitted = true
	for i := range claims {
		if !s.owns(claims[i].Plan) {
			g.rest = append(g.rest, claims[i])
			continue
		}
		d, err := s.DecideOne(ctx, claims[i])
		if err != nil {
			s.undoAll(&g)
			a.Admitted, a.Err = false, err
			return
		}
		g.parts[i], g.asked[i] = d, true
		if !d.Allowed && !d.Plan().Limit().Shadow {
			a.Admitted = false
			break
		}
	}
	s.finish(ctx, &g, a)
}

// group is a request of several claims while it is decided.
type group struct {
	claims []escapement.Claim
	parts  []escapement.Decision
	asked  []bool             // by claim: its ledger decided
	rest   []escapement.Claim // what the store behind decides
}

// finish asks the store behind about the rest, if the ledgers admit. What ledgers gave is
// put back if it refuses or did nothing, and stays spent if it is not known what it did.
func (s *Store[L, M, R, P]) finish(ctx context.Context, g *group, a *escapement.Answer) {
	if a.Admitted && len(g.rest) > 0 {
		var answer [1]escapement.Answer
		s.exact.Decide(ctx, []escapement.Request{{Claims: g.rest}}, answer[:])
		r := &answer[0]
		if r.Outcome != escapement.Decided {
			if r.Outcome == escapement.NotRun {
				s.undoAll(g)
			}
			a.Outcome, a.Admitted, a.Err = r.Outcome, false, r.Err
			return
		}
		a.Admitted = r.Admitted
		k := 0
		for i := range g.claims {
			if !s.owns(g.claims[i].Plan) {
				g.parts[i] = r.Parts[k]
				k++
			}
		}
	}
	a.Outcome = escapement.Decided
	if !a.Admitted {
		s.undoAll(g)
		s.lookUp(g)
	}
	a.Parts = append(a.Parts, g.parts...)
}

// undoAll puts back what the ledgers gave.
func (s *Store[L, M, R, P]) undoAll(g *group) {
	for i := range g.claims {
		if g.asked[i] && g.parts[i].Allowed && g.claims[i].Mode == escapement.Take {
			s.undo(g.claims[i].Key, &g.parts[i])
		}
	}
}

// lookUp says of the claims of a refused request how they stand, as far as that can be
// known without a store; nothing is taken.
func (s *Store[L, M, R, P]) lookUp(g *group) {
	for i := range g.claims {
		c := &g.claims[i]
		switch {
		case s.owns(c.Plan) && g.asked[i] && !g.parts[i].Allowed:
		case s.owns(c.Plan):
			l := s.limitOf(c.Plan)
			g.parts[i] = s.stands(l, s.hash(l, c.Key), l.ruling(c.Plan))
		case g.parts[i].Plan() == nil:
			g.parts[i] = escapement.Decision{Allowed: true} // not asked: nothing is known
		}
	}
}
