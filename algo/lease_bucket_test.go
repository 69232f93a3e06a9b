package algo

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func bucketLease(t testing.TB, q Params, interval Span) (Plan, Lease) {
	t.Helper()
	if q.Algorithm == 0 {
		q.Algorithm = TokenBucket
	}
	p, err := Compile(q)
	if err != nil {
		t.Fatal(err)
	}
	l, err := p.Lease(interval)
	if err != nil {
		t.Fatal(err)
	}
	return p, l
}

func TestLeaseOfABucket(t *testing.T) {
	_, l := bucketLease(t, Params{Count: 500, Per: 1_000_000, Burst: 100}, 200_000)
	want := Lease{Count: 100, Per: 200_000, Interval: 200_000, Width: 8192, Buckets: 256, N: 1, P: 2000, Tick: 1}
	if d := cmp.Diff(want, l); d != "" {
		t.Error(d)
	}
	for _, tt := range []struct {
		q        Params
		interval Span
		field    string
		text     string
	}{
		{Params{Count: 500, Per: 1_000_000, Burst: 99}, 200_000, "burst", "99 is less than what comes back between two syncs"},
		{Params{Count: 500, Per: 1_000_000, Burst: 99}, 200_000, "burst", "use a burst of at least 100, and better of twice that, or an interval of at most 198ms"},
		{Params{Count: 500, Per: 1_000_000, Burst: 1}, 20_000, "burst", "use a burst of at least 10, and better of twice that"},
		{Params{Count: 5, Per: 1_000_000}, 19_999, "interval", "use at least 20ms"},
		{Params{Count: 1 << 32, Per: 1 << 32}, 20_000, "burst", "use at most 4294967295"},
		{Params{Algorithm: GCRA, Count: 3, Per: 1_000_000, Burst: 1}, 333_334, "burst", "at least 2"},
		{Params{Algorithm: GCRA, Count: 3, Per: 1_000_000, Burst: 1}, 333_333, "", ""},
		{Params{Count: 1, Per: 86_400_000_000, Burst: 1_000_000}, 3_600_000_000, "", ""},
	} {
		if tt.q.Algorithm == 0 {
			tt.q.Algorithm = TokenBucket
		}
		p, err := Compile(tt.q)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Lease(tt.interval)
		e, refused := errors.AsType[*LimitError](err)
		if refused != (tt.field != "") || refused && (e.Field != tt.field || !strings.Contains(e.Error(), tt.text)) {
			t.Errorf("%+v every %d: %v, want %s: %s", tt.q, tt.interval, err, tt.field, tt.text)
		}
	}
}

// One history of a bucket of 10 that fills by one each 100 ms, in buckets of 16384 µs.
func TestBucketLeaseStory(t *testing.T) {
	_, l := bucketLease(t, Params{Count: 10, Per: 1_000_000}, 400_000)
	var r BucketLease
	sync := func(at Store, a Ask, want Grant) {
		t.Helper()
		if d := cmp.Diff(want, l.SyncBucket(&r, at, &a)); d != "" {
			t.Fatalf("at %d: %s", at, d)
		}
	}
	const e = 1_638_400_000 // bucket 100000
	// Six are wanted until the next sync, and there are ten.
	sync(e, Ask{Epoch: -1, Rate: 15, Base: 2, Want: 6, Horizon: 25, Upto: -1},
		Grant{At: e, Epoch: 2048, Instances: 1, Share: 1_000_000, Available: 4, Lots: []Lot{{100_000, 6, 100_050}}, Upto: 100_025, Ver: 7})
	// An exact request takes the rest; the next unit comes back in 100 ms.
	sync(e, Ask{Exact: 5}, Grant{At: e, Available: 4})
	sync(e, Ask{Exact: 4}, Grant{At: e, Admitted: true, Free: e + 100_000})
	sync(e+99_999, Ask{Exact: 1}, Grant{At: e + 99_999, Free: e + 100_000})
	sync(e+100_000, Ask{Exact: 1}, Grant{At: e + 100_000, Admitted: true, Free: e + 200_000})
	// Of the six, four were used and one is given back, in bucket 24: it is there at once. What comes
	// back in the next 400 ms is handed out ahead, four in all.
	sync(e+400_000, Ask{Epoch: 2048, LastRate: 15, Rate: 15, Settle: []Amount{{100_050, 5}}, Used: []Amount{{100_004, 4}}, Base: 4, Want: 8, Horizon: 25, Upto: 100_025},
		Grant{At: e + 400_000, Epoch: 2048, Instances: 1, Share: 1_000_000, Free: e + 900_000, Lots: []Lot{
			{100_024, 4, 100_074}, {100_031, 1, 100_074}, {100_037, 1, 100_074}, {100_043, 1, 100_074}, {100_049, 1, 100_074}}, Upto: 100_049, Ver: 16})
	if r.Sum != 9 || r.Promised != 4 {
		t.Fatalf("%d are out and %d promised, want 9 and 4", r.Sum, r.Promised)
	}
	// By the end of its last bucket the one that was not heard of is taken as used.
	sync(e+50*16_384+16_383, Ask{Exact: 1}, Grant{At: e + 50*16_384 + 16_383, Free: e + 900_000})
	if r.Sum != 9 || r.Promised != 0 {
		t.Fatalf("%d are out and %d promised, want 9 and none", r.Sum, r.Promised)
	}
	sync(e+950_000, Ask{Exact: 2}, Grant{At: e + 950_000, Available: 1})
	if r.Sum != 8 {
		t.Fatalf("%d are out, want 8", r.Sum)
	}
	// While eight are out the bucket fills no further than two.
	sync(e+1_200_000, Ask{Exact: 3}, Grant{At: e + 1_200_000, Available: 2})
	// A store whose clock went back takes nothing back, and nobody gives back what was not out.
	sync(e+1_200_000, Ask{Epoch: -1, Past: e + 1_210_000, Settle: []Amount{{100_074, 8}}, Horizon: 25},
		Grant{At: e + 1_200_000, Epoch: 2049, Instances: 1, Share: 1_000_000, Available: 2, Upto: 100_098, Ver: 17})
	sync(e+1_200_000, Ask{Epoch: -1, Settle: []Amount{{100_074, 1_000}, {100_050, 7}}, Horizon: 25},
		Grant{At: e + 1_200_000, Epoch: 2049, Instances: 2, Share: 1_000_000, Available: 10, Upto: 100_098, Ver: 18})
	// A use beyond what was out is charged, into debt.
	sync(e+1_200_000, Ask{Epoch: -1, Used: []Amount{{100_050, 12}}, Horizon: 25},
		Grant{At: e + 1_200_000, Epoch: 2049, Instances: 3, Share: 1_000_000, Free: e + 1_500_000, Upto: 100_098, Ver: 19})
}

// Exact asks alone are answered as Take answers.
func TestExactAsksOfABucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := Params{Algorithm: TokenBucket, Count: rapid.Int64Range(1, 1000).Draw(t, "count"), Per: rapid.SampledFrom([]Span{1_000_000, 1_234_567, 86_400_000_000}).Draw(t, "per")}
		q.Burst = q.Count + rapid.Int64Range(0, 1000).Draw(t, "burst")
		p, err := Compile(q)
		if err != nil {
			t.Skip(err)
		}
		l, err := p.Lease(min(q.Per/2, 1_000_000))
		if err != nil {
			t.Fatal(err)
		}
		var r BucketLease
		var s State
		now := Store(1 << 50)
		for range rapid.IntRange(1, 50).Draw(t, "asks") {
			now += Store(rapid.Int64Range(-1000, int64(q.Per)/3).Draw(t, "step"))
			cost := rapid.Int64Range(1, q.Burst+2).Draw(t, "cost")
			v := p.Take(&s, max(now, r.At), cost)
			g := l.SyncBucket(&r, now, &Ask{Exact: cost})
			if g.Admitted != v.Admitted || g.Available != v.Remaining() {
				t.Fatalf("at %d, %d: %+v, Take admits %v and leaves %d", now, cost, g, v.Admitted, v.Remaining())
			}
		}
	})
}

// Whatever is asked, no more is out than the burst, what is out and what is there come to
// no more, and what was promised has come back by then.
func TestHostileAsksOfABucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.OneOf(rapid.Int64Range(1, 1000), rapid.Just[int64](MaxLease)).Draw(t, "count")
		p, err := Compile(Params{Algorithm: TokenBucket, Count: count, Per: 1_000_000})
		if err != nil {
			t.Fatal(err)
		}
		l, err := p.Lease(20_000)
		if err != nil {
			t.Fatal(err)
		}
		var r BucketLease
		now := Store(0)
		for range rapid.IntRange(1, 30).Draw(t, "asks") {
			now = max(0, now+Store(rapid.Int64Range(-5_000, 15_000).Draw(t, "step")))
			g := l.SyncBucket(&r, now, anyAsk(t))
			sum, promised := int64(0), int64(0)
			for i := range r.Charged {
				if sum, promised = sum+r.Charged[i], promised+r.From[i]; r.Charged[i] < 0 || r.From[i] < 0 {
					t.Fatalf("out of range: %+v", r)
				}
			}
			if sum != r.Sum || promised != r.Promised || sum > count || r.State.A < sum*l.P || r.State.A > MaxInt {
				t.Fatalf("%d out, %d promised of %d: %+v", sum, promised, count, r)
			}
			J := int64(r.At) / int64(l.Width)
			for _, lot := range g.Lots {
				if lot.Units < 1 || lot.From < J || lot.Expiry < lot.From || lot.Expiry > J+l.Buckets {
					t.Fatalf("a lot of %+v at bucket %d", lot, J)
				}
			}
		}
	})
}
