package algo_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/algo/algomodel"
)

// The long run:
//
//	go test ./algo -run TestModel -steps 5000000 -seed 7 -timeout 2h
//
// -steps is the number of calls judged per algorithm, -seed the first history. A failure
// prints the command that repeats it alone.
var (
	steps = flag.Int("steps", 60_000, "calls judged per algorithm in TestModel")
	seed  = flag.Uint64("seed", 0, "first history of random tests; 0 draws one")
)

// firstSeed is the -seed, or a new one, and prints it.
func firstSeed(t *testing.T) uint64 {
	t.Helper()
	s := *seed
	if s == 0 {
		s = uint64(rand.Uint32()) + 1
	}
	t.Logf("seed %d; again with: go test ./algo -run '^%s$' -steps %d -seed %d", s, t.Name(), *steps, s)
	return s
}

const historyLength = 200

var algorithms = []algo.Algorithm{
	algo.TokenBucket, algo.GCRA, algo.FixedWindow, algo.SlidingWindow, algo.RollingWindow, algo.Pacing,
}

// TestModel runs random histories of every call against the exact model and compares
// every field of every answer.
func TestModel(t *testing.T) {
	for _, a := range algorithms {
		t.Run(a.String(), func(t *testing.T) {
			first := firstSeed(t)
			for n := range uint64(max(1, *steps/historyLength)) {
				runHistory(t, a, first+n)
				if t.Failed() {
					t.Fatalf("repeat with: go test ./algo -run 'TestModel/%v' -steps 1 -seed %d", a, first+n)
				}
			}
		})
	}
}

// key is one key under judgement: algo on the left, the model on the right.
type key struct {
	t     *testing.T
	q     algo.Params
	plan  algo.Plan
	state algo.State
	model *algomodel.Model
	// twin is the same bucket under its other name: bucket and gcra are one function.
	twin *algomodel.Model
	log  []string
}

func newKey(t *testing.T, q algo.Params, p algo.Plan) *key {
	k := &key{t: t, q: q, plan: p, model: algomodel.New(q, p.Tick())}
	k.state.Ring = ring(&p)
	k.twin = twin(q, p.Tick())
	k.note("%+v tick %d", q, p.Tick())
	return k
}

func twin(q algo.Params, tick algo.Span) *algomodel.Model {
	switch q.Algorithm {
	case algo.TokenBucket:
		q.Algorithm = algo.GCRA
	case algo.GCRA:
		q.Algorithm = algo.TokenBucket
	case algo.FixedWindow, algo.SlidingWindow, algo.RollingWindow, algo.Pacing:
		return nil
	}
	return algomodel.New(q, tick)
}

func ring(p *algo.Plan) []uint32 {
	if n := p.Slots(); n > 0 {
		return make([]uint32, n)
	}
	return nil
}

func (k *key) note(format string, args ...any) { k.log = append(k.log, fmt.Sprintf(format, args...)) }

func (k *key) fail(format string, args ...any) {
	k.t.Helper()
	k.t.Errorf("%s\nhistory:\n  %s", fmt.Sprintf(format, args...), strings.Join(k.log[max(0, len(k.log)-25):], "\n  "))
}

func copyState(s algo.State) algo.State {
	s.Ring = slices.Clone(s.Ring)
	return s
}

func same(a, b algo.State) bool {
	return a.At == b.At && a.A == b.A && a.B == b.B && slices.Equal(a.Ring, b.Ring)
}

func runHistory(t *testing.T, a algo.Algorithm, seed uint64) {
	r := algomodel.Rand(seed)
	q, p := algomodel.RandomLimit(r, a)
	k := newKey(t, q, p)
	h := algomodel.NewHistory(r, &k.plan)
	defer func() {
		if e := recover(); e != nil {
			k.fail("panic: %v", e)
			panic(e)
		}
	}()
	for range historyLength {
		switch r.IntN(50) {
		case 0:
			k.rebase(h.Now())
		case 1:
			q, p := algomodel.RandomLimit(r, pickAlgorithm(r, k.q.Algorithm))
			if r.IntN(2) == 0 {
				q, p = nearby(r, k.q)
			}
			k.adopt(q, p, h.Now())
		}
		if r.IntN(20) == 0 {
			k.vary(1 + r.Int64N(2*k.q.Count))
		}
		o := h.Next()
		before := copyState(k.state)
		got := k.do(o)
		k.words()
		k.unchanged(o, got, before)
		k.promises(o, got, before)
		k.fresh(r, h.Now())
		h.Saw(o, got)
		if t.Failed() {
			return
		}
	}
}

// pickAlgorithm is the same one, or any.
func pickAlgorithm(r *rand.Rand, a algo.Algorithm) algo.Algorithm {
	if r.IntN(3) > 0 {
		return a
	}
	return algorithms[r.IntN(len(algorithms))]
}

// nearby is the limit with another count and burst, or itself if that does not compile.
func nearby(r *rand.Rand, q algo.Params) (algo.Params, algo.Plan) {
	n := q
	n.Count = 1 + r.Int64N(2*q.Count)
	if q.Burst > 0 {
		n.Burst = 1 + r.Int64N(2*q.Burst)
	}
	p, err := algo.Compile(n)
	if err != nil {
		p, _ = algo.Compile(q)
		return q, p
	}
	return n, p
}

// do makes one call on both sides and compares the answers.
func (k *key) do(o algomodel.Op) algomodel.Answer {
	k.t.Helper()
	got := algomodel.Of(algomodel.Apply(&k.plan, &k.state, o))
	want := k.model.Do(o)
	k.note("%v: %+v state %d %d %d", o, got, k.state.At, k.state.A, k.state.B)
	if got != want {
		k.fail("%v\n got %+v\nwant %+v", o, got, want)
	}
	if k.twin != nil {
		if other := k.twin.Do(o); other != want {
			k.fail("%v: bucket and gcra differ\n got %+v\nwant %+v", o, other, want)
		}
	}
	return got
}

func (k *key) rebase(now algo.Store) {
	k.t.Helper()
	got, want := k.plan.Rebase(&k.state, now), k.model.Rebase(now)
	if k.twin != nil {
		k.twin.Rebase(now)
	}
	k.note("Rebase(%d): %v state %d %d %d", now, got, k.state.At, k.state.A, k.state.B)
	if got != want {
		k.fail("Rebase(%d): got %v, want %v", now, got, want)
	}
}

func (k *key) adopt(q algo.Params, p algo.Plan, now algo.Store) {
	k.t.Helper()
	old := k.plan
	k.state = p.Adopt(&old, k.state, now, ring(&p))
	k.model = k.model.Adopt(q, p.Tick(), now)
	switch other := twin(q, p.Tick()); {
	case other == nil:
		k.twin = nil
	case k.twin != nil:
		q := q
		q.Algorithm = algo.TokenBucket + algo.GCRA - q.Algorithm
		k.twin = k.twin.Adopt(q, p.Tick(), now)
	default:
		k.twin = nil
	}
	k.q, k.plan = q, p
	k.note("Adopt(%+v tick %d) at %d: state %d %d %d", q, p.Tick(), now, k.state.At, k.state.A, k.state.B)
}

// vary goes on with another count on the same state, if the plan allows that.
func (k *key) vary(count int64) {
	p, err := k.plan.WithCount(count)
	if err != nil {
		return
	}
	k.q.Count, k.plan = count, p
	k.model = k.model.Adopt(k.q, p.Tick(), 0)
	k.note("WithCount(%d)", count)
}

// words checks that every word of the state is an integer a double holds exactly.
func (k *key) words() {
	k.t.Helper()
	for _, w := range []int64{int64(k.state.At), k.state.A, k.state.B} {
		if w < 0 || w > algo.MaxInt {
			k.fail("state %d %d %d leaves 0 to 2^53-1", k.state.At, k.state.A, k.state.B)
		}
	}
	if len(k.state.Ring) != k.plan.Slots() {
		k.fail("ring of %d words, want %d", len(k.state.Ring), k.plan.Slots())
	}
}

// unchanged checks that what took and gave nothing left no trace.
func (k *key) unchanged(o algomodel.Op, a algomodel.Answer, before algo.State) {
	k.t.Helper()
	still := o.Kind == algomodel.Peek || !a.Admitted || a.Units == 0 && o.Kind != algomodel.Refund
	if still && !same(k.state, before) {
		k.fail("%v changed the state from %v to %v", o, before, k.state)
	}
	if o.Kind == algomodel.Peek {
		t := copyState(k.state)
		o.Kind = algomodel.Take
		taken := algomodel.Of(algomodel.Apply(&k.plan, &t, o))
		if taken.Admitted != a.Admitted || taken.RetryAfter != a.RetryAfter || taken.Delay != a.Delay {
			k.fail("Peek answers %+v, Take %+v", a, taken)
		}
	}
}

// promises checks that a refused claim is admitted after RetryAfter, and not 1 µs earlier.
func (k *key) promises(o algomodel.Op, a algomodel.Answer, before algo.State) {
	k.t.Helper()
	if a.Admitted || a.RetryAfter == algo.Never {
		return
	}
	if a.RetryAfter <= 0 {
		k.fail("refused with RetryAfter %d", a.RetryAfter)
		return
	}
	try := func(after algo.Span) bool {
		s := copyState(before)
		o := o
		o.Now = a.Now + algo.Store(after)
		return algomodel.Apply(&k.plan, &s, o).Admitted
	}
	if !try(a.RetryAfter) {
		k.fail("%v is still refused after the RetryAfter of %d", o, a.RetryAfter)
	}
	if try(a.RetryAfter - 1) {
		k.fail("%v is admitted 1 µs before its RetryAfter of %d", o, a.RetryAfter)
	}
}

// fresh checks that a state that may be dropped answers as none at all does.
func (k *key) fresh(r *rand.Rand, now algo.Store) {
	k.t.Helper()
	got, want := k.plan.Fresh(&k.state, now), k.model.Fresh(now)
	if got != want {
		k.fail("Fresh(%d): got %v, want %v", now, got, want)
	}
	if !got || k.state.At > algo.MaxInstant {
		return
	}
	kept, none := copyState(k.state), algo.State{Ring: ring(&k.plan)}
	h := algomodel.NewHistory(r, &k.plan)
	h.Forward = true
	h.Start(max(now, kept.At))
	for range 6 {
		o := h.Next()
		if o.Stamp < max(now, kept.At) {
			o.Stamp = 0 // which window held it is forgotten with the state
		}
		a, b := algomodel.Of(algomodel.Apply(&k.plan, &kept, o)), algomodel.Of(algomodel.Apply(&k.plan, &none, o))
		if a != b {
			k.fail("Fresh(%d), but kept the state answers %v\n with %+v\n dropped, %+v", now, o, a, b)
			return
		}
		h.Saw(o, a)
	}
}
