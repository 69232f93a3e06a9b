package algomodel

import (
	"math/big"

	"github.com/escapement-io/escapement/algo"
)

// leveled is a judge whose state can be told as tokens left, negative in debt, at an
// instant of its grid.
type leveled interface {
	level(now algo.Store) (tokens *big.Rat, at algo.Store)
	setLevel(tokens *big.Rat, at algo.Store)
}

// line holds what the algorithms with a continuous rate share.
type line struct {
	tick algo.Span
	each *big.Rat // microseconds a unit takes
	unit *big.Int // the share of 2^53-1 that one unit takes up
}

func newLine(q algo.Params, tick algo.Span) line {
	n, ticks := big.NewInt(q.Count), big.NewInt(int64(q.Per/tick))
	unit := new(big.Int).Div(ticks, new(big.Int).GCD(nil, nil, n, ticks))
	return line{tick: tick, each: frac(int64(q.Per), q.Count), unit: unit}
}

// room is how many more units may be owed on top of owed ones.
func (l *line) room(owed *big.Rat) int64 {
	unit := new(big.Rat).SetInt(l.unit)
	return floor(quo(sub(rat(algo.MaxInt), mul(owed, unit)), unit))
}

// back is what is left of a receipt's units at a grid instant, nothing if no take of the
// limit can have given the receipt.
func (l *line) back(r algo.Receipt, t algo.Store) *big.Rat {
	if r.Units > l.room(rat(0)) {
		return rat(0)
	}
	refilled := quo(rat(max(0, int64(t-grid(r.At, l.tick)))), l.each)
	return most(rat(0), sub(rat(r.Units), refilled))
}

// tokens is token_bucket: a level that rises to the capacity.
type tokens struct {
	line
	capacity int64
	at       algo.Store
	left     *big.Rat // at the instant at
}

func capacity(q algo.Params) int64 {
	if q.Burst != 0 {
		return q.Burst
	}
	return q.Count
}

func newTokens(q algo.Params, tick algo.Span) *tokens {
	c := capacity(q)
	return &tokens{line: newLine(q, tick), capacity: c, left: rat(c)}
}

func (m *tokens) instant(now algo.Store) algo.Store { return max(now, m.at) }

func (m *tokens) level(now algo.Store) (*big.Rat, algo.Store) {
	t := max(m.at, grid(now, m.tick))
	return least(rat(m.capacity), add(m.left, quo(rat(int64(t-m.at)), m.each))), t
}

// reach is the wait until the level is x.
func (m *tokens) reach(x *big.Rat, now algo.Store) algo.Span {
	level, t := m.level(now)
	return until(add(rat(int64(t)), mul(sub(x, level), m.each)), t, now, m.tick)
}

func (m *tokens) fill(a *Answer, now algo.Store) {
	level, _ := m.level(now)
	a.Remaining = max(0, floor(level))
	a.ResetAfter = m.reach(rat(m.capacity), now)
}

func (m *tokens) reserve(a *Answer, now algo.Store, cost int64, patience algo.Span) {
	if cost > m.capacity {
		a.RetryAfter = algo.Never
		return
	}
	level, t := m.level(now)
	wait := m.reach(rat(cost), now)
	owed := sub(rat(m.capacity), level)
	fits := wait == 0 || m.room(owed) >= cost
	if wait <= patience && wait != algo.Never && fits {
		a.Admitted, a.Delay = true, wait
		m.left, m.at = sub(level, rat(cost)), t
		return
	}
	a.RetryAfter = wait
	if wait != algo.Never {
		a.RetryAfter -= min(wait, patience)
	}
	if !fits {
		// Too deep in debt to record the claim: not before enough is paid.
		allowed := quo(rat(algo.MaxInt), new(big.Rat).SetInt(m.unit))
		a.RetryAfter = max(a.RetryAfter, m.reach(add(rat(m.capacity+cost), new(big.Rat).Neg(allowed)), now))
	}
}

func (m *tokens) charge(now algo.Store, units int64, _ algo.Store) (int64, algo.Store) {
	level, t := m.level(now)
	fit := min(units, m.room(sub(rat(m.capacity), level)))
	if fit > 0 {
		m.left, m.at = sub(level, rat(fit)), t
	}
	return fit, now
}

func (m *tokens) refund(now algo.Store, r algo.Receipt) int64 {
	level, t := m.level(now)
	give := least(m.back(r, t), sub(rat(m.capacity), level))
	if give.Sign() > 0 {
		m.left, m.at = add(level, give), t
	}
	return floor(give)
}

func (m *tokens) rebase(now algo.Store) { m.at = grid(now, m.tick) }

func (m *tokens) used(now algo.Store) int64 {
	level, _ := m.level(now)
	return ceil(sub(rat(m.capacity), level))
}

func (m *tokens) clone() judge { c := *m; return &c }

// setLevel rounds against the caller: the instant up to the grid, whole tokens kept,
// the fraction down to what one credit of the plan can express, a debt up to a unit.
func (m *tokens) setLevel(level *big.Rat, at algo.Store) {
	m.left, m.at = m.settle(level, m.capacity), gridUp(at, m.tick)
}

func gridUp(t algo.Store, tick algo.Span) algo.Store { return grid(t+algo.Store(tick)-1, tick) }

func (l *line) settle(level *big.Rat, capacity int64) *big.Rat {
	if level.Sign() < 0 {
		return rat(-min(ceil(new(big.Rat).Neg(level)), l.room(rat(capacity))))
	}
	unit := new(big.Rat).SetInt(l.unit)
	return least(rat(capacity), quo(rat(floor(mul(level, unit))), unit))
}
