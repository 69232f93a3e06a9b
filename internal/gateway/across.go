package gateway

import (
	"context"
	"errors"

	"github.com/escapement-io/escapement"
)

// askStores asks the stores of the request's limits one after the other, memory first,
// until one refuses. What was charged is given back then, unless it is not known what a
// store did: then all of it stays spent.
func (x *exchange) askStores(ctx context.Context) bool {
	x.byStore()
	charged, known := 0, true
	for from := 0; from < len(x.claims); {
		to := from + 1
		for to < len(x.claims) && x.limits[to].shared == x.limits[from].shared {
			to++
		}
		ok, sure := x.askStore(ctx, from, to)
		known = known && sure
		if !ok {
			if known {
				x.giveBack(ctx, 0, charged)
			}
			return false
		}
		from, charged = to, to
	}
	return true
}

// byStore puts the limits of one store side by side, those in memory first.
func (x *exchange) byStore() {
	for i := 1; i < len(x.limits); i++ {
		for j := i; j > 0 && x.limits[j].rank < x.limits[j-1].rank; j-- {
			x.limits[j], x.limits[j-1] = x.limits[j-1], x.limits[j]
			x.claims[j], x.claims[j-1] = x.claims[j-1], x.claims[j]
		}
	}
}

// askStore decides the claims of one store, or lets their limits' policies do. It reports
// whether they are admitted, and whether it is known what the store did.
func (x *exchange) askStore(ctx context.Context, from, to int) (admitted, known bool) {
	s := x.limits[from].shared
	store, policy := x.g.store, x.g.policy
	if s != nil {
		store, policy = s, s.policy
	}
	claims := x.claims[from:to]
	x.request[0].Claims = claims
	x.answer[0] = escapement.Answer{Parts: x.answer[0].Parts[:0]}
	store.Decide(ctx, x.request[:], x.answer[:])
	a := &x.answer[0]
	if a.Outcome != escapement.Decided && ctx.Err() != nil {
		x.gone = true // the store is not to blame, and no policy is asked
		return false, a.Outcome != escapement.Unknown
	}
	if a.Outcome == escapement.NotRun && to-from > 1 && !errors.Is(a.Err, escapement.ErrStoreUnavailable) {
		// One of the claims is at fault; the others must not gain from that.
		admitted, known = true, true
		for i := from; i < to && !x.gone; i++ {
			ok, sure := x.askStore(ctx, i, i+1)
			admitted, known = admitted && ok, known && sure
		}
		if !admitted && known {
			x.giveBack(ctx, from, len(x.parts)) // who has gone left some unasked
		}
		return admitted, known
	}
	known = a.Outcome != escapement.Unknown
	if a.Outcome != escapement.Decided {
		x.undecided(from, a.Err)
		policy.Answer(ctx, claims, a)
	}
	x.parts = append(x.parts, a.Parts...)
	return a.Admitted, known
}

// undecided says, now and then, that a limit's store had no answer.
func (x *exchange) undecided(i int, err error) {
	l := x.limits[i]
	x.g.quiet.log("a store did not decide, on_failure answers", "limit", l.Name, "on_failure", l.OnFailure.String(), "error", err)
}
