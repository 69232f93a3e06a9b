package algomodel

import (
	"math/rand/v2"

	"github.com/escapement-io/escapement/algo"
)

// Rand is the source of every random history: one seed, one history.
func Rand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x5ca1ab1e)) }

// spread is a number from 0 to top whose length in bits is even, so that small and huge
// ones are equally likely.
func spread(r *rand.Rand, top int64) int64 {
	if top <= 0 {
		return 0
	}
	bits := 0
	for v := top; v > 0; v >>= 1 {
		bits++
	}
	return min(top, r.Int64N(1<<r.IntN(bits+1)))
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

const second = algo.Span(1_000_000)

// RandomLimit is a limit of an algorithm, and its plan. Rates run from one a year to
// ten million a second, bursts to the largest that compiles, grids from 1 µs to 1 s.
func RandomLimit(r *rand.Rand, a algo.Algorithm) (algo.Params, algo.Plan) {
	for {
		q := algo.Params{Algorithm: a}
		q.Per = pick(r, second, second, 10*second, 60*second, 3600*second, 86400*second, 30*86400*second, 31_536_000*second,
			1, 7, 1000, 7*1000, 999_983, 100*1000, second/3, algo.Span(1+spread(r, int64(400*86400*second))))
		q.Count = pick(r, 1, 2, 5, 10, 64, 65, 100, 1000, 10_000_000, 999_983, 9_999_991, 1_000_000_007,
			1+r.Int64N(10), 1+spread(r, 1000), 1+spread(r, 1e7), 1+spread(r, 1<<34))
		switch a {
		case algo.TokenBucket, algo.GCRA:
			q.Burst = pick(r, 0, 0, 1, 2, 1+r.Int64N(20), 1+spread(r, 1e6))
			if r.IntN(6) == 0 {
				q.Burst = largest(q)
			}
		case algo.Pacing:
			q.MaxDelay = pick(r, 0, q.Per, 10*q.Per, algo.Span(spread(r, int64(q.Per))), algo.Span(spread(r, int64(algo.MaxInstant))))
		case algo.FixedWindow:
			switch r.IntN(4) {
			case 0:
				q.FirstUse = true
			case 1:
				q.Per, q.Calendar = 0, pick(r, calendars...)
			}
		case algo.SlidingWindow: // nothing but its rate
		case algo.RollingWindow:
			if r.IntN(2) == 0 {
				q.Count = 1 + r.Int64N(algo.LogMax)
			} else if r.IntN(2) == 0 {
				q.Buckets = pick(r, 8, 10, 128, 1+r.IntN(1024))
			}
		}
		if p, err := algo.Compile(q); err == nil {
			return q, p
		}
	}
}

// Uneven is a calendar whose windows take turns in being Short and Long.
type Uneven struct{ Short, Long algo.Store }

// Around returns the window that holds t.
func (u *Uneven) Around(t algo.Store) (start, end algo.Store) {
	pair := u.Short + u.Long
	start = t - t%pair
	if t < start+u.Short {
		return start, start + u.Short
	}
	return start + u.Short, start + pair
}

var calendars = []algo.Calendar{&Uneven{1, 2}, &Uneven{3_600_000_000, 90_000_000_000}, &Uneven{2_419_200_000_000, 2_678_400_000_000}}

// largest is the biggest burst that compiles, found by halving.
func largest(q algo.Params) int64 {
	lo, hi := int64(0), algo.MaxInt+1
	for hi-lo > 1 {
		q.Burst = lo + (hi-lo)/2
		if _, err := algo.Compile(q); err == nil {
			lo = q.Burst
		} else {
			hi = q.Burst
		}
	}
	return lo
}

// History makes up the calls on one key. It remembers what was answered, and so returns
// at the instant it was told, gives back what it was given, and asks for just what is
// left and one more.
type History struct {
	r        *rand.Rand
	plan     *algo.Plan
	now      algo.Store
	last     Answer
	receipts []algo.Receipt
	// Forward keeps the clock from stepping back.
	Forward bool
}

// NewHistory starts at an instant near zero, of this century, or near the last one. The
// plan may change between calls.
func NewHistory(r *rand.Rand, p *algo.Plan) *History {
	h := &History{r: r, plan: p}
	h.now = pick(r, algo.Store(spread(r, 5_000_000)), 1_796_057_748_283_665+algo.Store(r.Int64N(1e12)),
		algo.MaxInstant-algo.Store(spread(r, int64(algo.MaxInstant)/2)))
	return h
}

// Now is the clock.
func (h *History) Now() algo.Store { return h.now }

// step moves the clock: a little, about a unit's or a period's worth, to the edge of
// what was promised, or back.
func (h *History) step() {
	r := h.r
	_, per := h.plan.Rate()
	var by algo.Span
	switch r.IntN(12) {
	case 0, 1, 2:
	case 3:
		by = pick(r, 1, h.plan.Tick(), h.plan.Tick()-1)
	case 4, 5:
		by = h.plan.EmissionInterval()*algo.Span(r.IntN(4)) + algo.Span(r.IntN(3)-1)
	case 6:
		by = per*algo.Span(r.IntN(3)) + algo.Span(r.IntN(3)-1)
	case 7:
		by = algo.Span(spread(r, 3*int64(per)))
	case 8, 9:
		by = pick(r, h.last.RetryAfter, h.last.ResetAfter, h.last.Delay)
		if by == algo.Never {
			by = 0
		}
		by += algo.Span(r.IntN(3) - 1)
	case 10:
		by = algo.Span(r.Int64N(int64(per)/16 + 1))
	case 11:
		by = -algo.Span(spread(r, pick(r, int64(per), int64(second), int64(algo.MaxInstant)/2)))
	}
	if h.Forward {
		by = max(0, by)
	}
	h.now = min(max(0, h.now+algo.Store(by)), algo.MaxInstant)
}

func (h *History) units() int64 {
	r, c := h.r, h.plan.Capacity()
	return max(0, min(algo.MaxInt, pick(r, 0, 1, 1, 1, 2, c, c+1, c/2, h.last.Remaining, h.last.Remaining+1,
		1+spread(r, c), 1+spread(r, c), spread(r, algo.MaxInt), algo.MaxInt)))
}

// Next is a call.
func (h *History) Next() Op {
	h.step()
	r := h.r
	o := Op{Now: h.now, Units: h.units()}
	switch r.IntN(16) {
	case 0, 1, 2, 3, 4, 5, 6:
		o.Kind = Take
	case 7, 8:
		o.Kind = Reserve
		o.Patience = pick(r, 0, 1, h.last.RetryAfter, h.last.ResetAfter, algo.Never, algo.Span(spread(r, int64(algo.MaxInstant))))
	case 9, 10:
		o.Kind = TakeUpTo
	case 11:
		o.Kind = Peek
	case 12, 13:
		o.Kind = Charge
		if r.IntN(3) > 0 {
			o.Units = pick(r, 1, 2, 1+spread(r, h.plan.Capacity()))
		}
		o.Stamp = pick(r, 0, h.now, h.receipt().At, h.receipt().At, algo.Store(spread(r, int64(h.now))), h.now+algo.Store(spread(r, int64(second))))
	case 14, 15:
		o.Kind = Refund
		o.Receipt = h.receipt()
	}
	return o
}

// receipt is one that was given, or one that was not.
func (h *History) receipt() algo.Receipt {
	r := h.r
	if n := len(h.receipts); n > 0 && r.IntN(8) > 0 {
		return h.receipts[r.IntN(n)]
	}
	return algo.Receipt{At: algo.Store(spread(r, int64(algo.MaxInstant))), Units: spread(r, algo.MaxInt)}
}

// Saw records an answer.
func (h *History) Saw(o Op, a Answer) {
	h.last = a
	if a.Units == 0 || !a.Admitted || o.Kind == Refund || o.Kind == Peek {
		return
	}
	if len(h.receipts) < 16 {
		h.receipts = append(h.receipts, a.Receipt)
	} else {
		h.receipts[h.r.IntN(16)] = a.Receipt
	}
}

// Start sets the clock.
func (h *History) Start(now algo.Store) { h.now = now }
