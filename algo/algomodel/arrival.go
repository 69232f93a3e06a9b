package algomodel

import (
	"math/big"

	"github.com/escapement-io/escapement/algo"
)

// arrival is gcra in its own coordinate: the theoretical arrival time, the instant at
// which everything admitted so far has been paid for at one unit per emission interval.
// A claim conforms if it would not push that instant beyond the tolerance, capacity
// times the interval, ahead of now.
type arrival struct {
	line
	capacity  int64
	tolerance *big.Rat
	at        algo.Store
	tat       *big.Rat
}

func newArrival(q algo.Params, tick algo.Span) *arrival {
	m := &arrival{line: newLine(q, tick), capacity: capacity(q), tat: rat(0)}
	m.tolerance = m.span(m.capacity)
	return m
}

func (m *arrival) span(units int64) *big.Rat { return mul(rat(units), m.each) }

func (m *arrival) instant(now algo.Store) algo.Store { return max(now, m.at) }

// base is the theoretical arrival time seen from the grid instant of now.
func (m *arrival) base(now algo.Store) (tat *big.Rat, t algo.Store) {
	t = max(m.at, grid(now, m.tick))
	return most(m.tat, rat(int64(t))), t
}

func (m *arrival) fill(a *Answer, now algo.Store) {
	tat, t := m.base(now)
	a.Remaining = max(0, floor(quo(sub(add(rat(int64(t)), m.tolerance), tat), m.each)))
	a.ResetAfter = until(tat, t, now, m.tick)
}

func (m *arrival) reserve(a *Answer, now algo.Store, cost int64, patience algo.Span) {
	if cost > m.capacity {
		a.RetryAfter = algo.Never
		return
	}
	tat, t := m.base(now)
	next := add(tat, m.span(cost))
	wait := until(sub(next, m.tolerance), t, now, m.tick)
	longest := m.span(1)
	longest.Mul(longest, quo(rat(algo.MaxInt), new(big.Rat).SetInt(m.unit)))
	fits := wait == 0 || !less(add(rat(int64(t)), longest), next)
	if wait <= patience && wait != algo.Never && fits {
		a.Admitted, a.Delay = true, wait
		m.tat, m.at = next, t
		return
	}
	a.RetryAfter = wait
	if wait != algo.Never {
		a.RetryAfter -= min(wait, patience)
	}
	if !fits {
		a.RetryAfter = max(a.RetryAfter, until(sub(next, longest), t, now, m.tick))
	}
}

func (m *arrival) owed(tat *big.Rat, t algo.Store) *big.Rat {
	return quo(sub(tat, rat(int64(t))), m.each)
}

func (m *arrival) charge(now algo.Store, units int64, _ algo.Store) (int64, algo.Store) {
	tat, t := m.base(now)
	fit := min(units, m.room(m.owed(tat, t)))
	if fit > 0 {
		m.tat, m.at = add(tat, m.span(fit)), t
	}
	return fit, now
}

func (m *arrival) refund(now algo.Store, r algo.Receipt) int64 {
	tat, t := m.base(now)
	give := least(m.back(r, t), m.owed(tat, t))
	if give.Sign() > 0 {
		m.tat, m.at = sub(tat, mul(give, m.each)), t
	}
	return floor(give)
}

func (m *arrival) rebase(now algo.Store) {
	to := grid(now, m.tick)
	m.tat, m.at = sub(m.tat, rat(int64(m.at-to))), to
}

func (m *arrival) used(now algo.Store) int64 {
	tat, t := m.base(now)
	return ceil(m.owed(tat, t))
}

func (m *arrival) clone() judge { c := *m; return &c }

func (m *arrival) level(now algo.Store) (*big.Rat, algo.Store) {
	tat, t := m.base(now)
	return sub(rat(m.capacity), m.owed(tat, t)), t
}

func (m *arrival) setLevel(level *big.Rat, at algo.Store) {
	m.at = gridUp(at, m.tick)
	owed := sub(rat(m.capacity), m.settle(level, m.capacity))
	m.tat = add(rat(int64(m.at)), mul(owed, m.each))
}
