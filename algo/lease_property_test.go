package algo

import (
	"testing"

	"pgregory.net/rapid"
)

// anyAsk draws an ask that keeps to nothing but the range of its numbers.
func anyAsk(t *rapid.T) *Ask {
	small := rapid.Int64Range(-5, 2000)
	wild := rapid.Int64Range(-MaxInt, MaxInt)
	number := rapid.Custom(func(t *rapid.T) int64 {
		if rapid.IntRange(0, 3).Draw(t, "wild") == 0 {
			return wild.Draw(t, "n")
		}
		return small.Draw(t, "n")
	})
	amounts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Amount { return Amount{number.Draw(t, "bucket"), number.Draw(t, "units")} }), 0, 6)
	return &Ask{Exact: max(0, number.Draw(t, "exact")-1990), Rate: number.Draw(t, "rate"), Epoch: number.Draw(t, "epoch"), LastRate: number.Draw(t, "last"),
		Window: number.Draw(t, "window"), Return: number.Draw(t, "return"), Spent: number.Draw(t, "spent"), Ver: number.Draw(t, "version"), Want: number.Draw(t, "want"), WantNext: number.Draw(t, "next"),
		Have: number.Draw(t, "have"), HaveNext: number.Draw(t, "have next"), Past: Store(number.Draw(t, "past")), Settle: amounts.Draw(t, "settle"),
		Used: amounts.Draw(t, "used"), Base: number.Draw(t, "base"), Horizon: number.Draw(t, "horizon"), Upto: number.Draw(t, "upto"), Carry: number.Draw(t, "carry")}
}

// Whatever is asked, no more is granted than there is, and the record stays in its range.
func TestHostileAsks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.OneOf(rapid.Int64Range(1, 1000), rapid.Just[int64](MaxLease)).Draw(t, "count")
		fence := rapid.Bool().Draw(t, "fence")
		fixed := Lease{Count: count, Per: 1000, Interval: 200, Fence: fence}
		rolling := Lease{Count: count, Per: 1000, Interval: 200, Width: 100, Buckets: 10, Fence: fence}
		var f FixedLease
		var r RollingLease
		now := Store(0)
		for range rapid.IntRange(1, 30).Draw(t, "asks") {
			now = max(0, now+Store(rapid.Int64Range(-500, 1500).Draw(t, "step")))
			a := anyAsk(t)
			g := fixed.SyncFixed(&f, now, a)
			if g.Units < 0 || g.Next < 0 || f.Given < 0 || f.Given > MaxInt || g.Units > 0 && f.Given > count || g.Available < 0 || f.Ver < 0 || f.Ver > MaxInt || f.Next < 0 || f.Next > count {
				t.Fatalf("fixed: %+v leaves %+v, granted %+v", a, f, g)
			}
			g = rolling.SyncRolling(&r, now, a)
			checkRolling(t, &rolling, &r, &g)
		}
	})
}

// checkRolling holds the record to its sums, and to its promise at every bucket.
func checkRolling(t *rapid.T, l *Lease, r *RollingLease, g *Grant) {
	sum, promised := int64(0), int64(0)
	for i := range r.Charged {
		if r.Charged[i] < 0 || r.Charged[i] > MaxLease || r.From[i] < 0 {
			t.Fatalf("out of range: %+v", r)
		}
		sum, promised = sum+r.Charged[i], promised+r.From[i]
	}
	if sum != r.Sum || promised != r.Promised || r.Demand.Rate < 0 || r.Demand.Rate > MaxInt || r.Demand.Number > maxHolders {
		t.Fatalf("the sums are off: %+v", r)
	}
	granted := int64(0)
	for _, lot := range g.Lots {
		granted += lot.Units
		if J := int64(r.At) / int64(l.Width); lot.Units < 1 || lot.From < J || lot.Expiry < lot.From || lot.Expiry > J+l.Buckets {
			t.Fatalf("a lot of %+v at bucket %d", lot, J)
		}
	}
	J := int64(r.At) / int64(l.Width)
	for k := J; k <= J+l.Buckets; k++ {
		counts := int64(0)
		for j := k - l.Buckets; j <= J+l.Buckets; j++ {
			counts += r.Charged[l.place(j)]
		}
		for i := k + 1; i <= J+l.Buckets; i++ {
			counts -= r.From[l.place(i)]
		}
		usable := g.Admitted // of this grant, by bucket k
		for _, lot := range g.Lots {
			usable = usable || lot.From <= k
		}
		// What holders claim to have used is charged, even above the limit; no grant adds to it.
		if usable && counts > l.Count {
			t.Fatalf("after a grant of %d, %d count at bucket %d, limit %d", granted, counts, k, l.Count)
		}
	}
}

// Whatever is reported, counters stay in their range and count a number once.
func TestHostileFlushes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := Params{Algorithm: rapid.SampledFrom([]Algorithm{FixedWindow, SlidingWindow}).Draw(t, "algorithm"), Count: rapid.Int64Range(1, 1000).Draw(t, "count"), Per: 1000}
		q.FirstUse = q.Algorithm == FixedWindow && rapid.Bool().Draw(t, "first use")
		p, err := Compile(q)
		if err != nil {
			t.Fatal(err)
		}
		var r Delayed
		now := Store(0)
		for range rapid.IntRange(1, 30).Draw(t, "flushes") {
			now = max(0, now+Store(rapid.Int64Range(-500, 1500).Draw(t, "step")))
			f := Flush{Instance: rapid.Int64Range(1, 3).Draw(t, "instance"), Number: rapid.Int64Range(-1, 5).Draw(t, "number"), Interval: Span(rapid.Int64Range(-10, 999).Draw(t, "interval"))}
			for range rapid.IntRange(0, 3).Draw(t, "parts") {
				f.Parts = append(f.Parts, Spent{Store(rapid.Int64Range(0, int64(now)+3000).Draw(t, "window")), rapid.Int64Range(-5, MaxInt).Draw(t, "units")})
			}
			g := p.Flush(&r, now, &f)
			if r.Used < 0 || r.Used > MaxInt || r.Before < 0 || r.Before > MaxInt || g.Remaining < 0 || g.Remaining > q.Count || g.Rest < 1 || g.Rest > q.Per {
				t.Fatalf("%+v leaves %+v, answered %+v", f, r, g)
			}
			again := r
			again.Seen = append([]SeenFlush(nil), r.Seen...)
			if g := p.Flush(&again, now, &f); again.Used != r.Used || again.Before != r.Before || g.Late != 0 {
				t.Fatalf("a repetition of %+v counts: %+v, then %+v", f, r, again)
			}
		}
	})
}
