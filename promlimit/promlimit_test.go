package promlimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/memstore"
)

// newLimiter is a limiter on a store of its own that a test closes at its end.
func newLimiter(t testing.TB, o *Observer, l escapement.Limit, opts ...memstore.Option) *escapement.Limiter {
	t.Helper()
	s := memstore.New(opts...)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	limiter, err := escapement.New(s, l, escapement.WithObserver(o))
	if err != nil {
		t.Fatal(err)
	}
	return limiter
}

func gather(t *testing.T, o *Observer) []*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(o)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// compare wants the counters without their names' common beginning and the zeros.
func compare(t *testing.T, o *Observer, want ...string) {
	t.Helper()
	var got []string
	for _, f := range gather(t, o) {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetValue())
			}
			if v := m.Counter.GetValue(); v != 0 {
				got = append(got, fmt.Sprintf("%s %s %v", strings.TrimPrefix(f.GetName(), "escapement_limit_"), strings.Join(labels, " "), v))
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

func TestEachVerdictAndBasis(t *testing.T) {
	ctx := context.Background()
	o := New()
	for _, l := range []escapement.Limit{
		{Name: "denies"},
		{Name: "allows", OnFailure: escapement.Allow},
		{Name: "watches", Shadow: true},
	} {
		l.Rate, l.Burst = escapement.PerHour(1), 5
		limiter := newLimiter(t, o, l, memstore.WithMaxKeys(1))
		for range 2 {
			if _, err := limiter.Take(ctx, "known", 3); err != nil {
				t.Fatal(err)
			}
		}
		d, err := limiter.Take(ctx, "one too many", 4)
		if !errors.Is(err, escapement.ErrFull) || d.Basis() != escapement.Fallback {
			t.Fatalf("the cap is not met: %v", err)
		}
		// None of these is a decision.
		if _, err := limiter.Peek(ctx, "known"); err != nil {
			t.Fatal(err)
		}
		if _, err := limiter.Charge(ctx, "known", 1, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := limiter.Take(ctx, "known", -1); !errors.Is(err, escapement.ErrCost) {
			t.Fatal(err)
		}
	}
	compare(t, o,
		"admitted_units_total allows 7", "admitted_units_total denies 3", "admitted_units_total watches 7",
		"decisions_total exact allows admitted 1", "decisions_total exact allows refused 1", "decisions_total fallback allows admitted 1",
		"decisions_total exact denies admitted 1", "decisions_total exact denies refused 1", "decisions_total fallback denies refused 1",
		"decisions_total exact watches admitted 1", "decisions_total exact watches shadow_refused 1", "decisions_total fallback watches admitted 1",
	)
}

func TestUpToCountsWhatWasTaken(t *testing.T) {
	o := New()
	limiter := newLimiter(t, o, escapement.Limit{Name: "l", Rate: escapement.PerHour(3)})
	if _, err := limiter.TakeUpTo(context.Background(), "k", 10); err != nil {
		t.Fatal(err)
	}
	compare(t, o, "admitted_units_total l 3", "decisions_total exact l admitted 1")
}

func TestTogether(t *testing.T) {
	o := New()
	wide := newLimiter(t, o, escapement.Limit{Name: "wide", Rate: escapement.PerHour(10)})
	shadow := newLimiter(t, o, escapement.Limit{Name: "shadow", Rate: escapement.PerHour(1), Shadow: true})
	for range 2 {
		if _, _, err := escapement.TakeAll(context.Background(), escapement.Use{Limiter: wide, Key: "k", Cost: 1}, escapement.Use{Limiter: shadow, Key: "k", Cost: 1}); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, o, "admitted_units_total shadow 1", "admitted_units_total wide 2",
		"decisions_total exact shadow admitted 1", "decisions_total exact shadow shadow_refused 1", "decisions_total exact wide admitted 2")
}

func TestNamesAreBounded(t *testing.T) {
	o := New()
	const more = 25
	for i := range MaxLimits + more {
		plan, err := escapement.Limit{Name: fmt.Sprintf("l%d", i), Rate: escapement.PerSecond(1)}.Compile()
		if err != nil {
			t.Fatal(err)
		}
		d := escapement.Undecided(plan, true)
		o.Decided(&escapement.Claim{Plan: plan, Cost: 1}, &d, nil)
	}
	if n := len(gather(t, o)[0].Metric); n != MaxLimits+1 {
		t.Errorf("%d limits are told apart, want %d and the others", n, MaxLimits)
	}
	if n := o.others.units.Load(); n != more {
		t.Errorf("%d units of others, want %d", n, more)
	}
	if _, err := (escapement.Limit{Name: Others, Rate: escapement.PerSecond(1)}).Compile(); err == nil {
		t.Error("a limit can have the name of all others")
	}
}

func TestNamesFollowConventions(t *testing.T) {
	o := New()
	d := escapement.Decision{}
	o.Decided(&escapement.Claim{Plan: newLimiter(t, o, escapement.Limit{Name: "l", Rate: escapement.PerSecond(1)}).Plan()}, &d, nil)
	problems, err := promlint.NewWithMetricFamilies(gather(t, o)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%+v", p)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	ctx := context.Background()
	o := New()
	for _, l := range []escapement.Limit{
		{Name: "wide", Rate: escapement.PerSecond(1_000_000_000)},
		{Name: "shut", Rate: escapement.PerHour(1)},
		{Name: "shadow", Rate: escapement.PerHour(1), Shadow: true},
	} {
		limiter := newLimiter(t, o, l)
		if _, err := limiter.Take(ctx, "k", 1); err != nil {
			t.Fatal(err)
		}
		n := testing.AllocsPerRun(1000, func() {
			if _, err := limiter.Take(ctx, "k", 1); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("limit %s: %v allocations for a decision", l.Name, n)
		}
	}
}

func TestNothingIsLostAmongGoroutines(t *testing.T) {
	o := New()
	limiters := make([]*escapement.Limiter, 20)
	for i := range limiters {
		limiters[i] = newLimiter(t, o, escapement.Limit{Name: fmt.Sprintf("l%02d", i), Rate: escapement.PerSecond(1_000_000)})
	}
	const each, routines = 200, 4
	var running sync.WaitGroup
	for range routines {
		running.Go(func() {
			for range each {
				for _, l := range limiters {
					if _, err := l.Take(context.Background(), "k", 1); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	running.Wait()
	for i := range limiters {
		if n := o.of(fmt.Sprintf("l%02d", i)).units.Load(); n != each*routines {
			t.Errorf("limiter %d: %d units, want %d", i, n, each*routines)
		}
	}
}

// BenchmarkDecision is a decision in memory with and without an observer.
func BenchmarkDecision(b *testing.B) {
	ctx := context.Background()
	for name, opts := range map[string][]escapement.Option{"with": {escapement.WithObserver(New())}, "without": nil} {
		b.Run(name, func(b *testing.B) {
			s := memstore.New()
			defer s.Close()
			limiter, err := escapement.New(s, escapement.Limit{Name: "l", Rate: escapement.PerSecond(1_000_000_000)}, opts...)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := limiter.Take(ctx, "k", 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
