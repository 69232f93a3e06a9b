package escapement_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/memstore"
)

// line is a store's clock that a test moves.
type line struct{ now atomic.Int64 }

func (l *line) Now() algo.Store { return algo.Store(l.now.Load()) }

func (l *line) set(d time.Duration) { l.now.Store(int64(d / time.Microsecond)) }

func limiter(t *testing.T, limit escapement.Limit) (*escapement.Limiter, *line) {
	t.Helper()
	l := &line{}
	store := memstore.New(memstore.WithClock(l))
	t.Cleanup(func() { store.Close() })
	if limit.Name == "" {
		limit.Name = "test"
	}
	lim, err := escapement.New(store, limit)
	if err != nil {
		t.Fatal(err)
	}
	return lim, l
}

func TestTakeTellsWhenToComeBack(t *testing.T) {
	ctx := context.Background()
	lim, clk := limiter(t, escapement.Limit{Rate: escapement.PerSecond(5)})
	for i := range 5 {
		if d, err := lim.Take(ctx, "k", 1); err != nil || !d.Allowed || d.Remaining() != int64(4-i) {
			t.Fatalf("take %d: %+v %v, remaining %d", i, d.Allowed, err, d.Remaining())
		}
	}
	d, err := lim.Take(ctx, "k", 1)
	if err != nil || d.Allowed || d.RetryAfter() != 200*time.Millisecond || d.ResetAfter() != time.Second {
		t.Fatalf("refusal: %v, retry %v, reset %v, err %v", d.Allowed, d.RetryAfter(), d.ResetAfter(), err)
	}
	clk.set(200*time.Millisecond - time.Microsecond)
	if d, _ := lim.Take(ctx, "k", 1); d.Allowed {
		t.Error("admitted a microsecond early")
	}
	clk.set(200 * time.Millisecond)
	if d, _ := lim.Take(ctx, "k", 1); !d.Allowed {
		t.Error("a client that waited as told was refused")
	}
	if d, _ := lim.Take(ctx, "k", 6); d.Allowed || d.RetryAfter() != escapement.Never {
		t.Errorf("a cost above capacity must never be told to come back: %v", d.RetryAfter())
	}
}

func TestInvalidCostsTouchNothing(t *testing.T) {
	ctx := context.Background()
	lim, _ := limiter(t, escapement.Limit{Rate: escapement.PerSecond(5)})
	for _, cost := range []int64{-1, -1 << 63, algo.MaxInt + 1, 1<<63 - 1} {
		if d, err := lim.Take(ctx, "k", cost); !errors.Is(err, escapement.ErrCost) || d.Allowed {
			t.Errorf("cost %d: allowed %v, err %v", cost, d.Allowed, err)
		}
		if ok, _, err := escapement.TakeAll(ctx, escapement.Use{Limiter: lim, Key: "k", Cost: cost}); ok || !errors.Is(err, escapement.ErrCost) {
			t.Errorf("TakeAll of cost %d: %v %v", cost, ok, err)
		}
	}
	if d, err := lim.Take(ctx, "k", 0); err != nil || !d.Allowed || d.Remaining() != 5 {
		t.Errorf("cost 0 is a question: %v %v %d", d.Allowed, err, d.Remaining())
	}
}

func TestNoStoreIsAnError(t *testing.T) {
	if _, err := escapement.New(nil, escapement.Limit{Name: "x", Rate: escapement.PerSecond(1)}); !errors.Is(err, escapement.ErrRequest) {
		t.Errorf("New without a store: %v", err)
	}
}

func TestHeadroomIsEnforcedAndShown(t *testing.T) {
	ctx := context.Background()
	lim, _ := limiter(t, escapement.Limit{Algorithm: escapement.FixedWindow, Rate: escapement.PerSecond(2000), Headroom: 20})
	d, err := lim.Take(ctx, "k", 1600)
	if err != nil || !d.Allowed || d.Limit() != 1600 || d.Remaining() != 0 {
		t.Fatalf("allowed %v, limit %d, remaining %d, err %v", d.Allowed, d.Limit(), d.Remaining(), err)
	}
	if d, _ := lim.Take(ctx, "k", 1); d.Allowed || d.RetryAfter() != time.Second {
		t.Errorf("1601st: allowed %v, retry %v", d.Allowed, d.RetryAfter())
	}
}

func TestCancelGivesBackExactlyWhatWasTakenInAnyOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	ctx := context.Background()
	for range 200 {
		lim, clk := limiter(t, escapement.Limit{Rate: escapement.PerSecond(60), Burst: 3})
		clk.set(time.Second)
		var all []*escapement.Reservation
		for range 1 + rng.IntN(8) {
			r, err := lim.Reserve(ctx, "k", 1+rng.Int64N(3), time.Minute)
			if err != nil || !r.Decision.Allowed {
				t.Fatalf("reserve: %v %v", r.Decision.Allowed, err)
			}
			all = append(all, r)
		}
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, r := range all {
			for range 2 { // the second does nothing
				if err := r.Cancel(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		if d, _ := lim.Take(ctx, "k", 3); !d.Allowed || d.Remaining() != 0 {
			t.Fatalf("after cancelling %d reservations: allowed %v, remaining %d", len(all), d.Allowed, d.Remaining())
		}
	}
}

// Time has already given back what was taken ten seconds ago: returning it as well would
// let twenty through at once.
func TestRefundAfterRefillGivesNothing(t *testing.T) {
	ctx := context.Background()
	lim, clk := limiter(t, escapement.Limit{Rate: escapement.PerSecond(1), Burst: 10})
	first, _ := lim.Take(ctx, "k", 10)
	clk.set(10 * time.Second)
	lim.Take(ctx, "k", 10)
	if err := lim.Refund(ctx, "k", first); err != nil {
		t.Fatal(err)
	}
	if d, _ := lim.Take(ctx, "k", 1); d.Allowed {
		t.Error("the refund minted a unit")
	}
}

func TestTakeAllChargesAllOrNone(t *testing.T) {
	ctx := context.Background()
	store := memstore.New(memstore.WithClock(&line{}))
	defer store.Close()
	other := memstore.New(memstore.WithClock(&line{}))
	defer other.Close()
	for _, second := range []escapement.Store{store, other} {
		site, err := escapement.New(store, escapement.Limit{Name: "site", Algorithm: escapement.FixedWindow, Rate: escapement.PerMinute(10)})
		if err != nil {
			t.Fatal(err)
		}
		user, err := escapement.New(second, escapement.Limit{Name: "user", Algorithm: escapement.FixedWindow, Rate: escapement.PerMinute(2)})
		if err != nil {
			t.Fatal(err)
		}
		passed := 0
		for i := range 40 {
			key := fmt.Sprintf("%p-u%d", second, i%2)
			ok, parts, err := escapement.TakeAll(ctx,
				escapement.Use{Limiter: site, Key: fmt.Sprintf("%p", second), Cost: 1},
				escapement.Use{Limiter: user, Key: key, Cost: 1})
			if err != nil || len(parts) != 2 {
				t.Fatal(err, len(parts))
			}
			if ok {
				passed++
			}
		}
		d, _ := site.Peek(ctx, fmt.Sprintf("%p", second))
		if passed != 4 || d.Remaining() != 6 {
			t.Errorf("same store %v: passed %d, want 4; site has %d left, want 6: refused requests ate quota", second == store, passed, d.Remaining())
		}
	}
}

// away is a store that cannot answer.
type away struct{}

func (away) Decide(_ context.Context, requests []escapement.Request, answers []escapement.Answer) {
	for i := range requests {
		answers[i] = escapement.Answer{Err: fmt.Errorf("%w: connection refused", escapement.ErrStoreUnavailable)}
	}
}

func TestFailureFollowsTheLimitsPolicy(t *testing.T) {
	ctx := context.Background()
	for policy, want := range map[escapement.OnFailure]bool{escapement.Deny: false, escapement.Allow: true, escapement.LocalShare: false} {
		lim, err := escapement.New(away{}, escapement.Limit{Name: "x", Rate: escapement.PerSecond(1), OnFailure: policy})
		if err != nil {
			t.Fatal(err)
		}
		d, err := lim.Take(ctx, "k", 1)
		if !errors.Is(err, escapement.ErrStoreUnavailable) || d.Allowed != want || d.Basis() != escapement.Fallback {
			t.Errorf("%v: allowed %v, basis %v, err %v", policy, d.Allowed, d.Basis(), err)
		}
		ok, parts, err := escapement.TakeAll(ctx, escapement.Use{Limiter: lim, Key: "k", Cost: 1})
		if !errors.Is(err, escapement.ErrStoreUnavailable) || ok != want || parts[0].Basis() != escapement.Fallback {
			t.Errorf("%v: TakeAll %v %v", policy, ok, err)
		}
	}
}

func TestShadowRefusesNobody(t *testing.T) {
	ctx := context.Background()
	store := memstore.New(memstore.WithClock(&line{}))
	defer store.Close()
	trial, _ := escapement.New(store, escapement.Limit{Name: "trial", Algorithm: escapement.FixedWindow, Rate: escapement.PerMinute(1), Shadow: true})
	enforced, _ := escapement.New(store, escapement.Limit{Name: "real", Algorithm: escapement.FixedWindow, Rate: escapement.PerMinute(3)})
	passed := 0
	for range 5 {
		if ok, _, _ := escapement.TakeAll(ctx, escapement.Use{Limiter: trial, Key: "k", Cost: 1}, escapement.Use{Limiter: enforced, Key: "k", Cost: 1}); ok {
			passed++
		}
	}
	if passed != 3 {
		t.Errorf("passed %d, want 3", passed)
	}
	for range 3 {
		if d, err := trial.Take(ctx, "alone", 1); err != nil || !d.Allowed {
			t.Errorf("a shadow limit refused: %v", err)
		}
	}
}

// bubble is a line on the clock of a synctest bubble.
type bubble struct{ start time.Time }

func (b bubble) Now() algo.Store {
	ctx, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	now, _ := ctx.Deadline()
	return algo.Store(now.Sub(b.start).Microseconds())
}

func TestWait(t *testing.T) {
	for _, a := range []escapement.Algorithm{escapement.TokenBucket, escapement.FixedWindow, escapement.RollingWindow, escapement.SlidingWindow} {
		t.Run(a.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testWait(t, a) })
		})
	}
}

func testWait(t *testing.T, a escapement.Algorithm) {
	bg := context.Background()
	clk := bubble{}
	ctx, cancel := context.WithTimeout(bg, 0)
	clk.start, _ = ctx.Deadline()
	cancel()
	store := memstore.New(memstore.WithClock(clk))
	defer store.Close()
	lim, err := escapement.New(store, escapement.Limit{Name: "w", Algorithm: a, Rate: escapement.PerSecond(2)})
	if err != nil {
		t.Fatal(err)
	}
	done, cancel := context.WithCancel(bg)
	cancel()
	if err := lim.Wait(done, "k", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that is done: %v", err)
	}
	for range 2 {
		if err := lim.Wait(bg, "k", 1); err != nil {
			t.Fatal(err)
		}
	}
	short, cancel := context.WithTimeout(bg, 100*time.Millisecond)
	defer cancel()
	before := clk.Now()
	err = lim.Wait(short, "k", 1)
	if !errors.Is(err, escapement.ErrLimited) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a wait that would outlast its deadline: %v", err)
	}
	if clk.Now() != before {
		t.Error("it waited for nothing")
	}
	var le *escapement.LimitedError
	if err := lim.Wait(bg, "k", 3); !errors.As(err, &le) || errors.Is(err, context.DeadlineExceeded) || le.Decision.RetryAfter() != escapement.Never {
		t.Errorf("a cost above capacity: %v", err)
	}
	d, _ := lim.Peek(bg, "k")
	want := d.RetryAfter()
	if err := lim.Wait(bg, "k", 1); err != nil {
		t.Fatal(err)
	}
	if got := time.Duration(clk.Now()-before) * time.Microsecond; got != want {
		t.Errorf("waited %v, told %v", got, want)
	}
	// Cancelled while waiting: what was taken comes back.
	if _, err := lim.TakeUpTo(bg, "k", 2); err != nil {
		t.Fatal(err)
	}
	d, _ = lim.Peek(bg, "k")
	dying, cancel := context.WithCancel(bg)
	failed := make(chan error)
	go func() { failed <- lim.Wait(dying, "k", 1) }()
	synctest.Wait()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while waiting: %v", err)
	}
	again, _ := lim.Peek(bg, "k")
	if again.RetryAfter() != d.RetryAfter() {
		t.Errorf("the cancelled wait kept units: retry %v, before %v", again.RetryAfter(), d.RetryAfter())
	}
}

func TestCompileReportsEveryProblem(t *testing.T) {
	_, err := escapement.Limit{
		Name: "Bad Name", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 0, Per: 1500 * time.Nanosecond},
		Burst: 5, MaxDelay: time.Second, Headroom: 100, Zone: time.UTC, OnFailure: 9, Buckets: 3,
	}.Compile()
	fields := map[string]bool{}
	var walk func(error)
	walk = func(err error) {
		if le := (*algo.LimitError)(nil); errors.As(err, &le) {
			if j, ok := err.(interface{ Unwrap() []error }); ok {
				for _, e := range j.Unwrap() {
					walk(e)
				}
				return
			}
			fields[le.Field] = true
			if le.Problem == "" || le.Hint == "" {
				t.Errorf("%s: no problem or no hint", le.Field)
			}
		}
	}
	walk(err)
	for _, f := range []string{"name", "count", "per", "burst", "max_delay", "headroom", "zone", "on_failure", "buckets"} {
		if !fields[f] {
			t.Errorf("nothing said about %s in:\n%v", f, err)
		}
	}
}
