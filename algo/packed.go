package algo

// Packed is a verdict without its plan in 160 bits, little enough for what holds one to
// travel in registers: that takes at most four words. It has the instant of the decision,
// a mark of the packer's own, flags, and 102 bits for the numbers of the algorithm; what
// follows from those and the plan is left out. A few verdicts do not fit (see Plan.Pack).
// The zero Packed is no verdict.
type Packed struct {
	Body Body
	Head Head
}

// Head is the part of a Packed that fits beside a bool: flags, mark, 26 bits of numbers.
type Head uint32

// Body is the rest of a Packed: the instant above 12 bits of numbers; 64 bits of numbers.
type Body struct{ x, y uint64 }

const (
	packedAdmitted Head = 1 << iota
	packedNone
	packedLent // admitted before the units were there; of a window, counted elsewhere (Plan.Told)
	packedKnown

	markShift = 4
	markMask  = 3
	headShift = 6
	headBits  = 32 - headShift
	bodyBits  = 12
	unitsMax  = 1<<(bodyBits+headBits) - 1 // of a bucket's verdict
)

// PackMark is no verdict, but a mark below 4.
func PackMark(mark uint8) Packed { return Packed{Head: Head(mark&markMask) << markShift} }

// PackDrawn packs the verdict of a Take without patience from what Draw answers, with the
// mark 0. now is not before the state's own instant. It fails where Pack does.
func PackDrawn(now Store, cost, backlog int64, admitted bool) (w Packed, ok bool) {
	head := packedKnown
	if admitted {
		head = packedKnown | packedAdmitted
	}
	w.Head = head | Head(cost)<<headShift
	w.Body = Body{uint64(now)<<bodyBits | uint64(cost)>>headBits, uint64(backlog)}
	return w, uint64(now) <= uint64(MaxInstant) && uint64(cost) <= unitsMax
}

// Pack packs a verdict of the plan with a mark below 4. It fails, and the verdict has to be
// kept as it is, for refused reservations, for charges of the past, and for numbers far
// beyond common ones: above 2^30 units at the least.
func (p *Plan) Pack(v *Verdict, mark uint8) (w Packed, ok bool) {
	w = PackMark(mark)
	if v.plan != nil {
		w.Head |= packedKnown
	}
	if v.Admitted {
		w.Head |= packedAdmitted
	}
	if v.none {
		w.Head |= packedNone
	}
	if v.delay > 0 || v.told {
		w.Head |= packedLent
	}
	n := p.outline(v)
	w.Head |= Head(n.hi) << headShift
	w.Body = Body{uint64(v.now)<<bodyBits | n.hi>>headBits&(1<<bodyBits-1), n.lo}
	return w, *v == p.Unpack(w)
}

// Mark is what the packer put beside the verdict.
func (h Head) Mark() uint8 { return uint8(h >> markShift & markMask) }

// numbers are small integers one above the other, the last one lowest.
type numbers struct{ hi, lo uint64 }

func (b *numbers) push(v int64, width uint) {
	b.hi = b.hi<<width | b.lo>>(64-width)
	b.lo = b.lo<<width | uint64(v)&(1<<width-1)
}

func (b *numbers) pop(width uint) int64 {
	v := int64(b.lo & (1<<width - 1))
	b.lo = b.lo>>width | b.hi<<(64-width)
	b.hi >>= width
	return v
}

// outline is what Unpack needs of a verdict.
func (p *Plan) outline(v *Verdict) (n numbers) {
	u := p.unitBits()
	switch p.algorithm {
	case TokenBucket, GCRA, Pacing:
		return numbers{uint64(v.units), uint64(v.a)}
	case FixedWindow:
		if p.calendar != nil {
			n.push(int64(v.at)/1_000_000, 34)
		} else if p.firstUse {
			n.push(int64(v.now-v.at), 42)
		} else if v.told {
			n.push(v.b, toldBits)
			u = toldBits
		}
	case SlidingWindow:
		n.push(v.b, u)
	case RollingWindow:
		n.push(p.later(v.now, v.at), 51-u)
		n.push(p.later(v.now, v.now+Store(v.b)), 51-u)
	}
	n.push(v.a, u)
	n.push(v.units, u)
	return n
}

// toldBits is the room for each number of a window counted elsewhere.
const toldBits = 34

// unitBits is the room for a number of units.
func (p *Plan) unitBits() uint {
	switch {
	case p.algorithm == RollingWindow && p.buckets == 0:
		return 8
	case p.algorithm == RollingWindow:
		return 32
	case p.algorithm == SlidingWindow, p.calendar != nil:
		return 34
	case p.firstUse:
		return 30
	}
	return 51
}

// later is how far behind now an instant of a rolling_window lies, in buckets if it has
// them; 0 if it does not.
func (p *Plan) later(now, at Store) int64 {
	switch {
	case at <= now:
		return 0
	case p.buckets == 0:
		return int64(at - now)
	}
	return int64(at-p.slot(now)) / int64(p.width)
}

// Unpack is the verdict that was packed; of what is no verdict, one that knows nothing.
func (p *Plan) Unpack(w Packed) Verdict {
	if w.Head&packedKnown == 0 {
		return Verdict{}
	}
	n := numbers{w.Body.x&(1<<bodyBits-1)<<headBits | uint64(w.Head>>headShift), w.Body.y}
	v := Verdict{Admitted: w.Head&packedAdmitted != 0, none: w.Head&packedNone != 0, plan: p, now: Store(w.Body.x >> bodyBits)}
	if p.bucketLike() || p.algorithm == Pacing {
		v.units, v.a, v.at = int64(n.hi), int64(n.lo), p.grid(v.now)
		p.unpackWait(&v, w.Head&packedLent != 0)
		return v
	}
	u := p.unitBits()
	v.told = w.Head&packedLent != 0
	if v.told && p.algorithm == FixedWindow && p.calendar == nil && !p.firstUse {
		u = toldBits
	}
	v.units, v.a = n.pop(u), n.pop(u)
	switch p.algorithm {
	case TokenBucket, GCRA, Pacing: // returned above
	case FixedWindow:
		if p.calendar != nil {
			v.at = Store(n.pop(34) * 1_000_000)
		} else if p.firstUse {
			v.at = v.now - Store(n.pop(42))
		} else {
			v.at, _ = p.window(v.now)
			if v.told {
				v.b = n.pop(toldBits)
			}
		}
	case SlidingWindow:
		v.b = n.pop(u)
		v.at, _ = p.window(v.now)
	case RollingWindow:
		wait, free := n.pop(51-u), n.pop(51-u)
		if v.at = v.now; p.buckets > 0 {
			v.at = p.slot(v.now)
			wait, free = wait*int64(p.width), free*int64(p.width)
		}
		if wait > 0 {
			v.b = int64(v.at + Store(wait) - v.now)
		}
		if v.at += Store(free); free == 0 {
			v.at = 0
		}
	}
	return v
}

// unpackWait works out the delay or the wait of a bucket or of pacing from its backlog.
func (p *Plan) unpackWait(v *Verdict, lent bool) {
	switch {
	case lent && p.algorithm == Pacing:
		before := v.a
		if !v.none {
			before -= v.units * p.p
		}
		v.delay = p.drain(v.at, v.now, before)
	case lent:
		v.delay = p.drain(v.at, v.now, v.a-p.full)
	case !v.Admitted && p.algorithm == Pacing:
		v.b = int64(p.drain(v.at, v.now, v.a-p.full))
		if need, ok := mul(v.units, p.p); !ok || need > MaxInt-p.full {
			v.b = int64(Never)
		}
	}
}
