package algo_test

import (
	"fmt"
	"testing"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/algo/algomodel"
	"github.com/escapement-io/escapement/internal/naive"
)

// bucketOf is the same limit here.
type bucketOf struct {
	plan  *algo.Plan
	state algo.State
}

func newBucket(t *testing.T, count int64, per algo.Span, burst int64) *bucketOf {
	return &bucketOf{plan: compile(t, algo.Params{Algorithm: algo.TokenBucket, Count: count, Per: per, Burst: burst})}
}

func (b *bucketOf) take(nowMs, cost int64) bool {
	v := b.plan.Take(&b.state, algo.Store(nowMs)*1000, cost)
	return v.Admitted
}

const start = int64(epoch) / 1000 // milliseconds

// poll asks for one unit every so often until the end and counts what is admitted.
func poll(every, end int64, take func(nowMs int64) bool) (admitted int) {
	for at := every; at <= end; at += every {
		if take(start + at) {
			admitted++
		}
	}
	return admitted
}

// Each test shows an input on which a token bucket as it is often written (naive.Bucket)
// fails, beside the same input here.

// TestSlowPolling: a client that polls a slow limit must get what the limit says. Refills
// smaller than the rounding step are lost or doubled by a rounding bucket.
func TestSlowPolling(t *testing.T) {
	const hourMs, dayMs = 3_600_000, 86_400_000
	for _, c := range []struct {
		count      int64
		per        algo.Span
		every, end int64 // milliseconds
		rounding   int
		exact      int
	}{
		{60, hour, 10, hourMs, 1, 60},
		{60, hour, 20, hourMs, 1, 60},
		{60, hour, 25, hourMs, 1, 60},
		{60, hour, 31, hourMs, 117, 60},
		{60, hour, 35, hourMs, 103, 60},
		{60, hour, 45, hourMs, 80, 60},
		{60, hour, 60, hourMs, 60, 60},
		{60, hour, 100, hourMs, 72, 60},
		{5, hour, 300, 4 * hourMs, 0, 20},
		{5, hour, 350, 4 * hourMs, 0, 19},
		{5, hour, 400, 4 * hourMs, 35, 20},
		{5, hour, 500, 4 * hourMs, 28, 20},
		{5, hour, 900, 4 * hourMs, 16, 20},
		{5, hour, 1100, 4 * hourMs, 26, 19},
		{10, 60 * sec, 2, 60_000, 0, 10},
		{10, 60 * sec, 4, 60_000, 14, 10},
		{1, day, 40_000, 10 * dayMs, 0, 10},
		{1, day, 45_000, 10 * dayMs, 19, 10},
	} {
		t.Run(fmt.Sprintf("%d per %dms every %dms", c.count, c.per/ms, c.every), func(t *testing.T) {
			capacity := min(c.count, 10)
			if c.count == 60 {
				capacity = 1
			}
			n := naive.Rounding(float64(capacity), float64(c.count)/(float64(c.per)/1e6))
			b := newBucket(t, c.count, c.per, capacity)
			exact := algomodel.New(algo.Params{Algorithm: algo.TokenBucket, Count: c.count, Per: c.per, Burst: capacity}, b.plan.Tick())
			if capacity > 1 || c.per == day {
				for range capacity {
					n.Ask(start, 1)
					b.take(start, 1)
					exact.Do(algomodel.Op{Kind: algomodel.Take, Now: epoch, Units: 1})
				}
			}
			if got := poll(c.every, c.end, func(now int64) bool { ok, _ := n.Ask(now, 1); return ok }); got != c.rounding {
				t.Errorf("the rounding bucket admits %d, it used to be %d", got, c.rounding)
			}
			if got := poll(c.every, c.end, func(now int64) bool { return b.take(now, 1) }); got != c.exact {
				t.Errorf("admitted %d, want %d", got, c.exact)
			}
			if c.end/c.every > 50_000 {
				return // rational numbers are slow
			}
			if got := poll(c.every, c.end, func(now int64) bool {
				return exact.Do(algomodel.Op{Kind: algomodel.Take, Now: algo.Store(now) * 1000, Units: 1}).Admitted
			}); got != c.exact {
				t.Errorf("in rational numbers %d, want %d", got, c.exact)
			}
		})
	}
}

// TestSmallCosts: costs below the rounding step are free for ever, or cost too much. Here
// the smallest cost is the unit.
func TestSmallCosts(t *testing.T) {
	for _, c := range []struct {
		cost            int64 // ten-thousandths
		rounding, exact int
	}{{4, 30_000, 25_000}, {6, 10_000, 16_666}} {
		n, b := naive.Rounding(10, 1), newBucket(t, 10_000, sec, 100_000)
		var loose, exact int
		for range 30_000 {
			if ok, _ := n.Ask(start, float64(c.cost)/10_000); ok {
				loose++
			}
			if b.take(start, c.cost) {
				exact++
			}
		}
		if loose != c.rounding || exact != c.exact {
			t.Errorf("cost %d: rounding %d, exact %d; want %d, %d", c.cost, loose, exact, c.rounding, c.exact)
		}
	}
}

// TestBackwardStep: a call dated a minute back, and then time as it was. A bucket that
// writes the older instant mints the minute.
func TestBackwardStep(t *testing.T) {
	n, b := naive.Rounding(60, 1), newBucket(t, 1, sec, 60)
	for range 60 {
		n.Ask(start, 1)
		b.take(start, 1)
	}
	n.Ask(start-60_000, 1)
	b.take(start-60_000, 1)
	var minted, ours int
	for range 100 {
		if ok, _ := n.Ask(start+20, 1); ok {
			minted++
		}
		if b.take(start+20, 1) {
			ours++
		}
	}
	if minted != 60 || ours != 0 {
		t.Errorf("minted %d, here %d; want 60, 0", minted, ours)
	}
}

// TestClocksThatDisagree: several callers, one of whose clocks is 900 ms ahead, ask one
// bucket with their own time. Dating state by callers' clocks mints the difference at
// each change of hands; here it is seen once.
func TestClocksThatDisagree(t *testing.T) {
	for _, c := range []struct {
		callers, every int64
		minted         int
	}{{2, 100, 360}, {12, 10, 564}} {
		n, b := naive.Rounding(60, 1), newBucket(t, 1, sec, 60)
		var minted, ours int
		for i := range 60_000 / c.every {
			now := start + i*c.every
			if i%c.callers == c.callers-1 {
				now += 900
			}
			if ok, _ := n.Ask(now, 1); ok {
				minted++
			}
			if b.take(now, 1) {
				ours++
			}
		}
		if minted < c.minted*9/10 || ours != 120 {
			t.Errorf("%d callers: minted %d, here %d; want about %d, 120", c.callers, minted, ours, c.minted)
		}
	}
}

// TestNeverIsAnAnswer: a cost above the capacity is told to come back in a second, for
// ever.
func TestNeverIsAnAnswer(t *testing.T) {
	n, b := naive.Rounding(10, 1), newBucket(t, 1, sec, 10)
	for i := range int64(5) {
		if ok, retry := n.Ask(start+i*1000, 11); ok || retry != 1000 {
			t.Errorf("rounding: admitted %v, retry %v", ok, retry)
		}
		v := b.plan.Take(&b.state, epoch+algo.Store(i)*1_000_000, 11)
		if v.Admitted || v.RetryAfter() != algo.Never || v.Remaining() != 10 {
			t.Errorf("admitted %v, retry after %d, remaining %d; want false, Never, 10", v.Admitted, v.RetryAfter(), v.Remaining())
		}
	}
}

// TestTenTenths: ten times a tenth is 0.9999999999999999 in floats.
func TestTenTenths(t *testing.T) {
	n, b := &naive.Bucket{Capacity: 1, PerSecond: 10}, newBucket(t, 10, sec, 1)
	n.Ask(start, 1)
	b.take(start, 1)
	var late, exact int64
	for at := int64(10); at <= 200; at += 10 {
		if ok, _ := n.Ask(start+at, 1); ok && late == 0 {
			late = at
		}
		if b.take(start+at, 1) && exact == 0 {
			exact = at
		}
	}
	if late != 110 || exact != 100 {
		t.Errorf("first unit after %d in floats, %d here; want 110, 100", late, exact)
	}
}

// TestLargeCapacity: above 2^53 thousandths, rounding to three decimals moves whole
// tokens; above 2^53 tokens, taking one changes nothing. Here that does not compile.
func TestLargeCapacity(t *testing.T) {
	n := naive.Rounding(1<<53, 1)
	for range 1000 {
		n.Ask(start, 1)
	}
	if gone := 1<<53 - n.Tokens; gone == 1000 {
		t.Error("the rounding bucket counts exactly")
	}
	n = naive.Rounding(1e17, 1)
	if n.Ask(start, 1); n.Tokens != 1e17 {
		t.Error("a float counts singles beyond 2^53")
	}
	b := newBucket(t, 1_000_000, sec, algo.MaxInt-1)
	for range 1000 {
		b.take(start, 1)
	}
	if v := b.plan.Peek(&b.state, epoch, 0); v.Remaining() != algo.MaxInt-1001 {
		t.Errorf("remaining %d, want %d", v.Remaining(), algo.MaxInt-1001)
	}
	for _, burst := range []int64{algo.MaxInt, 1 << 53, 1e17} {
		if _, err := algo.Compile(algo.Params{Algorithm: algo.TokenBucket, Count: 1_000_000, Per: sec, Burst: burst}); err == nil {
			t.Errorf("a burst of %d compiles", burst)
		}
	}
}

// The four assertions a published recipe makes of any refill.

func TestRefillOfAMillisecond(t *testing.T) {
	b := newBucket(t, 5, sec, 5)
	v := b.plan.Take(&b.state, epoch, 5)
	if v.ResetAfter() != sec {
		t.Fatalf("an empty bucket is full after %d, want %d", v.ResetAfter(), sec)
	}
	// One millisecond across a boundary of seconds is 0.005 units, not 5.
	v = b.plan.Peek(&b.state, epoch+1000, 1)
	if v.Admitted || v.Remaining() != 0 || v.ResetAfter() != sec-ms || v.RetryAfter() != 200*ms-ms {
		t.Errorf("admitted %v, remaining %d, reset after %d, retry after %d", v.Admitted, v.Remaining(), v.ResetAfter(), v.RetryAfter())
	}
}

func TestLongIdleIsExactlyCapacity(t *testing.T) {
	for _, idle := range []algo.Span{hour, 50 * year} {
		b := newBucket(t, 5, sec, 5)
		b.plan.Take(&b.state, epoch, 5)
		later := epoch + algo.Store(idle)
		if v := b.plan.Take(&b.state, later, 6); v.Admitted {
			t.Error("six of five are admitted")
		}
		if v := b.plan.Take(&b.state, later, 5); !v.Admitted || v.Remaining() != 0 || v.ResetAfter() != sec {
			t.Errorf("five: admitted %v, remaining %d, reset after %d", v.Admitted, v.Remaining(), v.ResetAfter())
		}
	}
}

func TestBackwardStepChangesNothing(t *testing.T) {
	b := newBucket(t, 5, sec, 5)
	b.plan.Take(&b.state, epoch, 5)
	half := epoch + 500_000 // 2.5 units
	b.plan.Take(&b.state, half, 0)
	before := b.plan.Peek(&b.state, half, 0)
	b.plan.Take(&b.state, half, 2)
	kept := copyState(b.state)
	v := b.plan.Take(&b.state, half-5_000_000, 1)
	if before.Remaining() != 2 || v.Admitted || v.Remaining() != 0 || v.RetryAfter() != 100*ms || !same(b.state, kept) {
		t.Errorf("remaining %d, then admitted %v, retry after %d, state %v, before %v", before.Remaining(), v.Admitted, v.RetryAfter(), b.state, kept)
	}
}

// TestMillionOperations: a request every 7 ms for 7000 s at 5 a second admits 5 from
// rest and floor(5 * 6999.993) more, to the unit.
func TestMillionOperations(t *testing.T) {
	for _, a := range buckets {
		p := compile(t, algo.Params{Algorithm: a, Count: 5, Per: sec})
		var s algo.State
		admitted := 0
		for i := algo.Store(1); i <= 1_000_000; i++ {
			if v := p.Take(&s, epoch+i*7000, 1); v.Admitted {
				admitted++
			}
		}
		if want := 5 + 34_999; admitted != want {
			t.Errorf("%v admitted %d, want %d", a, admitted, want)
		}
	}
}
