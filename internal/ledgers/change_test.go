package ledgers_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/lease"
	"github.com/escapement-io/escapement/memstore"
)

// A limit that comes back with another count or other windows goes on at once, and a claim
// with an older plan is decided under the newer one.
func TestPlansChange(t *testing.T) {
	l := escapement.Limit{Name: "plans", Algorithm: escapement.FixedWindow, Rate: escapement.PerMinute(10), Sync: 200 * time.Millisecond}
	both(t, l, lease.Options{}, func(t *testing.T, b *backend, s store, p *escapement.Plan) {
		take := func(p *escapement.Plan, cost int64) escapement.Decision {
			t.Helper()
			d, err := s.TakeOne(t.Context(), p, "k", cost)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		if !take(p, 4).Allowed {
			t.Fatal("four of ten are refused")
		}
		more := *p.Limit()
		more.Rate.Count = 20
		wide := compile(t, more)
		d := take(wide, 12)
		if !d.Allowed || d.Plan() != wide || d.Remaining() > 4 {
			t.Errorf("sixteen of twenty: allowed %v, %d remain", d.Allowed, d.Remaining())
		}
		if d := take(p, 1); d.Plan() != wide {
			t.Errorf("an older plan decides: its limit is %d", d.Limit())
		}
		variant, err := wide.WithCount(17)
		if err != nil {
			t.Fatal(err)
		}
		if d := take(variant, 18); d.Limit() != 17 || d.RetryAfter() != escapement.Never {
			t.Errorf("a variant: limit %d, more than it is told to wait %v", d.Limit(), d.RetryAfter())
		}
		other := more
		other.Rate = escapement.PerHour(30)
		hourly := compile(t, other)
		if d := take(hourly, 1); !d.Allowed || d.Limit() != 30 {
			t.Errorf("another window: allowed %v, limit %d", d.Allowed, d.Limit())
		}
		time.Sleep(30 * time.Second)
		if v := s.Snapshot(); v.Syncing != 0 || v.Keys != 0 {
			t.Errorf("%d keys still sync, %d are kept", v.Syncing, v.Keys)
		}
	})
}

// What a store will never take is forgotten, not repeated for ever, and does not hold up the end.
func TestAStoreThatMovedOn(t *testing.T) {
	for _, why := range []error{escapement.ErrRequest, escapement.ErrCost} {
		t.Run(why.Error(), func(t *testing.T) { neverTaken(t, why) })
	}
}

func neverTaken(t *testing.T, why error) {
	l := escapement.Limit{Name: "moved", Algorithm: escapement.FixedWindow, Rate: escapement.PerMinute(10), Sync: 200 * time.Millisecond}
	both(t, l, lease.Options{}, func(t *testing.T, b *backend, s store, p *escapement.Plan) {
		for _, k := range []string{"a", "b", "c"} {
			if d, err := s.TakeOne(t.Context(), p, k, 3); err != nil || !d.Allowed {
				t.Fatalf("%s: %v, %v", k, d.Allowed, err)
			}
		}
		b.mu.Lock()
		b.refuses = fmt.Errorf("%w: other windows", why)
		b.mu.Unlock()
		time.Sleep(400 * time.Millisecond) // a tick
		b.counts()
		for range 1000 {
			if _, err := s.TakeOne(t.Context(), p, "a", 9); !errors.Is(err, escapement.ErrStoreUnavailable) {
				t.Fatalf("a claim that it does not know: %v", err)
			}
			time.Sleep(time.Millisecond)
		}
		if calls, _ := b.counts(); calls > 20 {
			t.Errorf("%d calls in a second about claims that it does not know", calls)
		}
		time.Sleep(20 * time.Second)
		if v := s.Snapshot(); v.Syncing != 0 || v.Keys != 0 {
			t.Errorf("%d keys still sync, %d are kept", v.Syncing, v.Keys)
		}
	})
}

// slow is a backend whose calls take long.
type slow struct{ *backend }

func (s slow) Lend(ctx context.Context, loans []escapement.Loan, answers []escapement.Granted) {
	select {
	case <-time.After(time.Second):
		s.backend.Lend(ctx, loans, answers)
	case <-ctx.Done():
		for i := range answers {
			answers[i] = escapement.Granted{Outcome: escapement.Unknown, Err: ctx.Err()}
		}
	}
}

// A request waits no longer than it may, than its caller, and than the store lives.
func TestWaitsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memstore.New()
		defer m.Close()
		s := lease.NewStore(slow{newBackend()}, m, lease.Options{MaxWait: 100 * time.Millisecond})
		p := compile(t, escapement.Limit{Name: "waits", Algorithm: escapement.FixedWindow, Rate: escapement.PerMinute(10), Sync: 200 * time.Millisecond})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		began := clock.Mono()
		if _, err := s.TakeOne(ctx, p, "gone", 1); !errors.Is(err, context.DeadlineExceeded) || clock.Since(began) != 30*time.Millisecond {
			t.Errorf("whose caller has gone: %v after %v", err, clock.Since(began))
		}
		began = clock.Mono()
		if d, err := s.TakeOne(t.Context(), p, "late", 1); d.Allowed || clock.Since(began) != 100*time.Millisecond {
			t.Errorf("whose reply is late: allowed %v, %v after %v", d.Allowed, err, clock.Since(began))
		}
		var done sync.WaitGroup
		for range 10 {
			done.Go(func() {
				if _, err := s.TakeOne(t.Context(), p, "closed", 1); !errors.Is(err, escapement.ErrStoreUnavailable) {
					t.Errorf("while the store closes: %v", err)
				}
			})
		}
		time.Sleep(10 * time.Millisecond)
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		done.Wait()
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("closed twice: %v", err)
		}
	})
}

// Closing waits no longer than it may for calls that are under way.
func TestCloseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memstore.New()
		defer m.Close()
		s := lease.NewStore(slow{newBackend()}, m, lease.Options{MaxWait: time.Millisecond, Deadline: time.Minute})
		p := compile(t, escapement.Limit{Name: "ends", Algorithm: escapement.FixedWindow, Rate: escapement.PerMinute(10), Sync: 200 * time.Millisecond})
		if d, err := s.TakeOne(t.Context(), p, "k", 1); d.Allowed {
			t.Errorf("admitted by a store that is slow: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		began := clock.Mono()
		if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || clock.Since(began) != 30*time.Millisecond {
			t.Errorf("%v after %v", err, clock.Since(began))
		}
		time.Sleep(time.Second) // the call ends
	})
}

// A shadow is counted and refuses nobody, alone and in a group.
func TestShadow(t *testing.T) {
	l := escapement.Limit{Name: "shadow", Algorithm: escapement.FixedWindow, Rate: escapement.PerMinute(2), Sync: 200 * time.Millisecond, Shadow: true}
	both(t, l, lease.Options{}, func(t *testing.T, b *backend, s store, p *escapement.Plan) {
		strict := *p.Limit()
		strict.Name, strict.Shadow, strict.Rate.Count = "strict", false, 5
		q := compile(t, strict)
		for i := range 6 {
			var a [1]escapement.Answer
			s.Decide(t.Context(), []escapement.Request{{Claims: []escapement.Claim{{Plan: p, Key: "k", Cost: 1}, {Plan: q, Key: "k", Cost: 1}}}}, a[:])
			if a[0].Admitted != (i < 5) || a[0].Parts[0].Allowed != (i < 2) {
				t.Errorf("request %d: admitted %v, the shadow would allow %v", i, a[0].Admitted, a[0].Parts[0].Allowed)
			}
		}
	})
}
