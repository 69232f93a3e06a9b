package retry

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/escapement-io/escapement/algo"
)

func complete(t testing.TB, r Rules) Rules {
	t.Helper()
	r, err := r.Complete()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const (
	lowest  = uint64(0)
	half    = uint64(1) << 63
	highest = uint64(math.MaxUint64)
)

func told(d time.Duration) Answer {
	return Answer{Kind: Refused, Told: true, Wait: d}
}

func TestDecide(t *testing.T) {
	get := Attempt{Number: 1, Idempotent: true, Repeatable: true, Left: Forever}
	with := func(a Attempt, f func(*Attempt)) Attempt { f(&a); return a }
	post := with(get, func(a *Attempt) { a.Idempotent = false })
	stream := with(get, func(a *Attempt) { a.Repeatable = false })
	left := func(d, took time.Duration) Attempt {
		return with(get, func(a *Attempt) { a.Left, a.Took = d, took })
	}
	nth := func(n int) Attempt { return with(get, func(a *Attempt) { a.Number = n }) }
	failed, unsent := Answer{Kind: Doubtful}, Answer{Kind: Unsent}

	for _, tt := range []struct {
		name  string
		rules Rules
		a     Attempt
		ans   Answer
		draw  uint64
		want  Verdict
	}{
		{"an answer is final", Rules{}, get, Answer{}, half, Verdict{Reason: Final}},
		{"told one second", Rules{}, get, told(time.Second), lowest, Verdict{true, time.Second, Told}},
		{"spread by a second", Rules{}, get, told(time.Second), highest, Verdict{true, 2 * time.Second, Told}},
		{"spread by a tenth", Rules{}, get, told(40 * time.Second), highest, Verdict{true, 44 * time.Second, Told}},
		{"spread in the middle", Rules{}, get, told(40 * time.Second), half, Verdict{true, 42 * time.Second, Told}},
		{"spread by the backoff", Rules{Backoff: 8 * time.Second}, get, told(time.Second), highest, Verdict{true, 9 * time.Second, Told}},
		{"spread turned off", Rules{Spread: -1}, get, told(40 * time.Second), highest, Verdict{true, 40 * time.Second, Told}},
		{"told nothing at all to wait", Rules{}, get, told(0), half, Verdict{true, time.Second / 2, Told}},
		{"told 60 s, the most", Rules{}, get, told(time.Minute), highest, Verdict{true, time.Minute, Told}},
		{"told more than the most", Rules{}, get, told(time.Minute + 1), lowest, Verdict{Reason: TooLong}},
		{"told for ever", Rules{}, get, told(math.MaxInt64), highest, Verdict{Reason: TooLong}},
		{"a refused post", Rules{}, post, told(time.Second), lowest, Verdict{true, time.Second, Told}},
		{"a post that may have been done", Rules{}, post, failed, lowest, Verdict{Reason: Unsafe}},
		{"a post that may have been done, told", Rules{}, post, Answer{Doubtful, true, 1}, lowest, Verdict{Reason: Unsafe}},
		{"a post that never left", Rules{}, post, unsent, highest, Verdict{true, 100 * time.Millisecond, Backoff}},
		{"a stream that never left", Rules{}, stream, unsent, lowest, Verdict{Reason: Body}},
		{"a refused stream", Rules{}, stream, told(time.Second), lowest, Verdict{Reason: Body}},
		{"full jitter: nothing", Rules{}, get, failed, lowest, Verdict{true, 0, Backoff}},
		{"full jitter: half", Rules{}, get, failed, half, Verdict{true, 50 * time.Millisecond, Backoff}},
		{"second attempt", Rules{}, nth(2), failed, highest, Verdict{true, 200 * time.Millisecond, Backoff}},
		{"third attempt", Rules{}, nth(3), failed, highest, Verdict{true, 400 * time.Millisecond, Backoff}},
		{"fourth is the last", Rules{}, nth(4), failed, highest, Verdict{Reason: Attempts}},
		{"fourth of told", Rules{}, nth(4), told(1), highest, Verdict{Reason: Attempts}},
		{"doubling ends", Rules{MaxAttempts: 100}, nth(99), failed, highest, Verdict{true, 10 * time.Second, Backoff}},
		{"no retries", Rules{MaxAttempts: 1}, get, told(1), lowest, Verdict{Reason: Attempts}},
		{"the deadline is before", Rules{}, left(time.Second, 0), told(time.Second), lowest, Verdict{Reason: Deadline}},
		{"the deadline is just after", Rules{}, left(time.Second+reserve, 0), told(time.Second), lowest, Verdict{Reason: Deadline}},
		{"the deadline leaves a nanosecond", Rules{}, left(time.Second+reserve+1, 0), told(time.Second), highest, Verdict{true, time.Second + 1, Told}},
		{"no time for another attempt", Rules{}, left(1400*time.Millisecond, 400*time.Millisecond), told(time.Second), lowest, Verdict{Reason: Deadline}},
		{"the spread ends where the attempt must begin", Rules{}, left(1600*time.Millisecond, 400*time.Millisecond), told(time.Second), highest, Verdict{true, 1200 * time.Millisecond, Told}},
		{"backoff ends there too", Rules{}, left(60*time.Millisecond, 20*time.Millisecond), failed, highest, Verdict{true, 40 * time.Millisecond, Backoff}},
		{"the deadline has passed", Rules{}, left(-time.Second, 0), failed, lowest, Verdict{Reason: Deadline}},
		{"never beyond the most", Rules{MaxWait: 50 * time.Millisecond}, get, failed, highest, Verdict{true, 50 * time.Millisecond, Backoff}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := complete(t, tt.rules)
			before := r.Budget.Open(0)
			got, after := Decide(&r, tt.a, tt.ans, before, 0, tt.draw)
			if got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
			paid := before.saved - after.saved
			if want := map[bool]int64{true: r.Budget.retry()}[got.Retry]; paid != want {
				t.Errorf("paid %d, want %d", paid, want)
			}
		})
	}
}

func TestBudgetSpent(t *testing.T) {
	r := complete(t, Rules{Budget: Budget{Burst: 1}})
	acc := r.Budget.Open(0)
	get := Attempt{Number: 1, Idempotent: true, Repeatable: true, Left: Forever}
	v, acc := Decide(&r, get, told(1), acc, 0, 0)
	if !v.Retry {
		t.Fatalf("%+v", v)
	}
	if v, acc = Decide(&r, get, told(1), acc, algo.Mono(time.Second)-1, 0); v != (Verdict{Reason: Spent}) {
		t.Errorf("a nanosecond early: %+v", v)
	}
	if v, _ = Decide(&r, get, told(1), acc, algo.Mono(time.Second), 0); !v.Retry {
		t.Errorf("after the floor's second: %+v", v)
	}
}

// Whatever is asked, a wait is at least what was told, ends before the deadline and is
// at most what is allowed.
func TestWaitsHaveBounds(t *testing.T) {
	seed := seeded(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	retries := 0
	for range 200_000 {
		r := complete(t, Rules{
			MaxAttempts: 1 + rnd.IntN(100),
			Backoff:     1000 + time.Duration(rnd.Int64N(int64(10*time.Second))),
			MaxWait:     time.Millisecond + time.Duration(rnd.Int64N(int64(time.Minute))),
			Spread:      rnd.IntN(102) - 1,
		})
		a := Attempt{
			Number: 1 + rnd.IntN(100), Idempotent: rnd.IntN(2) == 0, Repeatable: rnd.IntN(4) > 0,
			Left: time.Duration(rnd.Int64() >> rnd.IntN(40)), Took: time.Duration(rnd.Int64N(int64(2 * time.Second))),
		}
		ans := Answer{Kind: Kind(rnd.IntN(4)), Told: rnd.IntN(2) == 0, Wait: time.Duration(rnd.Int64() >> rnd.IntN(63))}
		v, _ := Decide(&r, a, ans, r.Budget.Open(0), 0, rnd.Uint64())
		if !v.Retry {
			continue
		}
		retries++
		if ans.Told && v.Wait < ans.Wait || v.Wait < 0 || v.Wait > r.MaxWait || v.Wait >= a.Left-a.Took ||
			!a.Repeatable || ans.Kind == Done || ans.Kind == Doubtful && !a.Idempotent || a.Number >= r.MaxAttempts {
			t.Fatalf("seed %d: %+v %+v %+v: %+v", seed, r, a, ans, v)
		}
	}
	if retries < 1000 {
		t.Errorf("only %d retries", retries)
	}
}

func TestJitterIsUniform(t *testing.T) {
	r := complete(t, Rules{})
	rnd := rand.New(rand.NewPCG(1, 2))
	var bins [10]int
	const n = 100_000
	for range n {
		v, _ := Decide(&r, Attempt{Number: 1, Idempotent: true, Repeatable: true, Left: Forever}, Answer{Kind: Doubtful}, r.Budget.Open(0), 0, rnd.Uint64())
		bins[min(9, v.Wait/(10*time.Millisecond))]++
	}
	for i, got := range bins {
		if got < n/10*95/100 || got > n/10*105/100 {
			t.Errorf("%d of %d waits in tenth %d", got, n, i)
		}
	}
}

func TestComplete(t *testing.T) {
	_, err := Rules{
		MaxAttempts: -1, Backoff: time.Second, MaxBackoff: time.Millisecond, MaxWait: 48 * time.Hour, Spread: 101,
		MaxHosts: 1 << 20, Budget: Budget{Percent: 101, Floor: 2 * time.Hour, Burst: -1},
	}.Complete()
	want := `MaxAttempts is -1: use 1 to 100, or 0 for 4
MaxWait is 48h0m0s: use 1ms to 24h0m0s, or 0 for 1m0s
Spread is 101: use -1 to 100, or 0 for 10
MaxHosts is 1048576: use 1 to 4096, or 0 for 256
Budget.Percent is 101: use -1 to 100, or 0 for 10
Budget.Floor is 2h0m0s: use -1ns to 1h0m0s, or 0 for 1s
Budget.Burst is -1: use 1 to 10000, or 0 for 10
MaxBackoff is 1ms, below Backoff of 1s: raise it`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if r := complete(t, Rules{Backoff: time.Minute}); r.MaxBackoff != time.Minute {
		t.Errorf("MaxBackoff %v", r.MaxBackoff)
	}
}
