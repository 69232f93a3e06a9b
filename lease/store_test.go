package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/memstore"
)

func compile(t testing.TB, l escapement.Limit) *escapement.Plan {
	t.Helper()
	p, err := l.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func fixedLimit(count int64, per, sync time.Duration) escapement.Limit {
	return escapement.Limit{Name: "fixed", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: count, Per: per}, Sync: sync}
}

func rollingLimit(count int64, per, sync time.Duration) escapement.Limit {
	return escapement.Limit{Name: "rolling", Algorithm: escapement.RollingWindow, Rate: escapement.Rate{Count: count, Per: per}, Sync: sync}
}

// open makes a store, of a generous lender unless there is another, and closes it when the
// test ends.
func open(t testing.TB, b *bank, o Options) *Store {
	t.Helper()
	m := memstore.New()
	var lender escapement.Lender = b
	if b == nil {
		lender = generous{newBank(1)}
	}
	s := NewStore(lender, m, o)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		m.Close()
	})
	return s
}

func TestStoreTakes(t *testing.T) {
	for _, l := range []escapement.Limit{fixedLimit(10, time.Second, 200*time.Millisecond), rollingLimit(10, time.Second, 200*time.Millisecond)} {
		t.Run(l.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBank(1)
				s := open(t, b, Options{})
				p := compile(t, l)
				time.Sleep(100 * time.Millisecond)
				for i := range int64(10) {
					d, err := s.TakeOne(t.Context(), p, "k", 1)
					if err != nil || !d.Allowed || d.Basis() != escapement.Leased {
						t.Fatalf("take %d: %v, allowed %v, basis %v", i, err, d.Allowed, d.Basis())
					}
					if d.Remaining() != 9-i {
						t.Errorf("take %d: %d remain", i, d.Remaining())
					}
					r := d.Receipt()
					if r.Units != 1 || d.At() < b.now()-2000 || d.At() > b.now()+2000 {
						t.Errorf("take %d: receipt %+v at %d, the store is at %d", i, r, d.At(), b.now())
					}
					if l.Algorithm == escapement.FixedWindow && int64(r.At)%1_000_000 != 0 {
						t.Errorf("take %d: the receipt names %d, not the start of a window", i, r.At)
					}
				}
				d, err := s.TakeOne(t.Context(), p, "k", 1)
				if err != nil || d.Allowed || d.Remaining() != 0 {
					t.Fatalf("the eleventh: %v, allowed %v, %d remain", err, d.Allowed, d.Remaining())
				}
				// It is told when asking again may be worth it.
				for waited := time.Duration(0); !d.Allowed; {
					w := d.RetryAfter()
					if waited += w; err != nil || w <= 0 || waited > 2*time.Second {
						t.Fatalf("waited %v, and is told to wait %v: %v", waited, w, err)
					}
					time.Sleep(w)
					d, err = s.TakeOne(t.Context(), p, "k", 1)
				}
				if d, _ := s.TakeOne(t.Context(), p, "k", 11); d.RetryAfter() != escapement.Never {
					t.Errorf("more than the limit: retry after %v", d.RetryAfter())
				}
			})
		})
	}
}

func TestStoreAwayIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank(1)
		s := open(t, b, Options{})
		p := compile(t, fixedLimit(10, time.Second, 200*time.Millisecond))
		b.set(true)
		began := clock.Mono()
		var err error
		for range 3 {
			_, err = s.TakeOne(t.Context(), p, "k", 1)
		}
		if !errors.Is(err, escapement.ErrStoreUnavailable) {
			t.Errorf("the store is away: %v", err)
		}
		if waited := clock.Since(began); waited > 60*time.Millisecond {
			t.Errorf("three requests waited %v", waited)
		}
		var a [1]escapement.Answer
		s.Decide(t.Context(), []escapement.Request{{Claims: []escapement.Claim{{Plan: p, Key: "k", Cost: 1}}}}, a[:])
		if a[0].Outcome != escapement.NotRun || !errors.Is(a[0].Err, escapement.ErrStoreUnavailable) {
			t.Errorf("outcome %d, %v", a[0].Outcome, a[0].Err)
		}
		b.set(false)
		time.Sleep(2 * time.Second)
		if d, err := s.TakeOne(t.Context(), p, "k", 1); err != nil || !d.Allowed {
			t.Errorf("the store is back: %v, allowed %v", err, d.Allowed)
		}
	})
}

// What is held at the end goes back: what is charged then is what was used.
func TestStoreGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank(1)
		m := memstore.New()
		defer m.Close()
		s := NewStore(b, m, Options{})
		p := compile(t, fixedLimit(1000, 10*time.Second, 200*time.Millisecond))
		used := int64(0)
		for range 50 {
			d, err := s.TakeOne(t.Context(), p, "k", 1)
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed {
				used++
			}
			time.Sleep(10 * time.Millisecond)
		}
		if b.fixed["fixed/k"].Given <= used {
			t.Fatalf("%d are handed out, nothing is held", b.fixed["fixed/k"].Given)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := b.fixed["fixed/k"].Given; got != used || used < 40 {
			t.Errorf("%d are charged, %d were used", got, used)
		}
		if _, err := s.TakeOne(t.Context(), p, "k", 1); !errors.Is(err, escapement.ErrStoreUnavailable) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// A decision from quota that is held allocates nothing, in either kind of window.
func TestStoreAllocates(t *testing.T) {
	for _, l := range []escapement.Limit{fixedLimit(1<<20, time.Hour, time.Minute), rollingLimit(1<<20, time.Hour, time.Minute)} {
		s := open(t, nil, Options{MaxWait: time.Second})
		p := compile(t, l)
		take := func() {
			if d, err := s.TakeOne(context.Background(), p, "k", 1); err != nil || !d.Allowed {
				t.Fatalf("%v, allowed %v", err, d.Allowed)
			}
		}
		take()
		// A bucket that is used for the first time has to be noted.
		if n := testing.AllocsPerRun(10_000, take); n >= 1 {
			t.Errorf("%s: %v allocations", l.Name, n)
		}
	}
}

// A refused claim is not told of room for what it asked, though the store may have some
// that is not at hand.
func TestStoreRefusalHasNoRoom(t *testing.T) {
	bucket := escapement.Limit{Name: "bucket", Rate: escapement.Rate{Count: 10, Per: 2 * time.Second}, Sync: 200 * time.Millisecond}
	for _, l := range []escapement.Limit{fixedLimit(10, 2*time.Second, 200*time.Millisecond), rollingLimit(10, 2*time.Second, 200*time.Millisecond), bucket} {
		t.Run(l.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, newBank(1), Options{})
				p := compile(t, l)
				refused := 0
				for i := range 600 {
					cost := int64(1 + i%3)
					d, err := s.TakeOne(t.Context(), p, "k", cost)
					if err != nil {
						t.Fatal(err)
					}
					if !d.Allowed {
						refused++
						if d.Remaining() >= cost {
							t.Fatalf("take %d: %d refused, and %d remain", i, cost, d.Remaining())
						}
					}
					time.Sleep(10 * time.Millisecond)
				}
				if refused < 400 {
					t.Errorf("%d of 600 were refused", refused)
				}
			})
		})
	}
}
