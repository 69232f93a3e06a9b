package storetest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// model is what a store has to remember: a state per key.
type model struct {
	plan   *escapement.Plan
	states map[string]*algo.State
}

func newModel(p *escapement.Plan) *model {
	return &model{p, make(map[string]*algo.State)}
}

func (m *model) state(key string) *algo.State {
	s := m.states[key]
	if s == nil {
		s = &algo.State{Ring: make([]uint32, m.plan.Core().Slots())}
		m.states[key] = s
	}
	return s
}

// ask is what the store must answer to a claim at an instant.
func (m *model) ask(c *escapement.Claim, now algo.Store) escapement.Decision {
	core, s := m.plan.Core(), m.state(c.Key)
	var v algo.Verdict
	switch c.Mode {
	case escapement.Take:
		if c.Patience == 0 {
			v = core.Take(s, now, c.Cost)
		} else {
			v = core.Reserve(s, now, c.Cost, algo.Span(c.Patience/time.Microsecond))
		}
	case escapement.TakeUpTo:
		v = core.TakeUpTo(s, now, c.Cost)
	case escapement.Charge:
		v = core.Charge(s, now, c.Cost, c.Receipt.At)
	case escapement.Refund:
		v = core.Refund(s, now, c.Receipt)
	case escapement.Peek:
		v = core.Peek(s, now, c.Cost)
	}
	return escapement.Decide(m.plan, v, escapement.Exact)
}

const historyLength = 3000

// history puts random claims to a store and wants the model's answers.
func history(h *harness, l escapement.Limit) {
	r := h.rand()
	m := newModel(h.plan(l))
	var receipts []escapement.Decision
	var past []algo.Store
	keys := []string{"a", "b", "", "\x00", "a long key, longer than a word or two"}
	period := max(l.Rate.Per, time.Second)
	if l.Align == escapement.Day {
		period = 24 * time.Hour
	}
	for i := range historyLength {
		c := randomClaim(r, m.plan, keys, receipts, past)
		d := h.one(c, i%2 == 0)
		want := m.ask(&c, d.At())
		if got, want := fieldsOf(d), fieldsOf(want); got != want {
			h.t.Fatalf("step %d: %s\n got %+v\nwant %+v", i, describe(&c), got, want)
		}
		if d.Plan() != m.plan || d.Basis() != escapement.Exact {
			h.t.Fatalf("step %d: %s: decided under %p, basis %v; want %p, exact", i, describe(&c), d.Plan(), d.Basis(), m.plan)
		}
		if d.Allowed && c.Mode != escapement.Peek {
			receipts = append(receipts, d)
		}
		past = append(past, d.At())
		if r.IntN(3) == 0 {
			h.clock.Advance(randomWait(r, period, &d))
		}
	}
}

func randomClaim(r *rand.Rand, p *escapement.Plan, keys []string, taken []escapement.Decision, past []algo.Store) escapement.Claim {
	limit := p.Core().Capacity()
	costs := []int64{0, 1, 1, 1, 2, 3, limit / 2, limit, limit + 1, algo.MaxInt}
	c := escapement.Claim{Plan: p, Key: keys[r.IntN(len(keys))], Cost: costs[r.IntN(len(costs))]}
	switch r.IntN(10) {
	case 0:
		c.Mode = escapement.Peek
	case 1:
		c.Mode, c.Cost = escapement.TakeUpTo, r.Int64N(2*limit)
	case 2:
		c.Mode, c.Cost = escapement.Charge, r.Int64N(limit+2)
		if len(past) > 0 && r.IntN(2) == 0 {
			c.Receipt.At = past[len(past)-1-r.IntN(min(len(past), 50))]
		}
	case 3:
		c.Mode, c.Cost = escapement.Refund, 0
		if len(taken) > 0 {
			c.Receipt = taken[len(taken)-1-r.IntN(min(len(taken), 20))].Receipt()
		}
	case 4:
		c.Patience = time.Duration(1+r.IntN(2_000_000)) * time.Microsecond
	}
	return c
}

// randomWait is nothing much, exactly the wait a refusal names, or up to three periods.
func randomWait(r *rand.Rand, period time.Duration, d *escapement.Decision) time.Duration {
	switch retry := d.RetryAfter(); {
	case retry > 0 && retry < 10*period && r.IntN(2) == 0:
		return retry
	case r.IntN(20) == 0:
		return time.Duration(r.Int64N(int64(3*period))) / 1000 * 1000
	}
	return time.Duration(r.Int64N(int64(period/10))) / 1000 * 1000
}

func describe(c *escapement.Claim) string {
	mode := [...]string{"take", "take up to", "charge", "refund", "peek"}[c.Mode]
	return fmt.Sprintf("%s %d of %s under %q, patience %v, receipt %+v", mode, c.Cost, c.Plan.Limit().Name, c.Key, c.Patience, c.Receipt)
}

// groups puts random groups of claims on several limits and keys to a store.
func groups(h *harness) {
	r := h.rand()
	var models []*model
	for i, l := range limits() {
		if l.Algorithm == escapement.Pacing {
			continue // claims on one key share a turn: see pacingSharesTurn
		}
		l.Shadow = i%4 == 3
		models = append(models, newModel(h.plan(l)))
	}
	for i := range historyLength {
		of := make([]*model, 1+r.IntN(escapement.MaxClaims))
		claims := make([]escapement.Claim, len(of))
		for j := range of {
			of[j] = models[r.IntN(len(models))]
			claims[j] = escapement.Claim{Plan: of[j].plan, Key: string(rune('a' + r.IntN(3))), Cost: int64(r.IntN(4))}
			if r.IntN(6) == 0 {
				claims[j].Mode = escapement.Peek
			}
		}
		checkGroup(h, i, of, claims)
		if r.IntN(2) == 0 {
			h.clock.Advance(time.Duration(r.IntN(400_000)) * time.Microsecond)
		}
	}
}

// checkGroup judges every claim on the sum of what is asked of its key, then charges all.
func checkGroup(h *harness, step int, of []*model, claims []escapement.Claim) {
	h.t.Helper()
	a := h.group(claims...)
	want := true
	fits := make([]bool, len(of))
	for i, m := range of {
		total := int64(0)
		for j := range of {
			if of[j] == m && claims[j].Key == claims[i].Key {
				total += claims[j].Cost
			}
		}
		v := m.plan.Core().Peek(m.state(claims[i].Key), a.Parts[i].At(), total)
		fits[i] = v.Admitted
		want = want && (v.Admitted || m.plan.Limit().Shadow)
	}
	if a.Admitted != want {
		h.t.Fatalf("step %d: %d claims admitted: %v, want %v", step, len(claims), a.Admitted, want)
	}
	for i, m := range of {
		d := a.Parts[i]
		if d.Allowed != fits[i] {
			h.t.Fatalf("step %d, part %d: %s: allowed %v, want %v", step, i, describe(&claims[i]), d.Allowed, fits[i])
		}
		if want && fits[i] {
			w := m.ask(&claims[i], d.At())
			if got, want := fieldsOf(d), fieldsOf(w); got != want {
				h.t.Fatalf("step %d, part %d: %s\n got %+v\nwant %+v", step, i, describe(&claims[i]), got, want)
			}
			continue
		}
		now := m.plan.Core().Peek(m.state(claims[i].Key), d.At(), 0)
		if d.Remaining() != now.Remaining() {
			h.t.Fatalf("step %d, part %d: %s: nothing was taken and %d remain, want %d", step, i, describe(&claims[i]), d.Remaining(), now.Remaining())
		}
	}
}
