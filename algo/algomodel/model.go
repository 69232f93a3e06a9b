// Package algomodel judges package algo: the same limits, written a second time from
// what algo documents, in exact rationals and plain lists, without its integers, grids
// of credits or packed states. Tests run both on one history and compare every field.
//
// It is for tests only. A model is slow, allocates, and is not safe for concurrent use.
package algomodel

import (
	"fmt"
	"math/big"

	"github.com/escapement-io/escapement/algo"
)

// Answer is every field of a verdict. Answers compare with ==.
type Answer struct {
	Admitted   bool
	Units      int64
	Remaining  int64
	RetryAfter algo.Span
	ResetAfter algo.Span
	Delay      algo.Span
	Now        algo.Store
	Receipt    algo.Receipt
}

// Of collects the fields of a verdict.
func Of(v algo.Verdict) Answer {
	a := Answer{
		Admitted: v.Admitted, Units: v.Units(), Remaining: v.Remaining(),
		RetryAfter: v.RetryAfter(), ResetAfter: v.ResetAfter(), Delay: v.Delay(), Now: v.Now(), Receipt: v.Receipt(),
	}
	if a.Receipt.Units == 0 {
		a.Receipt = algo.Receipt{} // says nothing, whenever it says so
	}
	return a
}

// Kind is an operation of a plan.
type Kind uint8

// The operations, named as the methods of algo.Plan.
const (
	Take Kind = iota
	Reserve
	TakeUpTo
	Charge
	Refund
	Peek
)

var kindNames = [...]string{"Take", "Reserve", "TakeUpTo", "Charge", "Refund", "Peek"}

func (k Kind) String() string { return kindNames[k] }

// Op is one call. Only the fields that its kind reads matter.
type Op struct {
	Kind     Kind
	Now      algo.Store
	Units    int64        // asked for or charged
	Patience algo.Span    // Reserve
	Stamp    algo.Store   // Charge
	Receipt  algo.Receipt // Refund
}

// String is the call as it would be written in Go.
func (o Op) String() string {
	switch o.Kind {
	case Reserve:
		return fmt.Sprintf("Reserve(now=%d, cost=%d, patience=%d)", o.Now, o.Units, o.Patience)
	case Charge:
		return fmt.Sprintf("Charge(now=%d, units=%d, stamp=%d)", o.Now, o.Units, o.Stamp)
	case Refund:
		return fmt.Sprintf("Refund(now=%d, {At:%d Units:%d})", o.Now, o.Receipt.At, o.Receipt.Units)
	case Take, TakeUpTo, Peek:
	}
	return fmt.Sprintf("%v(now=%d, %d)", o.Kind, o.Now, o.Units)
}

// Apply makes the call on a plan and its state.
func Apply(p *algo.Plan, s *algo.State, o Op) algo.Verdict {
	switch o.Kind {
	case Reserve:
		return p.Reserve(s, o.Now, o.Units, o.Patience)
	case TakeUpTo:
		return p.TakeUpTo(s, o.Now, o.Units)
	case Charge:
		return p.Charge(s, o.Now, o.Units, o.Stamp)
	case Refund:
		return p.Refund(s, o.Now, o.Receipt)
	case Peek:
		return p.Peek(s, o.Now, o.Units)
	case Take:
	}
	return p.Take(s, o.Now, o.Units)
}

// judge is one algorithm with its state. now is never before instant(now) when the
// other methods see it, except in rebase.
type judge interface {
	// instant is now, or the state's own instant if that is later.
	instant(now algo.Store) algo.Store
	// fill sets Remaining and ResetAfter as of now.
	fill(a *Answer, now algo.Store)
	// reserve decides; it sets Admitted, Delay and RetryAfter, and takes what it admits.
	reserve(a *Answer, now algo.Store, cost int64, patience algo.Span)
	// charge returns how many units it recorded and the instant they count from.
	charge(now algo.Store, units int64, stamp algo.Store) (int64, algo.Store)
	// refund returns how many whole units it gave back.
	refund(now algo.Store, r algo.Receipt) int64
	rebase(now algo.Store)
	used(now algo.Store) int64
	clone() judge
}

// Model is a limit with the state of one key.
type Model struct {
	params algo.Params
	tick   algo.Span
	judge  judge
}

// New is the model of a fresh key. tick is the grid of the compiled plan, on which the
// model runs too: a limit means what it means on its grid.
func New(q algo.Params, tick algo.Span) *Model {
	m := &Model{params: q, tick: tick}
	switch q.Algorithm {
	case algo.TokenBucket:
		m.judge = newTokens(q, tick)
	case algo.GCRA:
		m.judge = newArrival(q, tick)
	case algo.Pacing:
		m.judge = newPacing(q, tick)
	case algo.FixedWindow:
		m.judge = &fixed{q: q}
	case algo.SlidingWindow:
		m.judge = &sliding{q: q, tick: tick}
	case algo.RollingWindow:
		if q.Count <= algo.LogMax {
			m.judge = &rollingLog{q: q}
		} else {
			m.judge = newRing(q)
		}
	default:
		panic(fmt.Sprintf("algomodel: no model of %v", q.Algorithm))
	}
	return m
}

// Do answers one call.
func (m *Model) Do(o Op) Answer {
	switch o.Kind {
	case Peek:
		c := &Model{m.params, m.tick, m.judge.clone()}
		o.Kind = Take
		a := c.Do(o)
		m.judge.fill(&a, a.Now)
		a.Receipt = algo.Receipt{} // nothing was taken
		return a
	case TakeUpTo:
		var have Answer
		m.judge.fill(&have, m.judge.instant(o.Now))
		o.Kind, o.Units = Take, min(o.Units, have.Remaining)
		return m.Do(o)
	case Take, Reserve, Charge, Refund:
	}
	now := m.judge.instant(o.Now)
	a := Answer{Now: now}
	at := now
	switch o.Kind {
	case Charge:
		if o.Stamp == 0 || o.Stamp > now {
			o.Stamp = now
		}
		a.Admitted = true
		if o.Units > 0 {
			a.Units, at = m.judge.charge(now, o.Units, o.Stamp)
		}
	case Refund:
		a.Admitted = true
		if o.Receipt.Units > 0 {
			a.Units = m.judge.refund(now, o.Receipt)
		}
	case TakeUpTo, Peek: // answered above
	case Take, Reserve:
		patience := o.Patience
		if o.Kind == Take {
			patience = 0
			if m.params.Algorithm == algo.Pacing {
				patience = algo.Never
			}
		}
		a.Units = o.Units
		if o.Units == 0 {
			a.Admitted = true
		} else {
			m.judge.reserve(&a, now, o.Units, patience)
		}
	}
	m.judge.fill(&a, now)
	if a.Admitted && a.Units > 0 && o.Kind != Refund {
		a.Receipt = algo.Receipt{At: at + algo.Store(a.Delay), Units: a.Units}
	}
	return a
}

// Fresh reports whether the state is as good as new.
func (m *Model) Fresh(now algo.Store) bool {
	var a Answer
	m.judge.fill(&a, m.judge.instant(now))
	return a.ResetAfter == 0
}

// Rebase is algo.Plan.Rebase.
func (m *Model) Rebase(now algo.Store) bool {
	if m.judge.instant(now) <= now+2_000_000 {
		return false
	}
	m.judge.rebase(now)
	return true
}

// Adopt is the model of another limit that takes over from m at an instant.
func (m *Model) Adopt(q algo.Params, tick algo.Span, at algo.Store) *Model {
	n := New(q, tick)
	at = m.judge.instant(at)
	if from, ok := m.judge.(leveled); ok {
		if to, ok := n.judge.(leveled); ok {
			level, since := from.level(at)
			to.setLevel(level, max(at, since))
			return n
		}
	}
	if n.keepWindows(m) {
		return n
	}
	if used := m.judge.used(at); used > 0 {
		n.Do(Op{Kind: Charge, Now: at, Units: used})
	}
	return n
}

// keepWindows takes the counters of m over if they mean the same to n.
func (n *Model) keepWindows(m *Model) bool {
	p, q := m.params, n.params
	if p.Algorithm != q.Algorithm || p.Per != q.Per || p.FirstUse != q.FirstUse || p.Calendar != q.Calendar {
		return false
	}
	switch from := m.judge.(type) {
	case *fixed:
		c := *from
		c.q = q
		n.judge = &c
	case *sliding:
		to := n.judge.(*sliding)
		to.start, to.cur, to.prev = from.start, min(from.cur, to.most()), min(from.prev, to.most())
	case *rollingLog:
		to, ok := n.judge.(*rollingLog)
		if !ok {
			return false
		}
		to.at, to.units = from.at, append(to.units, from.units...)
		to.trim()
	case *ring:
		to, ok := n.judge.(*ring)
		if !ok || to.width != from.width {
			return false
		}
		c := from.clone().(*ring)
		c.q = q
		n.judge = c
	default:
		return false
	}
	return true
}

func rat(a int64) *big.Rat       { return new(big.Rat).SetInt64(a) }
func frac(a, b int64) *big.Rat   { return big.NewRat(a, b) }
func add(a, b *big.Rat) *big.Rat { return new(big.Rat).Add(a, b) }
func sub(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }
func mul(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }
func quo(a, b *big.Rat) *big.Rat { return new(big.Rat).Quo(a, b) }

func less(a, b *big.Rat) bool { return a.Cmp(b) < 0 }

func least(a, b *big.Rat) *big.Rat {
	if less(b, a) {
		return b
	}
	return a
}

func most(a, b *big.Rat) *big.Rat {
	if less(a, b) {
		return b
	}
	return a
}

// floor is exact; the result of every caller fits, or is cut to 2^62.
func floor(a *big.Rat) int64 {
	q := new(big.Int).Div(a.Num(), a.Denom())
	if !q.IsInt64() {
		return int64(q.Sign()) << 62
	}
	return q.Int64()
}

func ceil(a *big.Rat) int64 { return -floor(new(big.Rat).Neg(a)) }

// grid is t rounded down to a multiple of tick.
func grid(t algo.Store, tick algo.Span) algo.Store { return t / algo.Store(tick) * algo.Store(tick) }

// until is the wait from now to the first grid instant at or after x, which is not on
// this side of since. What is more than MaxInstant after since is never.
func until(x *big.Rat, since, now algo.Store, tick algo.Span) algo.Span {
	if !less(rat(int64(since)), x) {
		return 0
	}
	ticks := ceil(quo(x, rat(int64(tick))))
	if ticks-int64(since)/int64(tick) > int64(algo.MaxInstant)/int64(tick) {
		return algo.Never
	}
	return algo.Span(ticks)*tick - algo.Span(now)
}
