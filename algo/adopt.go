package algo

import "math/bits"

// Adopt converts a state written under old at the instant the plan replaced it. A limit
// that changes keeps what was used: a bucket keeps its level in whole units with the
// fraction scaled, capped at the new capacity, and its debt; window counters of an equal
// window stay as they are; otherwise what old still counts at that instant is charged to
// the window that holds it. Rounding is against the caller. The ring, if the new plan
// has one, must be zeroed and of its length.
func (p *Plan) Adopt(old *Plan, s State, at Store, ring []uint32) State {
	switch {
	case old.bucketLike() && p.bucketLike():
		return p.adoptBacklog(old, s, at)
	case !p.sameWindow(old):
	case p.algorithm != RollingWindow:
		s.A, s.B = min(s.A, p.most), min(s.B, p.most)
		return s
	case p.buckets == 0:
		return p.adoptLog(old, s, ring)
	default:
		copy(ring, s.Ring)
		s.Ring = ring
		return s
	}
	used := old.used(&s, at)
	t := State{Ring: ring}
	p.Charge(&t, max(at, s.At), used, 0)
	return t
}

func (p *Plan) bucketLike() bool {
	return p.algorithm == TokenBucket || p.algorithm == GCRA
}

// sameWindow reports whether counters of old mean the same under p.
func (p *Plan) sameWindow(old *Plan) bool {
	return p.algorithm == old.algorithm && !p.bucketLike() && p.algorithm != Pacing &&
		p.per == old.per && p.firstUse == old.firstUse && p.calendar == old.calendar &&
		p.width == old.width && p.buckets == old.buckets
}

// adoptBacklog keeps the level: whole units, plus the fraction scaled and rounded down.
func (p *Plan) adoptBacklog(old *Plan, s State, at Store) State {
	from, a := old.backlog(&s, at)
	t := State{At: p.grid(max(at, from) + Store(p.tick) - 1)}
	if level := old.full - a; level >= 0 {
		units := level / old.p
		if units >= p.count {
			return t
		}
		t.A = p.full - units*p.p - scale(level%old.p, p.p, old.p)
		return t
	}
	debt := a - old.full
	fit := min(ceilDiv(debt, old.p), (MaxInt-p.full)/p.p)
	t.A = p.full + fit*p.p
	return t
}

// scale is a*num/den rounded down, for a below den.
func scale(a, num, den int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(num))
	q, _ := bits.Div64(hi, lo, uint64(den))
	return int64(q)
}

// adoptLog carries the newest instants over to a log of another length.
func (p *Plan) adoptLog(old *Plan, s State, ring []uint32) State {
	t := State{At: s.At, Ring: ring}
	keep := min(s.A, p.count)
	for i := range keep {
		p.setEntry(&t, i, old.entry(&s, s.A-keep+i))
	}
	t.A = keep
	return t
}

// used is what the state counts at an instant, in units rounded up.
func (p *Plan) used(s *State, at Store) int64 {
	v := p.Peek(s, at, 0)
	switch p.algorithm {
	case TokenBucket, GCRA, Pacing:
		return ceilDiv(v.a, p.p)
	case SlidingWindow:
		return v.a + p.weighted(v.b, v.at, v.now)
	case FixedWindow, RollingWindow:
	}
	return v.a
}
