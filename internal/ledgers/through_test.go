package ledgers_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/batch"
	"github.com/escapement-io/escapement/lease"
	"github.com/escapement-io/escapement/memstore"
	"github.com/escapement-io/escapement/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// line is a store's line that a test moves.
type line struct{ at atomic.Int64 }

func (l *line) Now() algo.Store         { return algo.Store(l.at.Load()) }
func (l *line) Advance(d time.Duration) { l.at.Add(int64(d / time.Microsecond)) }

// TestPassThrough proves that limits without Sync are answered as the store behind does,
// through both kinds of store.
func TestPassThrough(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (escapement.Store, storetest.Clock) {
		c := &line{}
		c.at.Store(1_728_000_000_000_000)
		m := memstore.New(memstore.WithClock(c))
		b := newBackend()
		leases := lease.NewStore(b, m, lease.Options{})
		s := batch.NewStore(b, leases, batch.Options{})
		t.Cleanup(func() {
			for _, f := range []func(context.Context) error{s.Close, leases.Close} {
				if err := f(context.Background()); err != nil {
					t.Error(err)
				}
			}
			m.Close()
		})
		return s, c
	})
}

// TestGroups has requests of a limit with ledgers and an exact one admitted as a whole.
func TestGroups(t *testing.T) {
	l := escapement.Limit{Name: "ours", Algorithm: escapement.FixedWindow, Rate: escapement.PerMinute(5), Sync: 200 * time.Millisecond}
	both(t, l, lease.Options{}, func(t *testing.T, b *backend, s store, p *escapement.Plan) {
		exact := compile(t, escapement.Limit{Name: "exact", Rate: escapement.PerMinute(3)})
		ask := func(claims ...escapement.Claim) escapement.Answer {
			t.Helper()
			var a [1]escapement.Answer
			s.Decide(t.Context(), []escapement.Request{{Claims: claims}}, a[:])
			if a[0].Outcome != escapement.Decided || a[0].Err != nil || len(a[0].Parts) != len(claims) {
				t.Fatalf("outcome %d, %v, %d parts", a[0].Outcome, a[0].Err, len(a[0].Parts))
			}
			return a[0]
		}
		left := func(p *escapement.Plan) int64 {
			t.Helper()
			d, err := s.DecideOne(t.Context(), escapement.Claim{Plan: p, Key: "k", Mode: escapement.Peek, Cost: 1})
			if err != nil {
				t.Fatal(err)
			}
			return d.Remaining()
		}
		ours, other := escapement.Claim{Plan: p, Key: "k", Cost: 1}, escapement.Claim{Plan: exact, Key: "k", Cost: 1}
		for i := range 3 {
			if a := ask(other, ours); !a.Admitted || !a.Parts[0].Allowed || !a.Parts[1].Allowed {
				t.Fatalf("request %d is refused", i)
			}
		}
		// The exact limit refuses: ours is put back.
		a := ask(ours, other)
		if a.Admitted || !a.Parts[0].Allowed || a.Parts[1].Allowed {
			t.Errorf("admitted %v, parts %v and %v", a.Admitted, a.Parts[0].Allowed, a.Parts[1].Allowed)
		}
		if got := left(p); got != 2 {
			t.Errorf("%d of ours remain, want 2", got)
		}
		// Two claims on one key are judged on their sum.
		two := ours
		two.Cost = 2
		if a := ask(two, ours); a.Admitted {
			t.Error("three of two are admitted")
		}
		if got := left(p); got != 2 {
			t.Errorf("after a refusal %d of ours remain, want 2", got)
		}
		if a := ask(ours, ours); !a.Admitted {
			t.Error("two of two are refused")
		}
		// It is spent.
		d, _ := s.TakeOne(t.Context(), p, "k", 1)
		if d.Allowed {
			t.Fatal("a sixth of five is admitted")
		}
		if a := ask(ours, other); a.Admitted || a.Parts[0].Allowed {
			t.Error("a spent limit does not refuse a group")
		}
		if d := ask(ours, other).Parts[1]; d.Plan() != nil {
			t.Errorf("of a limit that was not asked %d are said to remain", d.Remaining())
		}
		if got := left(exact); got != 0 {
			t.Errorf("%d of the exact limit remain, want none", got)
		}
	})
}

// TestOtherModes has what was taken given back, and what was spent counted.
func TestOtherModes(t *testing.T) {
	l := escapement.Limit{Name: "modes", Algorithm: escapement.FixedWindow, Rate: escapement.PerMinute(10), Sync: 200 * time.Millisecond}
	both(t, l, lease.Options{}, func(t *testing.T, b *backend, s store, p *escapement.Plan) {
		do := func(c escapement.Claim) escapement.Decision {
			t.Helper()
			c.Plan, c.Key = p, "k"
			d, err := s.DecideOne(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		d := do(escapement.Claim{Cost: 4})
		if back := do(escapement.Claim{Mode: escapement.Refund, Receipt: d.Receipt()}); back.Units() != 4 || back.Remaining() != 10 {
			t.Errorf("a refund of 4 gives back %d, %d remain", back.Units(), back.Remaining())
		}
		if back := do(escapement.Claim{Mode: escapement.Refund, Receipt: d.Receipt()}); back.Units() != 0 {
			t.Errorf("a second refund gives back %d", back.Units())
		}
		if d := do(escapement.Claim{Mode: escapement.Charge, Cost: 3}); d.Units() != 3 || d.Remaining() != 7 {
			t.Errorf("a charge of 3 counts %d, %d remain", d.Units(), d.Remaining())
		}
		if d := do(escapement.Claim{}); !d.Allowed || d.Units() != 0 || d.Remaining() != 7 {
			t.Errorf("nothing: allowed %v, %d units, %d remain", d.Allowed, d.Units(), d.Remaining())
		}
		taken := int64(0)
		for range 20 {
			d := do(escapement.Claim{Mode: escapement.TakeUpTo, Cost: 3})
			if taken += d.Units(); !d.Allowed || d.Units() > 3 {
				t.Fatalf("up to 3: allowed %v, %d units", d.Allowed, d.Units())
			}
			time.Sleep(100 * time.Millisecond)
		}
		if taken != 7 {
			t.Errorf("%d were taken up to 3 at a time, want 7", taken)
		}
		time.Sleep(2 * time.Minute)
		if d := do(escapement.Claim{Mode: escapement.Refund, Receipt: d.Receipt()}); d.Units() != 0 {
			t.Errorf("a refund of a window that is over gives back %d", d.Units())
		}
	})
}

// TestCountsOfRequests: a request is counted once however it is decided, and a look not at all.
func TestCountsOfRequests(t *testing.T) {
	l := escapement.Limit{Name: "counted", Algorithm: escapement.FixedWindow, Rate: escapement.PerMinute(10), Sync: 200 * time.Millisecond}
	both(t, l, lease.Options{}, func(t *testing.T, _ *backend, s store, p *escapement.Plan) {
		ask := func(m escapement.Mode, cost int64) {
			t.Helper()
			if _, err := s.DecideOne(t.Context(), escapement.Claim{Plan: p, Key: "k", Mode: m, Cost: cost}); err != nil && m != escapement.Peek {
				t.Fatal(err)
			}
		}
		ask(escapement.Peek, 1)
		ask(escapement.TakeUpTo, 4)
		ask(escapement.Take, 1)
		ask(escapement.Peek, 1)
		ask(escapement.Take, 11)
		if v := s.Snapshot(); v.Admitted != 2 || v.Refused != 1 {
			t.Errorf("%d admitted and %d refused, want 2 and 1", v.Admitted, v.Refused)
		}
	})
}
