package algomodel

import (
	"math/big"

	"github.com/escapement-io/escapement/algo"
)

// pacing is a queue served at one unit per emission interval: free is when the server
// has nothing left to do. A caller is admitted if its turn, the instant free, is at most
// MaxDelay away, rounded down to the grid.
type pacing struct {
	line
	longest algo.Span
	at      algo.Store
	free    *big.Rat
}

func newPacing(q algo.Params, tick algo.Span) *pacing {
	return &pacing{line: newLine(q, tick), longest: q.MaxDelay / tick * tick, free: rat(0)}
}

func (m *pacing) instant(now algo.Store) algo.Store { return max(now, m.at) }

func (m *pacing) base(now algo.Store) (free *big.Rat, t algo.Store) {
	t = max(m.at, grid(now, m.tick))
	return most(m.free, rat(int64(t))), t
}

// spare is how far the turn of one more caller is from being too far.
func (m *pacing) spare(free *big.Rat, t algo.Store) *big.Rat {
	return sub(rat(int64(t)+int64(m.longest)), free)
}

func (m *pacing) fill(a *Answer, now algo.Store) {
	free, t := m.base(now)
	a.Remaining = 0
	if spare := m.spare(free, t); spare.Sign() >= 0 {
		a.Remaining = floor(quo(spare, m.each)) + 1
	}
	a.ResetAfter = until(free, t, now, m.tick)
}

func (m *pacing) reserve(a *Answer, now algo.Store, cost int64, patience algo.Span) {
	if cost > m.room(quo(rat(int64(m.longest)), m.each)) {
		a.RetryAfter = algo.Never
		return
	}
	free, t := m.base(now)
	wait := until(free, t, now, m.tick)
	if m.spare(free, t).Sign() >= 0 && wait <= patience {
		a.Admitted, a.Delay = true, wait
		m.free, m.at = add(free, mul(rat(cost), m.each)), t
		return
	}
	a.RetryAfter = until(sub(free, rat(int64(m.longest))), t, now, m.tick)
	switch {
	case patience == algo.Never:
	case wait == algo.Never:
		a.RetryAfter = algo.Never
	default:
		a.RetryAfter = max(a.RetryAfter, wait-patience)
	}
}

func (m *pacing) owed(free *big.Rat, t algo.Store) *big.Rat {
	return quo(sub(free, rat(int64(t))), m.each)
}

func (m *pacing) charge(now algo.Store, units int64, _ algo.Store) (int64, algo.Store) {
	free, t := m.base(now)
	fit := min(units, m.room(m.owed(free, t)))
	if fit > 0 {
		m.free, m.at = add(free, mul(rat(fit), m.each)), t
	}
	return fit, now
}

func (m *pacing) refund(now algo.Store, r algo.Receipt) int64 {
	free, t := m.base(now)
	give := least(m.back(r, t), m.owed(free, t))
	if give.Sign() > 0 {
		m.free, m.at = sub(free, mul(give, m.each)), t
	}
	return floor(give)
}

func (m *pacing) rebase(now algo.Store) {
	to := grid(now, m.tick)
	m.free, m.at = sub(m.free, rat(int64(m.at-to))), to
}

func (m *pacing) used(now algo.Store) int64 {
	free, t := m.base(now)
	return ceil(m.owed(free, t))
}

func (m *pacing) clone() judge { c := *m; return &c }
