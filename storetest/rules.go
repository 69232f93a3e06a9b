package storetest

import (
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

func allOrNothing(h *harness) {
	wide := h.plan(escapement.Limit{Name: "wide", Rate: escapement.PerHour(100)})
	narrow := h.plan(escapement.Limit{Name: "narrow", Rate: escapement.PerHour(1)})
	both := []escapement.Claim{{Plan: wide, Key: "k", Cost: 2}, {Plan: narrow, Key: "k", Cost: 1}}
	if a := h.group(both...); !a.Admitted {
		h.t.Fatal("a group that fits was refused")
	}
	a := h.group(both...)
	if a.Admitted || !a.Parts[0].Allowed || a.Parts[1].Allowed {
		h.t.Fatalf("admitted %v, parts %v and %v; want the second limit to refuse", a.Admitted, a.Parts[0].Allowed, a.Parts[1].Allowed)
	}
	if got := a.Parts[0].Units(); got != 0 {
		h.t.Errorf("a claim of a refused group holds %d units: refunding it would mint them", got)
	}
	if got := h.left(wide, "k"); got != 98 {
		h.t.Errorf("%d left after a group of 2 was admitted once and refused once, want 98", got)
	}
}

func sumOfOneKey(h *harness) {
	for _, l := range limits() {
		if l.Algorithm == escapement.Pacing {
			continue
		}
		p := h.plan(l)
		half := p.Core().Capacity()/2 + 1
		c := escapement.Claim{Plan: p, Key: "k", Cost: half}
		a := h.group(c, c)
		if a.Admitted || a.Parts[0].Allowed || a.Parts[1].Allowed {
			h.t.Errorf("%s: twice %d of %d was admitted", l.Name, half, p.Core().Capacity())
		}
		if got := a.Parts[1].RetryAfter(); got != escapement.Never {
			h.t.Errorf("%s: a sum above the capacity is told to retry after %v", l.Name, got)
		}
		c.Cost = p.Core().Capacity() / 2
		if a := h.group(c, c); !a.Admitted {
			h.t.Errorf("%s: twice %d of %d was refused", l.Name, c.Cost, p.Core().Capacity())
		}
		if got, want := h.left(p, "k"), p.Core().Capacity()-2*c.Cost; got > want+1 {
			h.t.Errorf("%s: %d left, want %d", l.Name, got, want)
		}
	}
}

func pacingSharesTurn(h *harness) {
	p := h.plan(escapement.Limit{Name: "paced", Algorithm: escapement.Pacing, Rate: escapement.PerSecond(1)})
	c := escapement.Claim{Plan: p, Key: "k", Cost: 1}
	if a := h.group(c, c); !a.Admitted || !a.Parts[0].Allowed || !a.Parts[1].Allowed {
		h.t.Fatal("two claims on an idle key were not admitted as one of 2")
	}
	d := h.take(p, "k", 1)
	if wait := d.RetryAfter(); d.Allowed || wait <= time.Second || wait > 2*time.Second {
		h.t.Errorf("after 2 units at 1 per second: allowed %v, retry after %v", d.Allowed, wait)
	}
}

func shadow(h *harness) {
	real := h.plan(escapement.Limit{Name: "real", Rate: escapement.PerHour(10)})
	dark := h.plan(escapement.Limit{Name: "dark", Rate: escapement.PerHour(3), Shadow: true})
	claims := []escapement.Claim{{Plan: real, Key: "k", Cost: 2}, {Plan: dark, Key: "k", Cost: 2}}
	for i, want := range []bool{true, false} {
		a := h.group(claims...)
		if !a.Admitted || !a.Parts[0].Allowed || a.Parts[1].Allowed != want {
			h.t.Fatalf("request %d: admitted %v, parts %v and %v; a shadow must not refuse", i, a.Admitted, a.Parts[0].Allowed, a.Parts[1].Allowed)
		}
	}
	if got := h.left(dark, "k"); got != 1 {
		h.t.Errorf("%d left of the shadow, want 1: what does not fit is not charged", got)
	}
	claims[0].Cost = 100
	if a := h.group(claims...); a.Admitted {
		h.t.Error("a request was admitted that a limit refuses")
	}
	if got := h.left(dark, "k"); got != 1 {
		h.t.Errorf("%d left of the shadow, want 1: a refused request charges nobody", got)
	}
	if d := h.take(dark, "k", 2); d.Allowed {
		h.t.Error("a shadow alone must say what it would have answered")
	}
}

func variants(h *harness) {
	for _, a := range []escapement.Algorithm{escapement.FixedWindow, escapement.SlidingWindow} {
		p := h.plan(escapement.Limit{Name: "plan-" + a.String()[:5], Algorithm: a, Rate: escapement.Rate{Count: 10, Per: 24 * time.Hour}})
		v, err := p.WithCount(20)
		if err != nil {
			h.t.Fatal(err)
		}
		if d := h.take(p, "k", 10); !d.Allowed {
			h.t.Fatalf("%v: 10 of 10 refused", a)
		}
		if d := h.take(p, "k", 1); d.Allowed {
			h.t.Errorf("%v: 11 of 10 allowed", a)
		}
		if d := h.take(v, "k", 10); !d.Allowed || d.Limit() != 20 {
			h.t.Errorf("%v: a variant of 20 does not judge the same counter by its own count: allowed %v of %d", a, d.Allowed, d.Limit())
		}
		if d := h.take(v, "k", 1); d.Allowed {
			h.t.Errorf("%v: 21 of 20 allowed", a)
		}
	}
}

// adoption replaces plans in use. What was used stays used, and the newest plan decides.
func adoption(h *harness) {
	for _, l := range limits() {
		old := h.plan(l)
		size := old.Core().Capacity()
		if l.Algorithm == escapement.Pacing {
			size = 1
		}
		h.take(old, "spent", size)
		if l.Algorithm == escapement.Pacing {
			l.MaxDelay = 0
		} else {
			l.Rate.Count *= 2
			l.Burst *= 2
		}
		if l.Algorithm == escapement.RollingWindow && l.Rate.Count <= algo.LogMax {
			l.Rate.Count = algo.LogMax
		}
		next := h.plan(l)
		whole := next.Core().Capacity()
		if d := h.take(next, "spent", whole); d.Allowed || d.Plan() != next {
			h.t.Errorf("%s: a changed limit forgot what was used", l.Name)
		}
		if d := h.take(next, "new", whole); !d.Allowed {
			h.t.Errorf("%s: a changed limit refuses a new key", l.Name)
		}
		if d := h.take(old, "spent", 0); d.Plan() != next {
			h.t.Errorf("%s: a claim with the old plan was not decided under the new one", l.Name)
		}
		if l.Algorithm == escapement.Pacing {
			continue // an idle queue takes any cost
		}
		if d := h.take(old, "other", size+1); d.Allowed != (size+1 <= whole) {
			h.t.Errorf("%s: a claim of %d with the old plan of %d under the new of %d: allowed %v", l.Name, size+1, size, whole, d.Allowed)
		}
	}
}

// retryAfter waits for exactly what refusals name.
func retryAfter(h *harness) {
	for _, l := range limits() {
		p := h.plan(l)
		for i := 0; ; i++ {
			if i > 10_000 {
				h.t.Fatalf("%s: never refuses", l.Name)
			}
			d := h.take(p, "k", 1)
			if d.Allowed {
				continue
			}
			h.clock.Advance(d.RetryAfter())
			if d = h.take(p, "k", 1); !d.Allowed {
				h.t.Errorf("%s: refused after the wait it named", l.Name)
			}
			break
		}
	}
}
