package algo_test

import (
	"testing"

	"github.com/escapement-io/escapement/algo"
)

// Values that were once wrong, each found by TestModel.

const (
	ms   = algo.Span(1000)
	sec  = 1000 * ms
	hour = 3600 * sec
	day  = 24 * hour
	year = 365 * day
)

// epoch is an instant of this century, on every grid.
const epoch algo.Store = 1_796_057_748_000_000

func compile(t testing.TB, q algo.Params) *algo.Plan {
	t.Helper()
	p, err := algo.Compile(q)
	if err != nil {
		t.Fatalf("Compile(%+v): %v", q, err)
	}
	return &p
}

func fresh(p *algo.Plan) *algo.State { return &algo.State{Ring: ring(p)} }

func TestChargeWhileTheClockIsBack(t *testing.T) {
	for _, q := range []algo.Params{
		{Algorithm: algo.FixedWindow, Count: 10, Per: sec},
		{Algorithm: algo.FixedWindow, Count: 10, Per: sec, FirstUse: true},
		{Algorithm: algo.SlidingWindow, Count: 10, Per: sec},
		{Algorithm: algo.RollingWindow, Count: 10, Per: sec},
		{Algorithm: algo.TokenBucket, Count: 10, Per: sec},
		{Algorithm: algo.GCRA, Count: 10, Per: sec},
	} {
		p := compile(t, q)
		for _, stamp := range []algo.Store{0, epoch} {
			s := fresh(p)
			p.Take(s, epoch, 1)
			v := p.Charge(s, epoch-algo.Store(hour), 3, stamp)
			if v.Units() != 3 || v.Remaining() != 6 {
				t.Errorf("%v stamp %d: recorded %d, remaining %d; want 3, 6", q.Algorithm, stamp, v.Units(), v.Remaining())
			}
		}
	}
}

func TestWaitsBeyondTheLastInstantAreNever(t *testing.T) {
	// One a year on a grid of a second: the whole burst takes 285 million years.
	p := compile(t, algo.Params{Algorithm: algo.TokenBucket, Count: 1, Per: year, Burst: 285_000_000})
	s := fresh(p)
	v := p.Take(s, epoch, p.Capacity())
	if !v.Admitted || v.ResetAfter() != algo.Never {
		t.Errorf("take of everything: admitted %v, reset after %d; want true, Never", v.Admitted, v.ResetAfter())
	}
	if p.Fresh(s, epoch) {
		t.Error("an empty bucket is fresh")
	}
	if v = p.Reserve(s, epoch, p.Capacity(), algo.Never); v.Admitted || v.RetryAfter() != algo.Never {
		t.Errorf("reservation: admitted %v, retry after %d; want false, Never", v.Admitted, v.RetryAfter())
	}
	if v = p.Reserve(s, epoch, 100, algo.Never); !v.Admitted || v.Delay() != 100*year {
		t.Errorf("reservation for a century: admitted %v, delay %d; want true, %d", v.Admitted, v.Delay(), 100*year)
	}
}

func TestRefusedReservationTellsWhenItFits(t *testing.T) {
	p := compile(t, algo.Params{Algorithm: algo.TokenBucket, Count: 1, Per: sec, Burst: 10})
	s := fresh(p)
	p.Take(s, epoch, 10)
	v := p.Reserve(s, epoch, 5, 2*sec)
	if v.Admitted || v.RetryAfter() != 3*sec {
		t.Fatalf("admitted %v, retry after %d; want false, %d", v.Admitted, v.RetryAfter(), 3*sec)
	}
	if v = p.Reserve(s, epoch+algo.Store(3*sec), 5, 2*sec); !v.Admitted || v.Delay() != 2*sec {
		t.Errorf("then admitted %v, delay %d; want true, %d", v.Admitted, v.Delay(), 2*sec)
	}
}

func TestRefundOfAStampedCharge(t *testing.T) {
	for _, q := range []algo.Params{
		{Algorithm: algo.SlidingWindow, Count: 10, Per: sec},
		{Algorithm: algo.RollingWindow, Count: 10, Per: sec},
		{Algorithm: algo.RollingWindow, Count: 1000, Per: sec},
	} {
		p := compile(t, q)
		s := fresh(p)
		v := p.Charge(s, epoch+200_000, 4, epoch-200_000)
		if got, want := v.Receipt(), (algo.Receipt{At: epoch - 200_000, Units: 4}); got != want {
			t.Errorf("%v: receipt %+v, want %+v", q.Algorithm, got, want)
		}
		if v.Delay() != 0 {
			t.Errorf("%v: delay %d, want 0", q.Algorithm, v.Delay())
		}
		if v = p.Refund(s, epoch+300_000, v.Receipt()); v.Units() != 4 || v.Remaining() != q.Count {
			t.Errorf("%v: gave back %d, remaining %d; want 4, %d", q.Algorithm, v.Units(), v.Remaining(), q.Count)
		}
	}
}

func TestRingNearInstantZero(t *testing.T) {
	p := compile(t, algo.Params{Algorithm: algo.RollingWindow, Count: 100, Per: 10 * sec})
	s := fresh(p)
	for i := range algo.Store(10) {
		p.Take(s, 20_000_000+i*1_000_000, 10)
	}
	if !p.Rebase(s, 500_000) {
		t.Fatal("not moved back")
	}
	v := p.Take(s, 500_000, 1)
	if v.Admitted || v.RetryAfter() <= 0 || v.Remaining() != 0 {
		t.Fatalf("admitted %v, remaining %d, retry after %d; want a refusal that ends", v.Admitted, v.Remaining(), v.RetryAfter())
	}
	at := 500_000 + algo.Store(v.RetryAfter())
	if p.Peek(s, at-1, 1).Admitted || !p.Peek(s, at, 1).Admitted {
		t.Errorf("retry after %d is not exact", v.RetryAfter())
	}
}

func TestRingRefundOfAFutureReceipt(t *testing.T) {
	p := compile(t, algo.Params{Algorithm: algo.RollingWindow, Count: 100, Per: 128 * sec})
	s := fresh(p)
	p.Take(s, epoch, 100)
	// 129 buckets of a second on: the same place in the ring.
	v := p.Refund(s, epoch, algo.Receipt{At: epoch + algo.Store(129*sec), Units: 100})
	if v.Units() != 0 || v.Remaining() != 0 {
		t.Errorf("gave back %d, remaining %d; want 0, 0", v.Units(), v.Remaining())
	}
}

func TestFirstUseWindowGivenBack(t *testing.T) {
	p := compile(t, algo.Params{Algorithm: algo.FixedWindow, Count: 2, Per: 10 * sec, FirstUse: true})
	s := fresh(p)
	v := p.Take(s, epoch, 2)
	p.Refund(s, epoch, v.Receipt())
	if !p.Fresh(s, epoch) {
		t.Error("a window in which nothing is taken is not fresh")
	}
	later := epoch + algo.Store(9*sec)
	if v = p.Take(s, later, 1); v.ResetAfter() != 10*sec {
		t.Errorf("the next use opens a window that ends after %d, want %d", v.ResetAfter(), 10*sec)
	}
}

func TestFirstUseChargeOpensTheWindowOfItsStamp(t *testing.T) {
	p := compile(t, algo.Params{Algorithm: algo.FixedWindow, Count: 10, Per: 10 * sec, FirstUse: true})
	s := fresh(p)
	seen := p.Peek(s, epoch, 1)
	v := p.Charge(s, epoch+algo.Store(4*sec), 3, seen.Now())
	if v.Units() != 3 || v.Remaining() != 7 || v.ResetAfter() != 6*sec {
		t.Errorf("recorded %d, remaining %d, reset after %d; want 3, 7, %d", v.Units(), v.Remaining(), v.ResetAfter(), 6*sec)
	}
	if v = p.Charge(fresh(p), epoch+algo.Store(10*sec), 3, epoch); v.Units() != 0 {
		t.Errorf("a window that is closed: recorded %d, want 0", v.Units())
	}
}

func TestPacingTakesItsCapacity(t *testing.T) {
	// A queue of ten years at ten a microsecond is above half of 2^53.
	p := compile(t, algo.Params{Algorithm: algo.Pacing, Count: 10_000_000, Per: sec, MaxDelay: 10 * year})
	s := fresh(p)
	v := p.TakeUpTo(s, epoch, algo.MaxInt)
	if !v.Admitted || v.Units() != p.Capacity() || v.ResetAfter() <= 0 {
		t.Errorf("took %d of %d, reset after %d", v.Units(), p.Capacity(), v.ResetAfter())
	}
	if _, err := algo.Compile(algo.Params{Algorithm: algo.Pacing, Count: 10_000_000, Per: sec, MaxDelay: 100 * year}); err == nil {
		t.Error("a queue that no integer counts compiles")
	}
}

func TestWithCountKeepsTheGrid(t *testing.T) {
	p := compile(t, algo.Params{Algorithm: algo.SlidingWindow, Count: 10, Per: hour})
	if v, err := p.WithCount(1_000_000); err != nil || v.Tick() != p.Tick() || v.Capacity() != 1_000_000 {
		t.Errorf("tick %d, capacity %d, %v", v.Tick(), v.Capacity(), err)
	}
	// 10 million an hour compiles alone, on a coarser grid; the counters it would leave
	// behind do not fit the finer one.
	if _, err := p.WithCount(10_000_000); err == nil {
		t.Error("a count that the grid cannot weigh is accepted")
	}
	for _, q := range []algo.Params{{Algorithm: algo.TokenBucket, Count: 1, Per: sec}, {Algorithm: algo.RollingWindow, Count: 1, Per: sec}} {
		if _, err := compile(t, q).WithCount(2); err == nil {
			t.Errorf("%v has variants", q.Algorithm)
		}
	}
}

func TestRebaseSlack(t *testing.T) {
	for _, q := range []algo.Params{
		{Algorithm: algo.TokenBucket, Count: 1, Per: sec},
		{Algorithm: algo.FixedWindow, Count: 1, Per: sec},
		{Algorithm: algo.FixedWindow, Count: 1, Per: sec, FirstUse: true},
		{Algorithm: algo.SlidingWindow, Count: 1, Per: sec},
		{Algorithm: algo.RollingWindow, Count: 1, Per: sec},
		{Algorithm: algo.RollingWindow, Count: 1000, Per: 128 * sec},
		{Algorithm: algo.Pacing, Count: 1, Per: sec},
	} {
		p := compile(t, q)
		s := fresh(p)
		p.Take(s, epoch, p.Capacity())
		if p.Rebase(s, epoch-2_000_000) {
			t.Errorf("%v: moved by two seconds", q.Algorithm)
		}
		if !p.Rebase(s, epoch-2_000_001) {
			t.Errorf("%v: not moved by more than two seconds", q.Algorithm)
		}
		// What was taken still counts on the other side of the step.
		if v := p.Reserve(s, epoch-2_000_001, 1, 0); v.Admitted || v.RetryAfter() > 130*sec {
			t.Errorf("%v: admitted %v, retry after %d", q.Algorithm, v.Admitted, v.RetryAfter())
		}
	}
}

func TestAdoptKeepsTheLevel(t *testing.T) {
	from := compile(t, algo.Params{Algorithm: algo.TokenBucket, Count: 1, Per: sec, Burst: 20})
	drained := epoch + 10_500_000
	for _, c := range []struct {
		why       string
		q         algo.Params
		remaining int64
		reset     algo.Span
	}{
		{"10.5 of 20 in a bucket of 10 is full", algo.Params{Count: 1, Per: sec, Burst: 10}, 10, 0},
		{"10.5 of 20 in one of 11 lacks a half", algo.Params{Count: 1, Per: sec, Burst: 11}, 10, 500 * ms},
		{"and at another rate half of its interval", algo.Params{Count: 1, Per: 60 * sec, Burst: 11}, 10, 30 * sec},
		{"more capacity admits no more at once", algo.Params{Count: 1, Per: sec, Burst: 100}, 10, 89_500 * ms},
	} {
		for _, a := range buckets {
			c.q.Algorithm = a
			p := compile(t, c.q)
			s := fresh(from)
			from.Take(s, epoch, 20)
			got := p.Adopt(from, *s, drained, nil)
			v := p.Peek(&got, drained, 0)
			if got.A < 0 || v.Remaining() != c.remaining || v.ResetAfter() != c.reset {
				t.Errorf("%v: %s: remaining %d, reset after %d, want %d, %d; state %+v", a, c.why, v.Remaining(), v.ResetAfter(), c.remaining, c.reset, got)
			}
		}
	}
	// Debt stays debt, in whole units.
	p := compile(t, algo.Params{Algorithm: algo.TokenBucket, Count: 10, Per: sec, Burst: 10})
	s := fresh(from)
	from.Charge(s, epoch, 25, 0)
	got := p.Adopt(from, *s, epoch, nil)
	if v := p.Peek(&got, epoch, 1); v.Admitted || v.RetryAfter() != 600*ms {
		t.Errorf("debt of 5: admitted %v, retry after %d; want false, %d", v.Admitted, v.RetryAfter(), 600*ms)
	}
}
