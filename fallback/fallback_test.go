package fallback_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/fallback"
	"github.com/escapement-io/escapement/memstore"
	"github.com/escapement-io/escapement/storetest"
)

var ctx = context.Background()

// still is a line that stands.
type still struct{}

func (still) Now() algo.Store { return 1_800_000_000_000_000 }

// manual is a line that a test moves.
type manual struct{ now atomic.Int64 }

func (m *manual) Now() algo.Store         { return still{}.Now() + algo.Store(m.now.Load()) }
func (m *manual) Advance(d time.Duration) { m.now.Add(d.Microseconds()) }

func memory(t *testing.T) *memstore.Store {
	t.Helper()
	s := memstore.New(memstore.WithClock(still{}))
	t.Cleanup(func() { s.Close() })
	return s
}

// away is a store that fails with an outcome while it is set to.
type away struct {
	escapement.Store
	outcome escapement.Outcome
	gone    bool
	asked   int
}

var errAway = errors.Join(escapement.ErrStoreUnavailable, errors.New("no route to it"))

func (a *away) Decide(ctx context.Context, requests []escapement.Request, answers []escapement.Answer) {
	a.asked++
	if !a.gone {
		a.Store.Decide(ctx, requests, answers)
		return
	}
	for i := range requests {
		answers[i] = escapement.Answer{Outcome: a.outcome, Err: errAway}
	}
}

func plan(t *testing.T, l escapement.Limit) *escapement.Plan {
	t.Helper()
	if l.Name == "" {
		l.Name = "l"
	}
	if l.Rate.Count == 0 {
		l.Rate = escapement.PerHour(10)
	}
	p, err := l.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func take(s escapement.Store, claims ...escapement.Claim) escapement.Answer {
	answers := []escapement.Answer{{}}
	for i := range claims {
		if claims[i].Mode == escapement.Take && claims[i].Cost == 0 {
			claims[i].Cost = 1
		}
	}
	s.Decide(ctx, []escapement.Request{{Claims: claims}}, answers)
	return answers[0]
}

// admits counts how many of n takes pass.
func admits(s escapement.Store, p *escapement.Plan, n int) (passed int) {
	for range n {
		if a := take(s, escapement.Claim{Plan: p, Key: "k"}); a.Admitted {
			passed++
		}
	}
	return passed
}

func TestEachPolicyPassesWhatItSays(t *testing.T) {
	for _, c := range []struct {
		limit     escapement.Limit
		instances int
		want      int
	}{
		{escapement.Limit{OnFailure: escapement.Deny}, 3, 0},
		{escapement.Limit{OnFailure: escapement.Allow}, 3, 20},
		{escapement.Limit{OnFailure: escapement.LocalShare}, 3, 3},
		{escapement.Limit{OnFailure: escapement.LocalShare, Burst: 7}, 3, 2},
		{escapement.Limit{OnFailure: escapement.LocalShare, Headroom: 50}, 3, 1},
		{escapement.Limit{OnFailure: escapement.LocalShare, Algorithm: escapement.RollingWindow}, 1, 10},
		{escapement.Limit{OnFailure: escapement.LocalShare}, 0, 0},
		{escapement.Limit{OnFailure: escapement.LocalShare}, 11, 0},
		{escapement.Limit{OnFailure: escapement.LocalShare, Burst: 2}, 3, 0},
		{escapement.Limit{OnFailure: escapement.LocalShare, Headroom: 90}, 3, 0},
		{escapement.Limit{OnFailure: escapement.Deny, Shadow: true}, 3, 20},
		{escapement.Limit{OnFailure: escapement.LocalShare, Shadow: true}, 3, 20},
	} {
		for _, outcome := range []escapement.Outcome{escapement.NotRun, escapement.Unknown} {
			s := fallback.New(&away{Store: memory(t), outcome: outcome, gone: true}, fallback.NewPolicy(memory(t), fallback.Fixed(c.instances)))
			p := plan(t, c.limit)
			if got := admits(s, p, 20); got != c.want {
				t.Errorf("%+v of %d instances: %d passed, want %d", c.limit, c.instances, got, c.want)
			}
			a := take(s, escapement.Claim{Plan: p, Key: "k"})
			if a.Outcome != escapement.Decided || a.Parts[0].Basis() != escapement.Fallback || !errors.Is(a.Err, escapement.ErrStoreUnavailable) {
				t.Errorf("%+v: outcome %v, basis %v, %v", c.limit, a.Outcome, a.Parts[0].Basis(), a.Err)
			}
		}
	}
}

// What a store decides is handed on as it is, and a share is not made new by every outage.
func TestSharesLastFromOneOutageToTheNext(t *testing.T) {
	shared := &away{Store: memory(t)}
	s := fallback.New(shared, fallback.NewPolicy(memory(t), fallback.Fixed(2)))
	p := plan(t, escapement.Limit{OnFailure: escapement.LocalShare})
	passed := 0
	for i := range 40 {
		shared.gone = i%2 == 1
		a := take(s, escapement.Claim{Plan: p, Key: "k"})
		if a.Admitted {
			passed++
		}
		if (a.Parts[0].Basis() == escapement.Fallback) != shared.gone {
			t.Fatalf("take %d: basis %v", i, a.Parts[0].Basis())
		}
	}
	if passed != 15 {
		t.Errorf("%d passed, want the 10 of the store and a share of 5", passed)
	}
	d, err := escapement.NewLimiter(s, p).Take(ctx, "k", 1)
	if err != nil || d.Allowed || d.Limit() != 5 || d.RetryAfter() != 12*time.Minute {
		t.Errorf("%+v %v: a refusal of a share of 5 an hour says when to come back, got %v of %d", d, err, d.RetryAfter(), d.Limit())
	}
}

// A request that one limit denies charges no share.
func TestAllOrNone(t *testing.T) {
	local := memory(t)
	policy := fallback.NewPolicy(local, fallback.Fixed(2))
	s := fallback.New(&away{Store: memory(t), gone: true}, policy)
	share := plan(t, escapement.Limit{Name: "share", OnFailure: escapement.LocalShare})
	small := plan(t, escapement.Limit{Name: "small", Rate: escapement.PerHour(2), OnFailure: escapement.LocalShare})
	deny := plan(t, escapement.Limit{Name: "deny"})
	for range 20 {
		if a := take(s, escapement.Claim{Plan: share, Key: "k"}, escapement.Claim{Plan: deny, Key: "k"}); a.Admitted || !a.Parts[0].Allowed || a.Parts[1].Allowed {
			t.Fatalf("%+v", a)
		}
	}
	passed := 0
	for range 20 {
		if take(s, escapement.Claim{Plan: share, Key: "k"}, escapement.Claim{Plan: small, Key: "k"}).Admitted {
			passed++
		}
	}
	if left := admits(s, share, 20); passed != 1 || left != 4 {
		t.Errorf("%d passed both, and %d were left of the share of 5; want 1 and 4", passed, left)
	}
}

// What a share was charged is given back to the share, when the store is there again too.
func TestRefundsGoWhereTheUnitsCameFrom(t *testing.T) {
	shared := &away{Store: memory(t), gone: true}
	s := fallback.New(shared, fallback.NewPolicy(memory(t), fallback.Fixed(2)))
	p := plan(t, escapement.Limit{Algorithm: escapement.FixedWindow, OnFailure: escapement.LocalShare})
	a := take(s, escapement.Claim{Plan: p, Key: "k", Cost: 5})
	if !a.Admitted || admits(s, p, 1) != 0 {
		t.Fatalf("%+v", a)
	}
	shared.gone = false
	before := shared.asked
	d := &a.Parts[0]
	if got, err := s.DecideOne(ctx, escapement.Claim{Plan: d.Plan(), Key: "k", Mode: escapement.Refund, Receipt: d.Receipt()}); err != nil || !got.Allowed || shared.asked != before {
		t.Errorf("%+v %v, the shared store was asked %d times", got, err, shared.asked-before)
	}
	shared.gone = true
	if n := admits(s, p, 9); n != 5 {
		t.Errorf("%d passed after the refund, want 5", n)
	}
}

// A share follows the number of instances, and takes over what was used.
func TestInstancesComeAndGo(t *testing.T) {
	n := 2
	s := fallback.New(&away{Store: memory(t), gone: true}, fallback.NewPolicy(memory(t), func() int { return n }))
	p := plan(t, escapement.Limit{Algorithm: escapement.FixedWindow, OnFailure: escapement.LocalShare})
	for _, c := range []struct{ instances, want int }{{2, 5}, {1, 5}, {5, 0}, {0, 0}} {
		n = c.instances
		if got := admits(s, p, 20); got != c.want {
			t.Errorf("with %d instances %d more passed, want %d", n, got, c.want)
		}
	}
}

// A part of a leased bucket is kept even where it could not be leased itself.
func TestSharesOfALeasedBucket(t *testing.T) {
	s := fallback.New(&away{Store: memory(t), gone: true}, fallback.NewPolicy(memory(t), fallback.Fixed(2)))
	p := plan(t, escapement.Limit{Rate: escapement.PerSecond(10), Burst: 11, Sync: 1100 * time.Millisecond, OnFailure: escapement.LocalShare})
	if n := admits(s, p, 20); n != 5 {
		t.Errorf("%d passed, want the half of a burst of 11", n)
	}
}

// Counts that come with the request are divided as they come, on one state.
func TestVariants(t *testing.T) {
	s := fallback.New(&away{Store: memory(t), gone: true}, fallback.NewPolicy(memory(t), fallback.Fixed(2)))
	p := plan(t, escapement.Limit{Algorithm: escapement.FixedWindow, OnFailure: escapement.LocalShare})
	v, err := p.WithCount(16)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := admits(s, p, 20), admits(s, v, 20); a != 5 || b != 3 {
		t.Errorf("%d and %d passed, want 5 and the 3 more of 8", a, b)
	}
	// The limit was changed: its share takes over what was used.
	if n := admits(s, plan(t, escapement.Limit{Algorithm: escapement.FixedWindow, Rate: escapement.PerHour(20), OnFailure: escapement.LocalShare}), 20); n != 2 {
		t.Errorf("%d passed, want the 2 more of 10", n)
	}
	if n := admits(s, p, 20); n != 0 {
		t.Errorf("%d passed under the limit that was replaced", n)
	}
}

// A store that does not fail behaves as it does without a policy.
func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (escapement.Store, storetest.Clock) {
		c := &manual{}
		m := memstore.New(memstore.WithClock(c))
		t.Cleanup(func() { m.Close() })
		return fallback.New(m, fallback.NewPolicy(memory(t), fallback.Fixed(2))), c
	})
}
