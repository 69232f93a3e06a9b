package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// malformed requests must be refused whole, without a trace and without a panic.
func malformed(h *harness) {
	p := h.plan(escapement.Limit{Name: "m", Rate: escapement.PerHour(1000)})
	good := escapement.Claim{Plan: p, Key: "k", Cost: 1}
	with := func(change func(c *escapement.Claim)) escapement.Claim {
		c := good
		change(&c)
		return c
	}
	mode := func(m escapement.Mode) escapement.Claim {
		return with(func(c *escapement.Claim) { c.Mode = m })
	}
	many := make([]escapement.Claim, escapement.MaxClaims+1)
	for i := range many {
		many[i] = good
	}
	cases := []struct {
		name   string
		claims []escapement.Claim
		want   error
	}{
		{"no claims", nil, escapement.ErrRequest},
		{"too many claims", many, escapement.ErrRequest},
		{"no plan", []escapement.Claim{good, {Key: "k", Cost: 1}}, escapement.ErrRequest},
		{"no plan alone", []escapement.Claim{{Key: "k", Cost: 1}}, escapement.ErrRequest},
		{"zero plan", []escapement.Claim{{Plan: new(escapement.Plan), Key: "k", Cost: 1}}, escapement.ErrRequest},
		{"negative cost", []escapement.Claim{good, with(func(c *escapement.Claim) { c.Cost = -1 })}, escapement.ErrCost},
		{"huge cost", []escapement.Claim{with(func(c *escapement.Claim) { c.Cost = algo.MaxInt + 1 })}, escapement.ErrCost},
		{"charge in company", []escapement.Claim{good, mode(escapement.Charge)}, escapement.ErrRequest},
		{"refund in company", []escapement.Claim{mode(escapement.Refund), good}, escapement.ErrRequest},
		{"take up to in company", []escapement.Claim{good, mode(escapement.TakeUpTo)}, escapement.ErrRequest},
		{"unknown mode", []escapement.Claim{mode(99)}, escapement.ErrRequest},
	}
	for _, tc := range cases {
		var a [1]escapement.Answer
		h.store.Decide(context.Background(), []escapement.Request{{Claims: tc.claims}}, a[:])
		if a[0].Outcome != escapement.NotRun || a[0].Admitted || !errors.Is(a[0].Err, tc.want) {
			h.t.Errorf("%s: outcome %d, admitted %v, error %v; want not run, %v", tc.name, a[0].Outcome, a[0].Admitted, a[0].Err, tc.want)
		}
	}
	if got := h.left(p, "k"); got != 1000 {
		h.t.Errorf("%d left, want 1000: a malformed request took something", got)
	}
}

// answers reuses the caller's buffers, and answers each request of a call by itself.
func answers(h *harness) {
	p := h.plan(escapement.Limit{Name: "a", Rate: escapement.PerHour(2)})
	c := escapement.Claim{Plan: p, Key: "k", Cost: 1}
	requests := []escapement.Request{{Claims: []escapement.Claim{c}}, {}, {Claims: []escapement.Claim{c, c}}, {Claims: []escapement.Claim{c}}}
	buffer := make([]escapement.Decision, 3, 8)
	answers := []escapement.Answer{{Parts: buffer, Admitted: true, Err: errors.New("old")}, {Outcome: escapement.Decided, Admitted: true}, {}, {}}
	h.store.Decide(context.Background(), requests, answers)
	var got []string
	for _, a := range answers {
		got = append(got, fmt.Sprint(a.Outcome, a.Admitted, len(a.Parts), a.Err != nil))
	}
	want := []string{
		fmt.Sprint(escapement.Decided, true, 1, false),
		fmt.Sprint(escapement.NotRun, false, 0, true),
		fmt.Sprint(escapement.Decided, false, 2, false),
		fmt.Sprint(escapement.Decided, true, 1, false),
	}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		h.t.Errorf("outcome, admitted, parts, error: got %v, want %v", got, want)
	}
	if &answers[0].Parts[0] != &buffer[0] {
		h.t.Error("a buffer that is long enough was not used")
	}
}

// hostileKeys are distinct however odd they look.
func hostileKeys(h *harness) {
	long := strings.Repeat("x", 10_000)
	keys := []string{"", "\x00", "\x00\x00", " ", "a", "A", "a ", "a:b", "a:b:", "\xff\xfe", "\xc3\x28", "{a}", "a\nb", "é", "e\u0301", "%s%n", "*", long, long + "y", "k"}
	for i := range 2000 {
		keys = append(keys, fmt.Sprint("key", i))
	}
	// The names of limits are no keys, and no name runs into a key.
	one := h.plan(escapement.Limit{Name: "k", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 2, Per: 100 * 24 * time.Hour}})
	two := h.plan(escapement.Limit{Name: "kk", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 2, Per: 100 * 24 * time.Hour}})
	for round := range 3 {
		for _, k := range keys {
			if d := h.take(one, k, 1); d.Allowed != (round < 2) {
				h.t.Fatalf("round %d: key %.40q allowed %v", round, k, d.Allowed)
			}
		}
	}
	for _, k := range keys {
		if got := h.left(two, k); got != 2 {
			h.t.Fatalf("key %.40q of a limit that was never asked: %d left, want 2", k, got)
		}
	}
}

// hammer asks from 64 goroutines and counts what is admitted.
func hammer(h *harness) {
	for _, l := range limits() {
		l.Rate.Per, l.MaxDelay = 24*time.Hour, 0
		if l.Align == escapement.Day {
			l.Rate.Per = 0
		}
		if l.Algorithm == escapement.Pacing {
			l.Rate.Count = 1
		}
		p := h.plan(l)
		var admitted, lowest atomic.Int64
		const clients = 64
		each := int(p.Core().Capacity())/clients + 5
		h.crowd(clients, func(int) {
			for range each {
				if a := h.group(escapement.Claim{Plan: p, Key: "hot", Cost: 1}); a.Admitted {
					admitted.Add(1)
				} else if a.Parts[0].Remaining() > 0 {
					lowest.Add(1)
				}
			}
		})
		if got, want := admitted.Load(), p.Core().Capacity(); got != want {
			h.t.Errorf("%s: %d of %d admitted", l.Name, got, want)
		}
		if lowest.Load() > 0 {
			h.t.Errorf("%s: %d refusals with something left", l.Name, lowest.Load())
		}
	}
}

// hammerGroups has requests that overlap in their keys, in every order: none may be charged
// in part, and none may wait for another forever.
func hammerGroups(h *harness) {
	p := h.plan(escapement.Limit{Name: "pair", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 150, Per: 100 * 24 * time.Hour}})
	keys := []string{"a", "b", "c", "d", "e"}
	var taken [5]atomic.Int64
	h.crowd(16, func(n int) {
		for i := range 60 {
			x, y := (n+i)%5, (n*3+i*2+1)%5
			if x == y {
				continue
			}
			if a := h.group(escapement.Claim{Plan: p, Key: keys[x], Cost: 1}, escapement.Claim{Plan: p, Key: keys[y], Cost: 2}); a.Admitted {
				taken[x].Add(1)
				taken[y].Add(2)
			}
		}
	})
	for i, k := range keys {
		if got, want := h.left(p, k), 150-taken[i].Load(); got != want {
			h.t.Errorf("key %s: %d left, want %d: a group was charged in part", k, got, want)
		}
	}
}

// crowd runs f from n goroutines and waits for all of them.
func (h *harness) crowd(n int, f func(n int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}
