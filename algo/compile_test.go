package algo_test

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/algo/algomodel"
)

// TestHardRatesCompile: every rate from one a year to ten million a second is exact, with
// a burst of one and with the largest that fits.
func TestHardRatesCompile(t *testing.T) {
	for _, c := range []struct {
		name  string
		count int64
		per   algo.Span
		full  bool // with burst = count too
	}{
		{"1 a year", 1, year, true},
		{"12 a year", 12, year, true},
		{"999983 a year", 999_983, year, true},
		{"9999991 a month", 9_999_991, 30 * day, true},
		{"10^9+7 a day", 1_000_000_007, day, true},
		{"10^9 a day", 1_000_000_000, day, true},
		{"999983 a day", 999_983, day, true},
		{"5 an hour", 5, hour, true},
		{"7 a minute", 7, 60 * sec, true},
		{"9999991 a second", 9_999_991, sec, true},
		{"10^7 a second", 10_000_000, sec, true},
		{"1 a microsecond", 1, 1, true},
		{"10 a microsecond", 10, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, a := range buckets {
				q := algo.Params{Algorithm: a, Count: c.count, Per: c.per, Burst: 1}
				compile(t, q)
				if q.Burst = 0; c.full {
					p := compile(t, q)
					if p.Capacity() != c.count {
						t.Errorf("capacity %d, want %d", p.Capacity(), c.count)
					}
				}
			}
			compile(t, algo.Params{Algorithm: algo.FixedWindow, Count: c.count, Per: c.per})
			compile(t, algo.Params{Algorithm: algo.SlidingWindow, Count: c.count, Per: c.per})
			compile(t, algo.Params{Algorithm: algo.RollingWindow, Count: c.count, Per: c.per})
			compile(t, algo.Params{Algorithm: algo.Pacing, Count: c.count, Per: c.per, MaxDelay: sec})
		})
	}
}

// TestTickIsTheFinestThatFits finds the grid of a bucket again, in big integers.
func TestTickIsTheFinestThatFits(t *testing.T) {
	each(t, 2000, buckets, func(t *testing.T, a algo.Algorithm, seed uint64) {
		q, p := algomodel.RandomLimit(algomodel.Rand(seed), a)
		limit := big.NewInt(algo.MaxInt)
		for _, u := range []int64{1, 10, 100, 1000, 10_000, 100_000, 1_000_000} {
			if int64(q.Per)%u != 0 {
				continue
			}
			// A tick brings Count*u/Per units; in lowest terms n/p.
			r := big.NewRat(q.Count, int64(q.Per)/u)
			need := new(big.Int).Mul(r.Denom(), big.NewInt(p.Capacity()))
			if need.Add(need, r.Num()).Cmp(limit) > 0 {
				continue
			}
			if int64(p.Tick()) != u {
				t.Errorf("%+v: tick %d, want %d", q, p.Tick(), u)
			}
			return
		}
		t.Errorf("%+v compiles, but fits no grid", q)
	})
}

var atMost = regexp.MustCompile(`at most (\d+)`)

// TestRefusalNamesTheLargest: a limit that does not fit is refused with the largest burst
// or count that does: that one compiles, and one more does not.
func TestRefusalNamesTheLargest(t *testing.T) {
	for _, q := range []algo.Params{
		{Algorithm: algo.TokenBucket, Count: 999_983, Per: year, Burst: algo.MaxInt},
		{Algorithm: algo.GCRA, Count: 9_999_991, Per: 30 * day, Burst: 1e15},
		{Algorithm: algo.TokenBucket, Count: 1_000_000_007, Per: day + 1, Burst: 1_000_000},
		{Algorithm: algo.TokenBucket, Count: 999_983, Per: year + 1},
		{Algorithm: algo.SlidingWindow, Count: algo.MaxInt, Per: day},
		{Algorithm: algo.SlidingWindow, Count: 1_000_000, Per: year + 1},
		{Algorithm: algo.RollingWindow, Count: 1 << 33, Per: sec},
	} {
		_, err := algo.Compile(q)
		var le *algo.LimitError
		if !errors.As(err, &le) {
			t.Errorf("%+v: %v, want a refusal", q, err)
			continue
		}
		m := atMost.FindStringSubmatch(le.Hint)
		if m == nil {
			t.Errorf("%+v: %q names no bound", q, le.Hint)
			continue
		}
		bound, _ := strconv.ParseInt(m[1], 10, 64)
		for _, try := range []struct {
			n    int64
			fits bool
		}{{bound, true}, {bound + 1, false}} {
			q := q
			if le.Field == "burst" {
				q.Burst = try.n
			} else {
				q.Count = try.n
			}
			if _, err := algo.Compile(q); (err == nil) != try.fits {
				t.Errorf("%+v (of %q): %v", q, le.Hint, err)
			}
		}
	}
}

// TestEveryProblemHasItsMessage: each bad parameter is named with what is wrong and what
// to do, all of them at once.
func TestEveryProblemHasItsMessage(t *testing.T) {
	cal := &algomodel.Uneven{Short: 1, Long: 2}
	good := algo.Params{Algorithm: algo.FixedWindow, Count: 1, Per: sec}
	seen := map[string]string{}
	for _, c := range []struct {
		name, field string
		with        func(q *algo.Params)
	}{
		{"no algorithm", "algorithm", func(q *algo.Params) { q.Algorithm = 0 }},
		{"unknown algorithm", "algorithm", func(q *algo.Params) { q.Algorithm = 99 }},
		{"count zero", "count", func(q *algo.Params) { q.Count = 0 }},
		{"count negative", "count", func(q *algo.Params) { q.Count = -1 }},
		{"count huge", "count", func(q *algo.Params) { q.Count = algo.MaxInt + 1 }},
		{"no period", "per", func(q *algo.Params) { q.Per = 0 }},
		{"period huge", "per", func(q *algo.Params) { q.Per = algo.Span(algo.MaxInstant) + 1 }},
		{"period beside calendar", "per", func(q *algo.Params) { q.Calendar = cal }},
		{"calendar elsewhere", "align", func(q *algo.Params) { q.Algorithm, q.Per, q.Calendar = algo.TokenBucket, 0, cal }},
		{"two alignments", "align", func(q *algo.Params) { q.Per, q.Calendar, q.FirstUse = 0, cal, true }},
		{"first use elsewhere", "align", func(q *algo.Params) { q.Algorithm, q.FirstUse = algo.SlidingWindow, true }},
		{"burst negative", "burst", func(q *algo.Params) { q.Algorithm, q.Burst = algo.TokenBucket, -1 }},
		{"burst elsewhere", "burst", func(q *algo.Params) { q.Burst = 5 }},
		{"delay negative", "max_delay", func(q *algo.Params) { q.Algorithm, q.MaxDelay = algo.Pacing, -1 }},
		{"delay elsewhere", "max_delay", func(q *algo.Params) { q.MaxDelay = sec }},
		{"delay too long to count", "max_delay", func(q *algo.Params) {
			q.Algorithm, q.Count, q.MaxDelay = algo.Pacing, 1e7, algo.Span(algo.MaxInstant)
		}},
		{"buckets elsewhere", "buckets", func(q *algo.Params) { q.Buckets = 128 }},
		{"few buckets", "buckets", func(q *algo.Params) { q.Algorithm, q.Count, q.Buckets = algo.RollingWindow, 100, 7 }},
		{"many buckets", "buckets", func(q *algo.Params) { q.Algorithm, q.Count, q.Buckets = algo.RollingWindow, 100, 1025 }},
		{"buckets for a log", "buckets", func(q *algo.Params) { q.Algorithm, q.Count, q.Buckets = algo.RollingWindow, 64, 128 }},
	} {
		q := good
		c.with(&q)
		_, err := algo.Compile(q)
		errs := problems(err)
		if len(errs) != 1 || errs[0].Field != c.field || errs[0].Problem == "" || errs[0].Hint == "" {
			t.Errorf("%s: %q, want one problem of %s", c.name, errs, c.field)
			continue
		}
		text := errs[0].Error()
		if other, ok := seen[text]; ok && errs[0].Field != "algorithm" {
			t.Errorf("%s reads as %s does: %s", c.name, other, text)
		}
		seen[text] = c.name
	}

	_, err := algo.Compile(algo.Params{Count: -1, Per: -1, Burst: -1, MaxDelay: -1, Buckets: -1, FirstUse: true})
	var fields []string
	for _, e := range problems(err) {
		fields = append(fields, e.Field)
	}
	if got, want := strings.Join(fields, " "), "algorithm count per align burst max_delay buckets"; got != want {
		t.Errorf("all at once: %s, want %s", got, want)
	}
}

func problems(err error) (list []*algo.LimitError) {
	var le *algo.LimitError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			list = append(list, problems(e)...)
		}
	} else if errors.As(err, &le) {
		list = append(list, le)
	}
	return list
}

func TestAlgorithmNames(t *testing.T) {
	for _, a := range algorithms {
		if b, ok := algo.ParseAlgorithm(a.String()); !ok || b != a {
			t.Errorf("ParseAlgorithm(%q) is %v, %v", a.String(), b, ok)
		}
	}
	for _, name := range []string{"", "leaky", "Token_Bucket", "algorithm(0)"} {
		if a, ok := algo.ParseAlgorithm(name); ok {
			t.Errorf("ParseAlgorithm(%q) is %v", name, a)
		}
	}
	if got := fmt.Sprint(algo.Algorithm(0), algo.Algorithm(200)); got != "algorithm(0) algorithm(200)" {
		t.Errorf("unknown algorithms print as %s", got)
	}
}
