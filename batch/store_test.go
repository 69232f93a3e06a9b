package batch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/memstore"
)

func compile(t testing.TB, l escapement.Limit) *escapement.Plan {
	t.Helper()
	l.Sync, l.SyncMode = 200*time.Millisecond, escapement.SyncDelayed
	p, err := l.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// limits are one of each kind of window that can be reported later, ten units each.
func limits() []escapement.Limit {
	rate := escapement.Rate{Count: 10, Per: 10 * time.Second}
	return []escapement.Limit{
		{Name: "fixed", Algorithm: escapement.FixedWindow, Rate: rate},
		{Name: "first-use", Algorithm: escapement.FixedWindow, Rate: rate, Align: escapement.FirstUse},
		{Name: "daily", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 10}, Align: escapement.Day},
		{Name: "sliding", Algorithm: escapement.SlidingWindow, Rate: rate},
	}
}

// open makes a store and closes it at the test's end.
func open(t testing.TB, o *office, opts Options) *Store {
	t.Helper()
	m := memstore.New()
	s := NewStore(o, m, opts)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		m.Close()
	})
	return s
}

func take(t testing.TB, s *Store, p *escapement.Plan, cost int64) escapement.Decision {
	t.Helper()
	d, err := s.TakeOne(context.Background(), p, "k", cost)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestStoreCounts(t *testing.T) {
	for _, l := range limits() {
		t.Run(l.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(1)
				p := compile(t, l)
				a, b := open(t, o, Options{}), open(t, o, Options{})
				time.Sleep(1234 * time.Millisecond)
				for i := range int64(4) {
					d := take(t, a, p, 1)
					if !d.Allowed || d.Basis() != escapement.Delayed || d.Remaining() != 9-i {
						t.Fatalf("take %d: allowed %v, basis %v, %d remain", i, d.Allowed, d.Basis(), d.Remaining())
					}
					r := d.Receipt()
					if r.Units != 1 || r.At > d.At() || d.At() > o.now() || d.At() < o.now()-2000 {
						t.Errorf("take %d: receipt %+v, at %d, the store is at %d", i, r, d.At(), o.now())
					}
				}
				time.Sleep(300 * time.Millisecond)
				if d := take(t, b, p, 1); d.Remaining() != 5 {
					t.Errorf("elsewhere %d remain, want 5", d.Remaining())
				}
				if d := take(t, b, p, 6); d.Allowed {
					t.Error("six of five were admitted")
				}
				if d := take(t, b, p, 5); !d.Allowed {
					t.Error("five of five were refused")
				}
				d := take(t, b, p, 1)
				if d.Allowed || d.Remaining() != 0 || d.RetryAfter() <= 0 || d.RetryAfter() > 24*time.Hour {
					t.Errorf("none of none: allowed %v, %d remain, retry after %v", d.Allowed, d.Remaining(), d.RetryAfter())
				}
				if d := take(t, b, p, 11); d.RetryAfter() != escapement.Never {
					t.Errorf("more than the limit: retry after %v", d.RetryAfter())
				}
				time.Sleep(300 * time.Millisecond)
				if got := o.total(l.Name + "/k"); got != 10 {
					t.Errorf("%d are counted, want 10", got)
				}
			})
		})
	}
}

// A window that only the store can place is asked for when it ends, and others are rolled
// into; either way there is room again.
func TestStoreNextWindow(t *testing.T) {
	for _, l := range limits() {
		if l.Name == "sliding" {
			continue // the window before weighs
		}
		t.Run(l.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(1)
				p := compile(t, l)
				s := open(t, o, Options{})
				for range 2 {
					if d := take(t, s, p, 10); !d.Allowed {
						t.Fatal("the whole limit was refused")
					}
					d := take(t, s, p, 1)
					if d.Allowed {
						t.Fatal("one more was admitted")
					}
					time.Sleep(d.RetryAfter() + time.Millisecond)
				}
			})
		})
	}
}

// What was admitted is kept through an outage, and reported at the end.
func TestStoreOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(1)
		m := memstore.New()
		defer m.Close()
		s := NewStore(o, m, Options{})
		p := compile(t, escapement.Limit{Name: "fixed", Algorithm: escapement.FixedWindow, Rate: escapement.PerMinute(100)})
		take(t, s, p, 1)
		o.set(true)
		for range 40 {
			time.Sleep(20 * time.Millisecond)
			if d := take(t, s, p, 1); !d.Allowed {
				t.Fatal("what was told is not spent, and a request is refused")
			}
		}
		if _, err := s.TakeOne(t.Context(), p, "new", 1); !errors.Is(err, escapement.ErrStoreUnavailable) {
			t.Errorf("a new key while the store is away: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() {
			time.Sleep(700 * time.Millisecond)
			o.set(false)
		}()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
		if got := o.total("fixed/k"); got != 41 {
			t.Errorf("%d are counted, 41 were admitted", got)
		}
	})
}

// A decision from what was told allocates nothing, in any kind of window.
func TestStoreAllocates(t *testing.T) {
	for _, l := range limits() {
		l.Rate.Count = 1 << 20
		if l.Rate.Per > 0 {
			l.Rate.Per = time.Hour
		}
		s := open(t, newOffice(1), Options{MaxWait: time.Second})
		p := compile(t, l)
		take(t, s, p, 1)
		if n := testing.AllocsPerRun(10_000, func() { take(t, s, p, 1) }); n >= 1 {
			t.Errorf("%s: %v allocations", l.Name, n)
		}
	}
}
