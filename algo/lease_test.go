package algo

import (
	"errors"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func fixedLease(t *testing.T, count int64) Lease {
	t.Helper()
	l := Lease{Count: count, Per: 1_000_000, Interval: 200_000}
	return l
}

func TestLeaseOfAPlan(t *testing.T) {
	for _, tt := range []struct {
		q        Params
		interval Span
		field    string // of the refusal
		width    Span
		buckets  int64
	}{
		{Params{Algorithm: FixedWindow, Count: 500, Per: 1_000_000}, 200_000, "", 0, 0},
		{Params{Algorithm: FixedWindow, Count: 500, Per: 1_000_000}, 1_000_000, "", 0, 0},
		{Params{Algorithm: FixedWindow, Count: 500, Per: 1_000_000}, 1_000_001, "interval", 0, 0},
		{Params{Algorithm: FixedWindow, Count: 500, Per: 1_000_000}, 19_999, "interval", 0, 0},
		{Params{Algorithm: FixedWindow, Count: 1 << 32, Per: 1_000_000}, 200_000, "count", 0, 0},
		{Params{Algorithm: FixedWindow, Count: 500, Per: 1_000_000, FirstUse: true}, 200_000, "align", 0, 0},
		{Params{Algorithm: Pacing, Count: 500, Per: 1_000_000}, 200_000, "algorithm", 0, 0},
		{Params{Algorithm: RollingWindow, Count: 500, Per: 1_000_000}, 500_000, "", 3907, 256},
		{Params{Algorithm: RollingWindow, Count: 500, Per: 1_000_000}, 500_001, "interval", 0, 0},
		{Params{Algorithm: RollingWindow, Count: 5, Per: 10_000_000}, 200_000, "", 78_125, 128},
		{Params{Algorithm: RollingWindow, Count: 500, Per: 1_000_000, Buckets: 8}, 200_000, "", 125_000, 8},
		{Params{Algorithm: SlidingWindow, Count: 1000, Per: 10_000_000}, 200_000, "", 78_125, 128},
	} {
		p, err := Compile(tt.q)
		if err != nil {
			t.Fatal(err)
		}
		l, err := p.Lease(tt.interval)
		if tt.field != "" {
			if e, ok := errors.AsType[*LimitError](err); !ok || e.Field != tt.field {
				t.Errorf("%+v every %d: %v, want a refusal of %s", tt.q, tt.interval, err, tt.field)
			}
			continue
		}
		if want := (Lease{Count: tt.q.Count, Per: tt.q.Per, Interval: tt.interval, Width: tt.width, Buckets: tt.buckets}); err != nil || l != want {
			t.Errorf("%+v every %d: %+v, %v, want %+v", tt.q, tt.interval, l, err, want)
		}
	}
}

// The grant rule, by hand: two of three holders have registered 600 and 200.
func TestQuota(t *testing.T) {
	l := fixedLease(t, 500)
	for _, tt := range []struct {
		want, available, have int64
		s                     split
		granted               int64
	}{
		{100, 500, 0, split{n: 1, rate: 100, sum: 100}, 100},
		{100, 60, 0, split{n: 1, rate: 100, sum: 100}, 60},
		{0, 500, 0, split{n: 1, rate: 100, sum: 100}, 0},
		{-3, 500, 0, split{n: 1, rate: 100, sum: 100}, 0},
		{500, 500, 0, split{n: 2, rate: 600, sum: 800}, 250},                // no history: a half
		{500, 500, 0, split{n: 2, rate: 600, sum: 800, last: 2}, 375},       // three quarters of the demand
		{500, 500, 300, split{n: 2, rate: 600, sum: 800, last: 2}, 250},     // entitled to 75 more, half of the rest
		{500, 10, 400, split{n: 3, rate: 600, sum: 800, last: 2}, 4},        // beyond it a third, rounded up
		{500, 500, 0, split{n: 501, rate: 0, sum: 0, last: 2}, 1},           // nobody said what they need
		{1 << 40, 500, 0, split{n: 1, rate: 5000, sum: 5000, last: 1}, 500}, // never more than there is
	} {
		if got := l.quota(tt.want, tt.available, tt.have, tt.s); got != tt.granted {
			t.Errorf("want %d of %d, have %d, %+v: granted %d, want %d", tt.want, tt.available, tt.have, tt.s, got, tt.granted)
		}
	}
}

func TestRegistrationWithoutRecords(t *testing.T) {
	l := fixedLease(t, 500)
	var d Demand
	ask := func(at Store, rate, epoch, last int64) [2]int64 {
		n, sum := l.register(&d, at, &Ask{Rate: rate, Epoch: epoch, LastRate: last})
		return [2]int64{n, sum}
	}
	for i, tt := range []struct {
		at                Store
		rate, epoch, last int64
		n, sum            int64
	}{
		{400_000, 100, -1, 0, 1, 100},
		{500_000, 300, -1, 0, 2, 400},
		{600_000, 150, 1, 100, 2, 450},     // the first again: its rate is corrected
		{800_000, 150, 1, 150, 2, 450},     // a new epoch: what the last one saw still counts
		{900_000, 300, 1, 300, 2, 450},     // until as many have registered
		{1_000_000, 50, -1, 0, 3, 500},     //
		{2_000_000, 9999, -1, 0, 1, 5000},  // two epochs later: only this one, capped at ten limits
		{2_000_001, 0, 5, 9_999_999, 1, 0}, // and withdrawn
		{2_000_002, 7, 5, 9_999_999, 1, 7}, // a correction never makes the sum negative
	} {
		if got := ask(tt.at, tt.rate, tt.epoch, tt.last); got != [2]int64{tt.n, tt.sum} {
			t.Fatalf("step %d: %v, want %d holders with %d", i, got, tt.n, tt.sum)
		}
	}
}

// One history of two holders in fixed windows of 500 per second.
func TestFixedLeaseStory(t *testing.T) {
	l := fixedLease(t, 500)
	var r FixedLease
	for i, tt := range []struct {
		at  Store
		a   Ask
		g   Grant
		rec [2]int64
	}{
		// The first to come gets what it wants; it does not know the window yet.
		{10_000, Ask{Epoch: -1, Rate: 400, Window: -1, Want: 100},
			Grant{At: 10_000, Free: 1_000_000, Instances: 1, Share: 1_000_000, Available: 400, Units: 100}, [2]int64{100, 0}},
		// The second wants all: a half of the limit, since nothing is known of the demand yet.
		{20_000, Ask{Epoch: -1, Rate: 400, Window: -1, Want: 500},
			Grant{At: 20_000, Free: 1_000_000, Instances: 2, Share: 500_000, Available: 150, Units: 250}, [2]int64{350, 0}},
		// The first gives 30 back and wants of the next window.
		{850_000, Ask{Epoch: 0, LastRate: 400, Rate: 400, Window: 0, Return: 30, Have: 70, WantNext: 90},
			Grant{At: 850_000, Epoch: 2, Free: 1_000_000, Instances: 1, Share: 1_000_000, Available: 180, Next: 90}, [2]int64{320, 90}},
		// An exact request takes from the same record.
		{860_000, Ask{Exact: 180}, Grant{At: 860_000, Free: 1_000_000, Admitted: true}, [2]int64{500, 90}},
		{860_001, Ask{Exact: 1}, Grant{At: 860_001, Free: 1_000_000}, [2]int64{500, 90}},
		// Sent before the boundary, processed after it: the wish for the next window is one
		// for this one, and what is given back belongs to a window that is over.
		{1_000_500, Ask{Epoch: -1, Rate: 400, Window: 0, Return: 50, Want: 10, WantNext: 60},
			Grant{At: 1_000_500, Window: 1, Epoch: 2, Free: 2_000_000, Instances: 2, Share: 500_000, Available: 350, Units: 60}, [2]int64{150, 0}},
		// The clock goes back: it stays where it was.
		{900_000, Ask{Exact: 1}, Grant{At: 1_000_500, Window: 1, Free: 2_000_000, Admitted: true, Available: 349}, [2]int64{151, 0}},
		// Nobody can give back more than was handed out.
		{1_200_000, Ask{Epoch: -1, Window: 1, Return: 1_000_000},
			Grant{At: 1_200_000, Window: 1, Epoch: 3, Free: 2_000_000, Instances: 2, Share: 0, Available: 500}, [2]int64{0, 0}},
		{9_000_000, Ask{Exact: 501}, Grant{At: 9_000_000, Window: 9, Free: 10_000_000, Available: 500}, [2]int64{0, 0}},
	} {
		g := l.SyncFixed(&r, tt.at, &tt.a)
		g.Ver = 0 // versions have tests of their own
		if d := cmp.Diff(tt.g, g); d != "" {
			t.Fatalf("step %d: %s", i, d)
		}
		if rec := [2]int64{r.Given, r.Next}; rec != tt.rec {
			t.Fatalf("step %d: the record holds %v, want %v", i, rec, tt.rec)
		}
	}
}

// One history of one holder in a rolling window of 80 per 800 ms in 8 buckets.
func TestRollingLeaseStory(t *testing.T) {
	l := Lease{Count: 80, Per: 800_000, Interval: 200_000, Width: 100_000, Buckets: 8}
	var r RollingLease
	sync := func(at Store, a Ask, want Grant) {
		t.Helper()
		g := l.SyncRolling(&r, at, &a)
		g.Ver = 0
		if d := cmp.Diff(want, g); d != "" {
			t.Fatalf("at %d: %s", at, d)
		}
	}
	// Forty are wanted over four buckets, ten at once; the stock is ample, so all come at once.
	sync(1_050_000, Ask{Epoch: -1, Rate: 100, Base: 10, Want: 40, Horizon: 4, Upto: -1},
		Grant{At: 1_050_000, Epoch: 2, Instances: 1, Share: 1_000_000, Available: 40, Lots: []Lot{{10, 40, 14}}, Upto: 14})
	// They were used in bucket 11, and the rest of the stock is taken by an exact request.
	sync(1_150_000, Ask{Epoch: 2, LastRate: 100, Rate: 100, Settle: []Amount{{14, 40}}, Used: []Amount{{11, 40}}, Horizon: 4, Upto: 14},
		Grant{At: 1_150_000, Epoch: 2, Instances: 1, Share: 1_000_000, Available: 40, Upto: 15})
	sync(1_250_000, Ask{Exact: 40}, Grant{At: 1_250_000, Admitted: true, Free: 2_000_000})
	sync(1_250_000, Ask{Exact: 1}, Grant{At: 1_250_000, Free: 2_000_000})
	// In bucket 18 all is used; that of bucket 11 is free again from 20 on, that of 12 from
	// 21 on. A need of 60 over four buckets is met as the releases come.
	sync(1_850_000, Ask{Epoch: -1, Rate: 100, Have: 40, Base: 0, Want: 60, Horizon: 4, Upto: 15},
		Grant{At: 1_850_000, Epoch: 4, Instances: 1, Share: 1_000_000, Free: 2_100_000,
			Lots: []Lot{{20, 30, 22}, {21, 15, 22}, {22, 15, 22}}, Upto: 22})
	// Fifteen of them unused and given back in bucket 22 leave 45 charged to it, beside
	// nothing else: 35 are free.
	sync(2_250_000, Ask{Epoch: -1, Rate: 100, Settle: []Amount{{22, 60}}, Used: []Amount{{22, 45}}, Horizon: 2, Upto: 22},
		Grant{At: 2_250_000, Epoch: 5, Instances: 1, Share: 1_000_000, Available: 35, Upto: 24})
	// A store whose clock went back takes nothing back.
	sync(2_250_000, Ask{Epoch: -1, Rate: 100, Past: 2_300_000, Settle: []Amount{{22, 45}}, Horizon: 2, Upto: 24},
		Grant{At: 2_250_000, Epoch: 5, Instances: 2, Share: 500_000, Available: 35, Upto: 24})
	// Of two with equal demand each gets a half of a release, and the odd thousandths later.
	r = RollingLease{}
	sync(1_000_000, Ask{Exact: 79}, Grant{At: 1_000_000, Admitted: true, Available: 1})
	sync(1_000_000, Ask{Exact: 1}, Grant{At: 1_000_000, Admitted: true, Free: 1_900_000})
	r.Demand = Demand{Epoch: 4, Number: 2, Rate: 300}
	sync(1_750_000, Ask{Epoch: 4, Rate: 100, LastRate: 100, Want: 80, Horizon: 2, Upto: -1, Carry: 900},
		Grant{At: 1_750_000, Epoch: 4, Instances: 2, Share: 333_333, Free: 1_900_000, Lots: []Lot{{19, 27, 19}}, Upto: 19, Carry: 566})
}

// Shares are exact while the product stays below 2^53, and within a millionth beyond.
func TestPortionsStayBelow2To53(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Int64Range(0, MaxLease).Draw(t, "x")
		sum := rapid.Int64Range(1, maxHolders*10*MaxLease).Draw(t, "sum")
		rate := rapid.Int64Range(0, min(sum, 10*MaxLease)).Draw(t, "rate")
		exact := new(big.Int).Div(new(big.Int).Mul(big.NewInt(x), big.NewInt(rate)), big.NewInt(sum)).Int64()
		got := portion(x, rate, sum)
		if d := exact - got; d < 0 || d > x/400_000+1 || x*rate/max(1, rate) == x && rate > 0 && x <= MaxInt/rate && d != 0 {
			t.Fatalf("%d of %d: %d, exactly %d", rate, sum, got, exact)
		}
		thousand := new(big.Int).Div(new(big.Int).Mul(big.NewInt(1000*x), big.NewInt(rate)), big.NewInt(sum)).Int64()
		if d := thousand - thousandths(x, rate, sum); d < 0 || d > x/400+1000 {
			t.Fatalf("thousandths of %d of %d: off by %d of %d", rate, sum, d, thousand)
		}
		if m := millionths(rate, sum); m < 0 || m > 1_000_000 {
			t.Fatalf("%d of %d is %d millionths", rate, sum, m)
		}
	})
}

func BenchmarkSync(b *testing.B) {
	b.Run("fixed", func(b *testing.B) {
		l, r := Lease{Count: 500, Per: 1_000_000, Interval: 200_000}, FixedLease{}
		for i := range int64(b.N) {
			l.SyncFixed(&r, Store(200_000*i), &Ask{Epoch: i / 2, Rate: 500, LastRate: 500, Window: i / 5, Want: 100, WantNext: 50})
		}
	})
	b.Run("rolling", func(b *testing.B) {
		l, r := Lease{Count: 500, Per: 1_000_000, Interval: 200_000, Width: 3907, Buckets: 256}, RollingLease{}
		for i := range int64(b.N) {
			j := 200_000 * i / 3907
			l.SyncRolling(&r, Store(200_000*i), &Ask{Epoch: i / 2, Rate: 500, LastRate: 500, Want: 100, Base: 20, Horizon: 60, Upto: j,
				Settle: []Amount{{j - 10, 50}}, Used: []Amount{{j - 20, 25}, {j - 30, 25}}})
		}
	})
}
