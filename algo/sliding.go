package algo

import "fmt"

// sliding_window: two counters. At is the start of the current window, A what was taken
// in it, B what was taken in the window before. The estimate weighs B by the share of
// the previous window that still lies within one period of now, rounded up; windows lie
// on multiples of the period since the epoch of the store's line. The estimate is held
// at or below the limit; a true span of one period can hold up to twice as much.

func (p *Plan) compileSliding(q Params) error {
	for _, u := range ticks {
		if q.Per%u != 0 {
			continue
		}
		if area, ok := mul(q.Count, int64(q.Per/u)); ok && area <= MaxInt/2 {
			p.tick, p.most = u, MaxInt/2/int64(q.Per/u)
			return nil
		}
	}
	var best int64
	for _, u := range ticks {
		if q.Per%u == 0 {
			best = MaxInt / 2 / int64(q.Per/u)
		}
	}
	return &LimitError{Field: "count", Problem: "too large for exact arithmetic over this period",
		Hint: fmt.Sprintf("use at most %d, or a fixed_window", best)}
}

// slide is the window in force at now with its two counters.
func (p *Plan) slide(s *State, now Store) (start Store, cur, prev int64) {
	if now < s.At+Store(p.per) {
		return s.At, s.A, s.B
	}
	start, _ = p.window(now)
	if start == s.At+Store(p.per) {
		return start, 0, s.A
	}
	return start, 0, 0
}

// weighted is what prev still counts at now in the window that starts at start, rounded up.
func (p *Plan) weighted(prev int64, start, now Store) int64 {
	if prev == 0 {
		return 0
	}
	w := int64(p.per / p.tick)
	return ceilDiv(prev*(w-int64(Span(now-start)/p.tick)), w)
}

func (p *Plan) takeSliding(s *State, now Store, cost int64) Verdict {
	start, cur, prev := p.slide(s, now)
	v := Verdict{plan: p, now: max(now, start), units: cost, at: start, a: cur, b: prev}
	if cost == 0 {
		v.Admitted = true
		return v
	}
	if cost > p.count || cur > p.count-cost || p.weighted(prev, start, v.now) > p.count-cost-cur {
		return v
	}
	v.Admitted, v.a = true, cur+cost
	s.At, s.A, s.B = start, v.a, prev
	return v
}

// retrySliding finds the first grid instant at which the claim fits: later in this
// window, in the next one, where this one weighs, or at the start of the one after.
func (p *Plan) retrySliding(v *Verdict) Span {
	end := v.at + Store(p.per)
	if v.a <= p.count-v.units {
		if at := p.fits(v.b, p.count-v.units-v.a, v.at); at < end {
			return Span(at - v.now)
		}
	}
	return Span(p.fits(v.a, p.count-v.units, end) - v.now)
}

// fits is the first grid instant of the window at start at which prev weighs at most room.
func (p *Plan) fits(prev, room int64, start Store) Store {
	if prev <= room {
		return start
	}
	w := int64(p.per / p.tick)
	// prev*(w-e) <= room*w, and so e >= w - room*w/prev.
	return start + Store(w-room*w/prev)*Store(p.tick)
}

func (p *Plan) chargeSliding(s *State, now Store, units int64, stamp Store) Verdict {
	start, cur, prev := p.slide(s, now)
	v := Verdict{Admitted: true, plan: p, now: now, delay: Span(stamp - now), at: start, a: cur, b: prev}
	switch {
	case stamp >= start:
		v.units = min(units, p.most-cur)
		v.a = cur + v.units
	case stamp >= start-Store(p.per):
		v.units = min(units, p.most-prev)
		v.b = prev + v.units
	}
	if v.units > 0 {
		s.At, s.A, s.B = start, v.a, v.b
	}
	return v
}

func (p *Plan) refundSliding(s *State, now Store, r Receipt) Verdict {
	start, cur, prev := p.slide(s, now)
	v := Verdict{Admitted: true, plan: p, now: max(now, start), at: start, a: cur, b: prev}
	switch {
	case r.At >= start:
		v.units = min(cur, r.Units)
		v.a = cur - v.units
	case r.At >= start-Store(p.per):
		v.units = min(prev, r.Units)
		v.b = prev - v.units
	}
	if v.units > 0 {
		s.At, s.A, s.B = start, v.a, v.b
	}
	return v
}
