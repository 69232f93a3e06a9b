package algo

import (
	"errors"
	"fmt"
	"math/bits"
)

// Algorithm names how a limit spends its rate.
type Algorithm uint8

// The algorithms. Their words in a State are documented in the file of each.
const (
	TokenBucket   Algorithm = iota + 1 // refills continuously, saves up to Burst
	GCRA                               // the same function under its other name: one unit each emission interval, Burst back to back
	FixedWindow                        // Count per window; twice that can pass around a boundary
	SlidingWindow                      // two counters, the previous one weighted by what is left of it
	RollingWindow                      // at most Count in every span of length Per
	Pacing                             // uniform spacing; callers wait their turn, at most MaxDelay
)

var algorithmNames = [...]string{
	TokenBucket: "token_bucket", GCRA: "gcra", FixedWindow: "fixed_window",
	SlidingWindow: "sliding_window", RollingWindow: "rolling_window", Pacing: "pacing",
}

// String is the name used in configuration, such as "token_bucket".
func (a Algorithm) String() string {
	if a >= TokenBucket && a <= Pacing {
		return algorithmNames[a]
	}
	return fmt.Sprintf("algorithm(%d)", uint8(a))
}

// ParseAlgorithm is the inverse of String.
func ParseAlgorithm(name string) (Algorithm, bool) {
	for a := TokenBucket; a <= Pacing; a++ {
		if algorithmNames[a] == name {
			return a, true
		}
	}
	return 0, false
}

// Calendar cuts a store's line into windows of unequal length, such as days in a time
// zone. It must be pure: the same instant always lies in the same window.
type Calendar interface {
	// Around returns the window [start, end) that holds t.
	Around(t Store) (start, end Store)
}

// Params describes a limit to Compile.
type Params struct {
	Algorithm Algorithm
	Count     int64    // units per period, at least 1
	Per       Span     // the period; zero only with a Calendar
	Burst     int64    // capacity of token_bucket and gcra; zero means Count
	MaxDelay  Span     // pacing: the longest a caller may be made to wait
	FirstUse  bool     // fixed_window: a window opens at its first use, not on multiples of Per since the epoch
	Calendar  Calendar // fixed_window: windows of a calendar
	Buckets   int      // rolling_window above LogMax: how finely the period is cut; zero means 128, or 256 up to one second
}

// Bounds of a rolling window's ring.
const (
	LogMax     = 64   // a rolling_window up to this count keeps exact instants
	MinBuckets = 8    //
	MaxBuckets = 1024 // 4 KiB of state per key
)

// Plan is a limit compiled to integers, ready to decide. Plans are immutable; the zero
// Plan decides nothing.
type Plan struct {
	algorithm Algorithm
	firstUse  bool
	calendar  Calendar
	tick      Span  // the grid that instants are rounded down to before judging
	per       Span  // the period
	count     int64 // capacity in units: burst, or count per window
	rate      int64 // units per period as asked for

	// token_bucket, gcra, pacing: one unit costs p credits, one tick returns n.
	n, p    int64
	full    int64 // capacity in credits; pacing: the largest backlog that still admits
	horizon int64 // ticks after which any backlog has drained

	most int64 // windows: the largest counter kept; charges saturate there

	buckets int64 // rolling_window: buckets in a period, 0 for a log of instants
	width   Span  // rolling_window: width of a bucket
}

// LimitError says why a limit cannot be compiled. Field names the parameter at fault.
type LimitError struct {
	Field   string // algorithm, count, per, burst, max_delay, align or buckets
	Problem string
	Hint    string // what to do instead
}

func (e *LimitError) Error() string { return e.Field + ": " + e.Problem + "; " + e.Hint }

// ticks are the grids tried in turn, finest first, until the limit fits.
var ticks = [...]Span{1, 10, 100, 1_000, 10_000, 100_000, 1_000_000}

// Compile turns a description into a plan. A limit that cannot be decided exactly in
// integers below 2^53 is refused, with the largest burst or count that would fit. Every
// problem is reported, joined; each is a *LimitError.
func Compile(q Params) (Plan, error) {
	if err := check(q); err != nil {
		return Plan{}, err
	}
	p := Plan{algorithm: q.Algorithm, tick: 1, per: q.Per, count: q.Count, rate: q.Count}
	var err error
	switch q.Algorithm {
	case TokenBucket, GCRA:
		err = p.compileBucket(q)
	case Pacing:
		err = p.compilePacing(q)
	case FixedWindow:
		p.firstUse, p.calendar, p.most = q.FirstUse, q.Calendar, MaxInt
	case SlidingWindow:
		err = p.compileSliding(q)
	case RollingWindow:
		err = p.compileRolling(q)
	}
	if err != nil {
		return Plan{}, err
	}
	return p, nil
}

func check(q Params) error {
	var errs []error
	bad := func(field, problem, hint string) {
		errs = append(errs, &LimitError{Field: field, Problem: problem, Hint: hint})
	}
	if q.Algorithm < TokenBucket || q.Algorithm > Pacing {
		bad("algorithm", "not set", "use token_bucket, gcra, fixed_window, sliding_window, rolling_window or pacing")
	}
	if q.Count < 1 {
		bad("count", fmt.Sprintf("%d is not positive", q.Count), "use at least 1; to refuse everything, remove the route instead")
	} else if q.Count > MaxInt {
		bad("count", "above 2^53-1", fmt.Sprintf("use at most %d", MaxInt))
	}
	switch {
	case q.Calendar != nil && q.Algorithm != FixedWindow:
		bad("align", "only a fixed_window has calendar windows", "drop align, or use fixed_window")
	case q.Calendar != nil && q.Per != 0:
		bad("per", "set beside a calendar alignment, which already says how long a window is", "drop per")
	case q.Calendar != nil && q.FirstUse:
		bad("align", "both first_use and a calendar", "choose one")
	case q.Calendar == nil && q.Per < 1:
		bad("per", "not positive", "use a period of at least 1 microsecond, such as 10s")
	case q.Per > Span(MaxInstant):
		bad("per", "longer than a century", "use a shorter period")
	}
	if q.FirstUse && q.Algorithm != FixedWindow {
		bad("align", "only a fixed_window is aligned", "drop align, or use fixed_window")
	}
	if q.Burst < 0 || q.Burst > MaxInt {
		bad("burst", fmt.Sprintf("%d is out of range", q.Burst), "use 1 to 2^53-1, or leave it out for the count")
	} else if q.Burst != 0 && q.Algorithm != TokenBucket && q.Algorithm != GCRA {
		bad("burst", "only token_bucket and gcra have a burst", "drop burst, or change the algorithm")
	}
	if q.MaxDelay < 0 || q.MaxDelay > Span(MaxInstant) {
		bad("max_delay", "out of range", "use 0 to a century")
	} else if q.MaxDelay != 0 && q.Algorithm != Pacing {
		bad("max_delay", "only pacing delays callers", "drop max_delay, or use pacing")
	}
	if q.Buckets != 0 && q.Algorithm != RollingWindow {
		bad("buckets", "only a rolling_window is cut into buckets", "drop buckets, or use rolling_window")
	} else if q.Buckets != 0 && (q.Buckets < MinBuckets || q.Buckets > MaxBuckets) {
		bad("buckets", fmt.Sprintf("%d is out of range", q.Buckets), fmt.Sprintf("use %d to %d", MinBuckets, MaxBuckets))
	}
	return errors.Join(errs...)
}

// compileRate finds the finest tick on which capacity units and one tick's refill fit,
// and sets tick, n and p. Pacing's delay counts twice: what may lie before a caller, and
// as much again, the largest claim that such a queue can admit.
func (p *Plan) compileRate(units int64, delay Span, field string) error {
	var best int64
	for _, u := range ticks {
		if p.per%u != 0 {
			continue
		}
		per := int64(p.per / u)
		g := gcd(p.rate, per)
		n, credits := p.rate/g, per/g
		room := MaxInt - n
		if d := int64(delay / u); d > 0 {
			used, ok := mul(2*d, n)
			if !ok || used > room {
				continue
			}
			room -= used
		}
		if need, ok := mul(units, credits); ok && need <= room {
			p.tick, p.n, p.p, p.horizon = u, n, credits, MaxInt/n
			return nil
		}
		best = max(best, room/credits)
	}
	hint := "use a rate whose count divides the period, such as 100 per minute"
	if best > 0 && field == "burst" {
		hint = fmt.Sprintf("use at most %d, or a rate whose count divides the period", best)
	}
	return &LimitError{Field: field, Problem: fmt.Sprintf("too large for exact arithmetic at %d per %d µs", p.rate, p.per), Hint: hint}
}

// Capacity is the most that can be taken at once from rest, in units. Pacing takes a claim
// of any cost from rest and makes its successors wait; its capacity is how many claims of
// one unit it then holds.
func (p *Plan) Capacity() int64 { return p.count }

// Algorithm is what the plan was compiled from.
func (p *Plan) Algorithm() Algorithm { return p.algorithm }

// Rate is units per period as compiled; the period is zero for a calendar.
func (p *Plan) Rate() (count int64, per Span) { return p.rate, p.per }

// Tick is the grid on which the plan judges: instants are rounded down to it, waits end
// on it. It divides the period.
func (p *Plan) Tick() Span { return p.tick }

// EmissionInterval is the period over the count, rounded down: the time one unit takes
// to come back. Zero for a calendar.
func (p *Plan) EmissionInterval() Span { return p.per / Span(p.rate) }

// Same reports whether two plans decide alike, so that a state needs no conversion.
func (p *Plan) Same(q *Plan) bool { return *p == *q }

// WithCount is the same window plan with another count per window. The two share
// states: a counter does not depend on what it is compared with. It is refused for
// algorithms whose state does, and for a count that the grid of p cannot weigh exactly.
func (p *Plan) WithCount(count int64) (Plan, error) {
	if p.algorithm != FixedWindow && p.algorithm != SlidingWindow {
		return Plan{}, &LimitError{Field: "count", Problem: "varies from request to request", Hint: "only fixed_window and sliding_window allow that"}
	}
	if err := check(Params{Algorithm: p.algorithm, Count: count, Per: p.per, FirstUse: p.firstUse, Calendar: p.calendar}); err != nil {
		return Plan{}, err
	}
	if count > p.most {
		return Plan{}, &LimitError{Field: "count", Problem: fmt.Sprintf("%d is too large beside the limit's own %d", count, p.count),
			Hint: fmt.Sprintf("use at most %d, or give the limit the largest count that is ever asked for", p.most)}
	}
	v := *p
	v.count, v.rate = count, count
	return v, nil
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// mul multiplies two non-negative integers; false if the product exceeds MaxInt.
func mul(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > uint64(MaxInt) {
		return 0, false
	}
	return int64(lo), true
}

// ceilDiv rounds the quotient of non-negative a and positive b up.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if q*b < a {
		q++
	}
	return q
}
