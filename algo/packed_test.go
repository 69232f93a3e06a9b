package algo_test

import (
	"testing"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/algo/algomodel"
)

var all = []algo.Algorithm{algo.TokenBucket, algo.GCRA, algo.FixedWindow, algo.SlidingWindow, algo.RollingWindow, algo.Pacing}

// TestPacked: what packs is unpacked as it was, and what a bucket draws packs the same way.
func TestPacked(t *testing.T) {
	each(t, 300, all, func(t *testing.T, a algo.Algorithm, seed uint64) {
		r := algomodel.Rand(seed)
		_, p := algomodel.RandomLimit(r, a)
		h := algomodel.NewHistory(r, &p)
		s := fresh(&p)
		for range 100 {
			o := h.Next()
			before := algo.State{At: s.At, A: s.A, B: s.B}
			v := algomodel.Apply(&p, s, o)
			want := algomodel.Of(v)
			h.Saw(o, want)
			w, ok := p.Pack(&v, uint8(seed&3))
			if got := w.Head.Mark(); got != uint8(seed&3) {
				t.Fatalf("mark %d, want %d", got, seed&3)
			}
			if ok {
				if got := p.Unpack(w); got != v {
					t.Fatalf("%+v: got %+v, want %+v", o, got, v)
				}
			}
			if o.Kind != algomodel.Take || a != algo.TokenBucket && a != algo.GCRA {
				continue
			}
			_, backlog, admitted := p.Draw(&before, o.Now, o.Units)
			d, fits := algo.PackDrawn(v.Now(), o.Units, backlog, admitted)
			if w, ok = p.Pack(&v, 0); fits != ok || ok && d != w {
				t.Fatalf("%+v: drawn %+v %v, packed %+v %v", o, d, fits, w, ok)
			}
			if p.Drawn(v.Now(), o.Units, backlog, admitted) != v {
				t.Fatalf("%+v: drawn %+v, want %+v", o, p.Drawn(v.Now(), o.Units, backlog, admitted), v)
			}
		}
	})
}

// TestCommonPacks: takes and peeks of limits such as people have are never too large.
func TestCommonPacks(t *testing.T) {
	const day = 24 * 3600 * sec
	limits := []algo.Params{
		{Algorithm: algo.TokenBucket, Count: 1_000_000, Per: sec, Burst: 10_000_000},
		{Algorithm: algo.GCRA, Count: 1_000_000_000, Per: 30 * day},
		{Algorithm: algo.FixedWindow, Count: 1_000_000_000_000, Per: 30 * day},
		{Algorithm: algo.FixedWindow, Count: 1_000_000_000, Per: 30 * day, FirstUse: true},
		{Algorithm: algo.SlidingWindow, Count: 1_000_000, Per: day},
		{Algorithm: algo.RollingWindow, Count: 10, Per: 30 * day},
		{Algorithm: algo.RollingWindow, Count: 4_000_000_000, Per: 365 * day},
		{Algorithm: algo.Pacing, Count: 1000, Per: sec, MaxDelay: 60 * sec},
	}
	for _, q := range limits {
		p := compile(t, q)
		s := fresh(p)
		now := epoch
		for _, cost := range []int64{1, 0, q.Count / 2, q.Count, 3, q.Count / 3, q.Count/2 - 4, 1, 250} {
			if q.Algorithm == algo.RollingWindow && q.Count <= algo.LogMax {
				cost = min(cost, 20)
			}
			for _, v := range []algo.Verdict{p.Peek(s, now, cost), p.Take(s, now, cost)} {
				w, ok := p.Pack(&v, 3)
				if !ok || p.Unpack(w) != v {
					t.Errorf("%+v, cost %d: %+v does not pack", q, cost, v)
				}
			}
			now += algo.Store(q.Per / 7)
		}
	}
}
