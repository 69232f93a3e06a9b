package redisstore

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/redistest"
)

var (
	decisions = flag.Int("decisions", 100_000, "random decisions of TestTwins")
	seed      = flag.Uint64("seed", 0, "seed of TestTwins; 0 draws one")
)

// TestTwins puts the same random histories to package algo and to the scripts on a real
// server, which is told the time by bounds that leave it no choice, and compares every
// field of every decision.
func TestTwins(t *testing.T) {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("replay: go test ./redisstore -run TestTwins -decisions %d -seed %d", *decisions, s)
	srv := redistest.Start(t, redistest.Options{})
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{srv.Addr()}, DisableCache: true, PipelineMultiplex: -1, DisableRetry: true, AlwaysPipelining: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	tw := &twins{t: t, r: rand.New(rand.NewPCG(s, 1)), client: client, records: map[string]*record{}, now: 1_780_000_000_000_000}
	for _, sc := range append(slices.Collect(maps.Values(takeScripts)), listScript) {
		srv.Must(t, "SCRIPT", "LOAD", sc.text)
	}
	for range 40 {
		tw.names = append(tw.names, newWire(randomPlan(tw.r, fmt.Sprintf("limit%d", len(tw.names)))))
	}
	for tw.done < *decisions {
		if tw.now > 3_700_000_000_000_000 {
			// Before the calendar ends, another history begins.
			srv.Must(t, "FLUSHALL")
			clear(tw.records)
			tw.now = 1_780_000_000_000_000
		}
		tw.round(200)
	}
	t.Logf("%d decisions in %d calls, %d admitted, %d conversions, seed %d", tw.done, tw.calls, tw.admitted, tw.adopted, s)
	if tw.admitted < tw.done/10 || tw.admitted > tw.done*99/100 || tw.adopted == 0 {
		t.Errorf("the histories are one-sided: %d of %d admitted, %d conversions", tw.admitted, tw.done, tw.adopted)
	}
}

type twins struct {
	t       *testing.T
	r       *rand.Rand
	client  rueidis.Client
	names   []*wire
	records map[string]*record
	now     algo.Store

	done, calls, admitted, adopted int
}

// expected is one call with what the model says of it.
type expected struct {
	items   []*item
	now     algo.Store
	answers []escapement.Answer
	foreign map[int]bool // the short script has to decline
	short   bool
}

func (tw *twins) round(n int) {
	var calls []expected
	var cmds []rueidis.Completed
	for range n {
		tw.tick()
		if tw.r.IntN(300) == 0 {
			i := tw.r.IntN(len(tw.names))
			tw.names[i] = newWire(randomPlan(tw.r, fmt.Sprintf("limit%d", i)))
			// Known to the caller before, at or, on a line that went back, after now.
			tw.names[i].since = max(0, tw.now-algo.Store(tw.r.Int64N(20_000_000))+10_000_000)
		}
		e := expected{now: tw.now}
		foreign := map[int]bool{}
		for _, it := range tw.requests() {
			if rec := tw.records[it.keys[0]]; rec != nil && rec.text != it.wires[0].text {
				foreign[len(e.items)] = true
			}
			e.items = append(e.items, it)
			e.answers = append(e.answers, tw.model(it))
		}
		b := bounds{lo: e.now, hi: e.now}
		if takes(e.items) {
			keys, args := encodeTakes(e.items, b, time.Hour)
			cmds = append(cmds, tw.eval(takeScripts[e.items[0].wires[0].kind], keys, args))
			calls = append(calls, e)
			calls[len(calls)-1].short = true
			if len(foreign) == 0 {
				continue
			}
			// The short script leaves records of another plan to the list.
			calls[len(calls)-1].foreign = foreign
			var left expected
			left.now = e.now
			for i := range e.items {
				if foreign[i] {
					left.items, left.answers = append(left.items, e.items[i]), append(left.answers, e.answers[i])
				}
			}
			e = left
		}
		keys, args := encodeList(e.items, b, time.Hour)
		cmds = append(cmds, tw.eval(listScript, keys, args))
		calls = append(calls, e)
	}
	for i, resp := range tw.client.DoMulti(context.Background(), cmds...) {
		words, err := resp.AsIntSlice()
		if err != nil {
			tw.t.Fatalf("call %d: %v", i, err)
		}
		tw.check(&calls[i], words)
	}
}

func (tw *twins) eval(s script, keys, args []string) rueidis.Completed {
	return tw.client.B().Evalsha().Sha1(s.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
}

func (tw *twins) check(c *expected, words []int64) {
	tw.calls++
	now := algo.Store(words[1])
	if now != c.now {
		tw.t.Fatalf("now is %d, want %d", now, c.now)
	}
	words = words[2:]
	for i, it := range c.items {
		var a escapement.Answer
		own, rest := words, []int64(nil)
		if c.short {
			own, rest = widen(it, words, new([7]int64))
		}
		left, err := decode(it, now, own, &a)
		if !c.short {
			rest = left
		}
		if c.foreign[i] {
			if !errors.Is(err, errAdopt) {
				tw.t.Fatalf("%s: the short script answered %v to a record of another plan: %v", describe(it), words, err)
			}
			words = rest
			continue
		}
		if err != nil {
			tw.t.Fatalf("%s: %v (words %v, want %+v)", describe(it), err, words, c.answers[i])
		}
		want := &c.answers[i]
		if a.Admitted != want.Admitted || !slices.Equal(fields(a.Parts), fields(want.Parts)) {
			tw.t.Fatalf("at %d %s:\nscript %v %+v\nalgo   %v %+v\nwords %v", now, describe(it), a.Admitted, fields(a.Parts), want.Admitted, fields(want.Parts), words)
		}
		words = rest
		tw.done++
		if a.Admitted {
			tw.admitted++
		}
	}
	if len(words) != 0 {
		tw.t.Fatalf("%d words too many", len(words))
	}
}

// answered is every field of a decision.
type answered struct {
	allowed                       bool
	limit, remaining, units       int64
	retryAfter, resetAfter, delay time.Duration
	at                            algo.Store
	receipt                       algo.Receipt
}

func fields(parts []escapement.Decision) (all []answered) {
	for i := range parts {
		d := &parts[i]
		all = append(all, answered{d.Allowed, d.Limit(), d.Remaining(), d.Units(), d.RetryAfter(), d.ResetAfter(), d.Delay(), d.At(), d.Receipt()})
	}
	return all
}

func describe(it *item) string {
	var s string
	for i, c := range it.claims {
		s += fmt.Sprintf("[%s %s mode %d cost %d patience %v receipt %+v total %d] ", it.wires[i].text, it.keys[i], c.Mode, c.Cost, c.Patience, c.Receipt, it.totals[i])
	}
	return s
}

// tick moves the time: mostly a little forward, at times back.
func (tw *twins) tick() {
	span := []int64{0, 10, 10_000, 1_000_000, 60_000_000, 7_200_000_000, 200_000_000_000}[tw.r.IntN(7)]
	d := algo.Store(tw.r.Int64N(span + 1))
	if tw.r.IntN(12) == 0 {
		// Not by days: a caller sends the calendar windows around its time, no others.
		d = -d % 7_200_000_000
	}
	tw.now += d
}

// requests are one to five, or a few takes of one plan.
func (tw *twins) requests() (all []*item) {
	if tw.r.IntN(4) > 0 {
		for range 1 + tw.r.IntN(5)*tw.r.IntN(2) {
			all = append(all, tw.request())
		}
		return all
	}
	w := tw.names[tw.r.IntN(len(tw.names))]
	for k := range 1 + tw.r.IntN(3) {
		c := tw.claim(w, "", false)
		c.Mode, c.Patience = escapement.Take, 0
		it := &item{claims: []escapement.Claim{c}, wires: []*wire{w}, keys: []string{fmt.Sprintf("%s/%d", w.plan.Limit().Name, k)}}
		it.sum()
		all = append(all, it)
	}
	return all
}

// request is one to three claims on a few keys.
func (tw *twins) request() *item {
	n := 1
	if tw.r.IntN(5) == 0 {
		n = 2 + tw.r.IntN(3)
	}
	it := &item{}
	for range n {
		w := tw.names[tw.r.IntN(len(tw.names))]
		key := fmt.Sprintf("%s/%d", w.plan.Limit().Name, tw.r.IntN(3))
		if n > 1 && len(it.wires) > 0 && tw.r.IntN(3) == 0 {
			w, key = it.wires[0], it.keys[0]
		}
		if w.kind == 'f' && w.calendar == nil && w.text[0] == 'f' && tw.r.IntN(4) == 0 {
			p, err := w.plan.WithCount(1 + tw.r.Int64N(50))
			if err != nil {
				tw.t.Fatal(err)
			}
			since := w.since
			w = newWire(p)
			w.since = since
		}
		it.claims = append(it.claims, tw.claim(w, key, n == 1))
		it.wires, it.keys = append(it.wires, w), append(it.keys, key)
	}
	it.sum()
	return it
}

func (tw *twins) claim(w *wire, key string, alone bool) escapement.Claim {
	r := tw.r
	count := w.plan.Core().Capacity()
	cost := []int64{0, 1, 1, 1, 1, 2, count / 3, count, count + 1, 1 + r.Int64N(count), r.Int64N(algo.MaxInt)}[r.IntN(11)]
	c := escapement.Claim{Plan: w.plan, Cost: min(cost, algo.MaxInt)}
	if r.IntN(5) == 0 {
		c.Patience = []time.Duration{1, time.Millisecond, time.Second, time.Hour, escapement.Never}[r.IntN(5)]
	}
	modes := 2
	if alone {
		modes = 8
	}
	switch r.IntN(modes) {
	case 1:
		c.Mode = escapement.Peek
	case 2:
		c.Mode = escapement.TakeUpTo
	case 3:
		c.Mode = escapement.Charge
		if r.IntN(2) == 0 {
			c.Receipt.At = tw.now - algo.Store(r.Int64N(100_000_000))
		}
	case 4:
		c.Mode = escapement.Refund
		if rec := tw.records[key]; rec != nil {
			c.Receipt = rec.receipt
		}
		if r.IntN(4) == 0 {
			c.Receipt = algo.Receipt{At: tw.now - algo.Store(r.Int64N(10_000_000)), Units: r.Int64N(2 * min(count, 1000))}
		}
	}
	return c
}

// model answers a request by package algo alone.
func (tw *twins) model(it *item) escapement.Answer {
	a := escapement.Answer{Outcome: escapement.Decided, Admitted: true}
	if len(it.claims) == 1 {
		d := tw.settle(it, 0, it.claims[0])
		a.Parts = []escapement.Decision{d}
		a.Admitted = d.Allowed || it.wires[0].plan.Limit().Shadow
		return a
	}
	room := make([]bool, len(it.claims))
	for i, c := range it.claims {
		c.Cost = it.totals[i]
		st, _ := tw.state(it, i)
		v := tw.dry(it, i, st, &c)
		room[i] = v.Admitted
		a.Admitted = a.Admitted && (v.Admitted || it.wires[i].plan.Limit().Shadow)
	}
	for i, c := range it.claims {
		core := it.wires[i].plan.Core()
		st, _ := tw.state(it, i)
		switch {
		case a.Admitted && room[i]:
			a.Parts = append(a.Parts, tw.settle(it, i, c))
			continue
		case room[i]:
			a.Parts = append(a.Parts, escapement.Decide(it.wires[i].plan, core.Peek(&st, tw.now, 0), escapement.Exact))
		default:
			c.Cost = it.totals[i]
			a.Parts = append(a.Parts, escapement.Decide(it.wires[i].plan, tw.dry(it, i, st, &c), escapement.Exact))
		}
	}
	return a
}

// dry judges without keeping anything.
func (tw *twins) dry(it *item, i int, st algo.State, c *escapement.Claim) algo.Verdict {
	core := it.wires[i].plan.Core()
	if core.Algorithm() == algo.RollingWindow {
		return core.Peek(&st, tw.now, c.Cost)
	}
	return c.Ask(core, &st, tw.now)
}

func (tw *twins) settle(it *item, i int, c escapement.Claim) escapement.Decision {
	w := it.wires[i]
	st, adopted := tw.state(it, i)
	if adopted && c.Mode == escapement.Refund {
		c.Receipt.Units = 0
	}
	before := st
	before.Ring = slices.Clone(st.Ring)
	v := c.Ask(w.plan.Core(), &st, tw.now)
	if !v.Admitted && len(it.claims) > 1 {
		units := c.Cost
		if c.Mode == escapement.Peek {
			units = 0
		}
		v = w.plan.Core().Charge(&st, tw.now, units, 0)
	}
	if st.At != before.At || st.A != before.A || st.B != before.B || !slices.Equal(st.Ring, before.Ring) {
		rec := tw.records[it.keys[i]]
		if rec == nil {
			rec = &record{}
			tw.records[it.keys[i]] = rec
		}
		rec.core, rec.text, rec.st, rec.written = w.plan.Core(), w.text, st, max(tw.now, st.At)
		if v.Admitted && c.Mode == escapement.Take {
			rec.receipt = v.Receipt()
		}
	}
	return escapement.Decide(w.plan, v, escapement.Exact)
}

// state is the record of a claim under its plan, and whether it was converted.
func (tw *twins) state(it *item, i int) (algo.State, bool) {
	core := it.wires[i].plan.Core()
	rec := tw.records[it.keys[i]]
	switch {
	case rec == nil:
		return algo.State{Ring: make([]uint32, core.Slots())}, false
	case rec.text == it.wires[i].text:
		st := rec.st
		st.Ring = slices.Clone(st.Ring)
		return st, false
	}
	tw.adopted++
	st := rec.st
	st.Ring = slices.Clone(st.Ring)
	if rec.text[0] == 'c' {
		// Another plan's calendar is not known to the script: all of its count holds.
		t := algo.State{Ring: make([]uint32, core.Slots())}
		at := max(rec.asOf(it.wires[i], tw.now), st.At)
		core.Charge(&t, at, st.A, at)
		return t, true
	}
	return core.Adopt(rec.core, st, rec.asOf(it.wires[i], tw.now), make([]uint32, core.Slots())), true
}
