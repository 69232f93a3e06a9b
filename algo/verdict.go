package algo

// Verdict is the answer to one claim. Its fields are computed when asked for, from the
// state right after the decision.
type Verdict struct {
	Admitted bool

	plan  *Plan
	none  bool // nothing was taken: a peek or a refund
	told  bool // of what is counted elsewhere (Plan.Told): of a window a is units in use; b is the wait of a refusal
	now   Store
	units int64 // asked for or taken
	delay Span  // until the units count as taken; negative for a charge of the past
	at    Store // bucket: the grid instant of the backlog; windows: start; rolling: when all is free again
	a, b  int64 // bucket: backlog, patience of a refusal; fixed: count; sliding: current, previous; rolling: in use, wait; pacing: backlog, wait
}

// Units is what was asked for; with TakeUpTo what was taken, with Charge what was
// recorded (the rest was dropped), and with Refund the whole units that were given back.
func (v *Verdict) Units() int64 { return v.units }

// Now is the instant of the decision.
func (v *Verdict) Now() Store { return v.now }

// Delay is how long an admitted caller must wait before it acts.
func (v *Verdict) Delay() Span { return max(0, v.delay) }

// Receipt is what Refund needs to give the units back; empty if nothing was taken.
func (v *Verdict) Receipt() Receipt {
	if !v.Admitted || v.none {
		return Receipt{}
	}
	if v.told {
		return Receipt{At: v.at, Units: v.units}
	}
	return Receipt{At: v.now + Store(v.delay), Units: v.units}
}

// Remaining is how many whole units could be taken right after the decision, rounded
// down, never negative.
func (v *Verdict) Remaining() int64 {
	p := v.plan
	if p == nil {
		return 0
	}
	switch p.algorithm {
	case TokenBucket, GCRA:
		return max(0, p.full-v.a) / p.p
	case Pacing:
		if v.a > p.full {
			return 0
		}
		return (p.full-v.a)/p.p + 1
	case FixedWindow, RollingWindow:
		return max(0, p.count-v.a)
	case SlidingWindow:
		if v.told {
			return max(0, p.count-v.a)
		}
		return max(0, p.count-v.a-p.weighted(v.b, v.at, v.now))
	}
	return 0
}

// RetryAfter is the least wait after which the same claim, with the same patience, is
// admitted if nobody else asks: exact, 0 if it was admitted, Never if its cost exceeds
// the capacity (with pacing: if it would keep its successors waiting beyond 2^53 credits).
func (v *Verdict) RetryAfter() Span {
	p := v.plan
	if v.Admitted || p == nil {
		return 0
	}
	if v.units > p.count && p.algorithm != Pacing {
		return Never
	}
	if v.told && v.b > 0 {
		return Span(v.b)
	}
	switch p.algorithm {
	case TokenBucket, GCRA:
		return p.retryBucket(v)
	case Pacing:
		return Span(v.b)
	case FixedWindow:
		_, end := p.windowAt(v.at)
		return Span(end - v.now)
	case SlidingWindow:
		return p.retrySliding(v)
	case RollingWindow:
		return Span(v.b)
	}
	return 0
}

// ResetAfter is how long until the state is as new if nobody acts.
func (v *Verdict) ResetAfter() Span {
	p := v.plan
	if p == nil {
		return 0
	}
	switch p.algorithm {
	case TokenBucket, GCRA, Pacing:
		return p.drain(v.at, v.now, v.a)
	case FixedWindow:
		if v.a == 0 {
			return 0
		}
		_, end := p.windowAt(v.at)
		return Span(end - v.now)
	case SlidingWindow:
		switch {
		case v.a > 0:
			return Span(v.at-v.now) + 2*p.per
		case v.b > 0:
			return Span(v.at-v.now) + p.per
		}
		return 0
	case RollingWindow:
		return Span(max(0, v.at-v.now))
	}
	return 0
}
