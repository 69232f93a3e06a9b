package gateway

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/fallback"
	"github.com/escapement-io/escapement/internal/config"
	"github.com/escapement-io/escapement/memstore"
)

// leaving is a store that runs no request of several claims, and whose client gives up
// while it is asked about one limit.
type leaving struct {
	*memstore.Store
	at    string
	leave context.CancelFunc
	asked []string
}

func (s *leaving) Decide(ctx context.Context, requests []escapement.Request, answers []escapement.Answer) {
	claims := requests[0].Claims
	if len(claims) > 1 {
		answers[0] = escapement.Answer{Err: escapement.ErrFull}
		return
	}
	name := claims[0].Plan.Limit().Name
	if claims[0].Mode == escapement.Take {
		s.asked = append(s.asked, name)
		if name == s.at {
			s.leave()
			answers[0] = escapement.Answer{Err: ctx.Err()}
			return
		}
	}
	s.Store.Decide(ctx, requests, answers)
}

// TestAClientLeavesBetweenLimits: of limits that are asked one by one those after it are
// not asked any more, and those before it get back what they gave.
func TestAClientLeavesBetweenLimits(t *testing.T) {
	all := []string{"a", "b", "c"}
	for i, at := range all {
		m := memstore.New()
		ctx, cancel := context.WithCancel(t.Context())
		s := &leaving{Store: m, at: at, leave: cancel}
		x := &exchange{g: &Gateway{store: s, policy: fallback.NewPolicy(nil, fallback.Fixed(1))}}
		for _, name := range all {
			l := escapement.Limit{Name: name, Rate: escapement.Rate{Count: 5, Per: time.Hour}}
			p, err := l.Compile()
			if err != nil {
				t.Fatal(err)
			}
			x.limits = append(x.limits, &limit{Limit: &config.Limit{Limit: l}, plan: p})
			x.claims = append(x.claims, escapement.Claim{Plan: p, Key: "k", Cost: 1})
		}
		claims := slices.Clone(x.claims)
		if x.askStores(ctx) || !x.gone || !slices.Equal(s.asked, all[:i+1]) {
			t.Errorf("gone at %s: %v, asked %v", at, x.gone, s.asked)
		}
		for _, c := range claims {
			c.Mode = escapement.Peek
			if d, err := m.DecideOne(t.Context(), c); err != nil || d.Remaining() != 5 {
				t.Errorf("gone at %s: %d of 5 are left of %s, %v", at, d.Remaining(), c.Plan.Limit().Name, err)
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
