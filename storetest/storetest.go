// Package storetest proves that a store keeps the contract of escapement.Store. The author
// of a store calls Run from a test:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) (escapement.Store, storetest.Clock) {
//			clock := …
//			return mystore.New(clock), clock
//		})
//	}
//
// Every decision is compared with what package algo makes of the same history at the
// instants the decisions name, so the store's time may also pass by itself. Histories are
// random; a failure prints the flag that repeats it.
package storetest

import (
	"context"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// Clock moves the time of the store under test.
type Clock interface {
	// Advance lets d pass, a whole number of microseconds.
	Advance(d time.Duration)
}

// Maker makes an empty store and the clock that dates it. It registers what has to be
// closed with t.Cleanup.
type Maker func(t *testing.T) (escapement.Store, Clock)

var seedFlag = flag.Uint64("storetest.seed", 0, "repeat the random histories of this seed")

// Run runs the whole kit. Beside what escapement.Store says it wants of a store that one
// made by newStore holds at least 10,000 keys.
func Run(t *testing.T, newStore Maker) {
	run := func(name string, f func(h *harness)) {
		t.Run(name, func(t *testing.T) {
			s, c := newStore(t)
			f(&harness{t: t, store: s, clock: c})
		})
	}
	for _, l := range limits() {
		run("history/"+l.Name, func(h *harness) { history(h, l) })
	}
	run("groups", groups)
	run("all or nothing", allOrNothing)
	run("sum of one key", sumOfOneKey)
	run("pacing shares a turn", pacingSharesTurn)
	run("shadow", shadow)
	run("variants", variants)
	run("adoption", adoption)
	run("malformed", malformed)
	run("answers", answers)
	run("keys", hostileKeys)
	run("retry after", retryAfter)
	run("hammer", hammer)
	run("hammer groups", hammerGroups)
}

// limits are one or more of every algorithm.
func limits() []escapement.Limit {
	sec := escapement.PerSecond
	return []escapement.Limit{
		{Name: "bucket", Algorithm: escapement.TokenBucket, Rate: sec(10), Burst: 20},
		{Name: "uneven", Algorithm: escapement.TokenBucket, Rate: escapement.Rate{Count: 7, Per: 3 * time.Second}},
		{Name: "gcra", Algorithm: escapement.GCRA, Rate: sec(5)},
		{Name: "fixed", Algorithm: escapement.FixedWindow, Rate: sec(10)},
		{Name: "first-use", Algorithm: escapement.FixedWindow, Rate: sec(10), Align: escapement.FirstUse},
		{Name: "daily", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 30}, Align: escapement.Day},
		{Name: "sliding", Algorithm: escapement.SlidingWindow, Rate: sec(10)},
		{Name: "log", Algorithm: escapement.RollingWindow, Rate: sec(10)},
		{Name: "ring", Algorithm: escapement.RollingWindow, Rate: sec(100), Buckets: 16},
		{Name: "pacing", Algorithm: escapement.Pacing, Rate: sec(10), MaxDelay: 500 * time.Millisecond},
	}
}

// harness is one store under test.
type harness struct {
	t     *testing.T
	store escapement.Store
	clock Clock
}

func (h *harness) plan(l escapement.Limit) *escapement.Plan {
	h.t.Helper()
	p, err := l.Compile()
	if err != nil {
		h.t.Fatalf("limit %s: %v", l.Name, err)
	}
	return p
}

// rand is the source of this test's histories.
func (h *harness) rand() *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64N(1<<53-1) + 1
	}
	h.t.Logf("to repeat: go test -run '%s' -args -storetest.seed=%d", h.t.Name(), seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// group asks for claims together and wants an answer.
func (h *harness) group(claims ...escapement.Claim) escapement.Answer {
	h.t.Helper()
	var a [1]escapement.Answer
	h.store.Decide(context.Background(), []escapement.Request{{Claims: claims}}, a[:])
	if a[0].Outcome != escapement.Decided || a[0].Err != nil {
		h.t.Fatalf("%+v: outcome %d, %v", claims, a[0].Outcome, a[0].Err)
	}
	if len(a[0].Parts) != len(claims) {
		h.t.Fatalf("%d claims got %d decisions", len(claims), len(a[0].Parts))
	}
	return a[0]
}

// one asks for a claim alone; every other time by the shorter way if the store has one.
func (h *harness) one(c escapement.Claim, short bool) escapement.Decision {
	h.t.Helper()
	if f, ok := h.store.(escapement.FastStore); ok && short {
		d, err := f.DecideOne(context.Background(), c)
		if err != nil {
			h.t.Fatalf("%+v: %v", c, err)
		}
		return d
	}
	a := h.group(c)
	if shadow := c.Plan.Limit().Shadow; a.Admitted != (a.Parts[0].Allowed || shadow) {
		h.t.Fatalf("%+v: admitted %v, its only decision allowed %v", c, a.Admitted, a.Parts[0].Allowed)
	}
	return a.Parts[0]
}

func (h *harness) take(p *escapement.Plan, key string, cost int64) escapement.Decision {
	h.t.Helper()
	return h.one(escapement.Claim{Plan: p, Key: key, Cost: cost}, true)
}

// left is what remains of a key.
func (h *harness) left(p *escapement.Plan, key string) int64 {
	h.t.Helper()
	d := h.one(escapement.Claim{Plan: p, Key: key, Mode: escapement.Peek}, false)
	return d.Remaining()
}

// fields are everything a decision says.
type fields struct {
	Allowed                       bool
	Limit, Remaining              int64
	RetryAfter, ResetAfter, Delay time.Duration
	Units                         int64
	Receipt                       algo.Receipt
}

func fieldsOf(d escapement.Decision) fields {
	return fields{d.Allowed, d.Limit(), d.Remaining(), d.RetryAfter(), d.ResetAfter(), d.Delay(), d.Units(), d.Receipt()}
}
