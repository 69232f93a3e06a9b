package algo

import (
	"math/rand/v2"
	"testing"
)

// A verdict of a window that is counted elsewhere says what it was told, packed or not.
func TestTold(t *testing.T) {
	const now = Store(1_728_000_012_345_678)
	plans := map[string]Params{
		"fixed":     {Algorithm: FixedWindow, Count: 100, Per: 10_000_000},
		"first use": {Algorithm: FixedWindow, Count: 100, Per: 10_000_000, FirstUse: true},
		"sliding":   {Algorithm: SlidingWindow, Count: 100, Per: 10_000_000},
	}
	for name, q := range plans {
		p, err := Compile(q)
		if err != nil {
			t.Fatal(err)
		}
		start := now - 2_345_678
		if q.FirstUse {
			start -= 17
		}
		end := start + 10_000_000
		reset := Span(end - now)
		if q.Algorithm == SlidingWindow {
			reset += 10_000_000
		}
		v := p.Told(Told{Admitted: true, Now: now, Start: start, Units: 3, Remaining: 40})
		if v.Remaining() != 40 || v.Units() != 3 || v.Delay() != 0 || v.RetryAfter() != 0 || v.ResetAfter() != reset {
			t.Errorf("%s, admitted: %d remain, %d units, delay %d, retry %d, reset %d", name, v.Remaining(), v.Units(), v.Delay(), v.RetryAfter(), v.ResetAfter())
		}
		if r := v.Receipt(); r != (Receipt{At: start, Units: 3}) {
			t.Errorf("%s: receipt %+v, want the start of the window, %d", name, r, start)
		}
		v = p.Told(Told{Now: now, Start: start, Units: 3, Remaining: -2, Wait: 1234})
		if v.Remaining() != 0 || v.RetryAfter() != 1234 || v.Receipt() != (Receipt{}) {
			t.Errorf("%s, refused: %d remain, retry %d, receipt %+v", name, v.Remaining(), v.RetryAfter(), v.Receipt())
		}
		if v = p.Told(Told{Now: now, Start: start, Units: 101, Wait: 5}); v.RetryAfter() != Never {
			t.Errorf("%s, more than the limit: retry %d", name, v.RetryAfter())
		}
		if v = p.Told(Told{Now: now, Start: start, Units: 1}); q.Algorithm == FixedWindow && v.RetryAfter() != Span(end-now) {
			t.Errorf("%s, until the window ends: retry %d", name, v.RetryAfter())
		}
		if v = p.Told(Told{Admitted: true, None: true, Now: now, Start: start, Remaining: 100}); v.ResetAfter() != 0 || v.Receipt() != (Receipt{}) {
			t.Errorf("%s, peeked: reset %d, receipt %+v", name, v.ResetAfter(), v.Receipt())
		}
	}
}

// What stores decide all the time fits into a Packed.
func TestToldIsPacked(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, q := range []Params{
		{Algorithm: FixedWindow, Count: MaxLease, Per: 10_000_000},
		{Algorithm: FixedWindow, Count: 1 << 30, Per: 10_000_000, FirstUse: true},
		{Algorithm: SlidingWindow, Count: 1 << 20, Per: 10_000_000},
	} {
		p, err := Compile(q)
		if err != nil {
			t.Fatal(err)
		}
		for range 10_000 {
			now := Store(r.Int64N(int64(MaxInstant)))
			start, _ := p.window(now)
			if q.FirstUse {
				start = max(0, now-Store(r.Int64N(10_000_000)))
			}
			told := Told{Admitted: r.IntN(2) == 0, None: r.IntN(4) == 0, Now: now, Start: start, Units: r.Int64N(q.Count), Remaining: r.Int64N(q.Count)}
			if !told.Admitted && !q.FirstUse {
				told.Wait = Span(r.Int64N(10_000_000))
			}
			v := p.Told(told)
			if w, ok := p.Pack(&v, 2); !ok || p.Unpack(w) != v || w.Head.Mark() != 2 {
				t.Fatalf("%v: %+v is packed %v as %+v", q.Algorithm, v, ok, p.Unpack(w))
			}
		}
	}
}
