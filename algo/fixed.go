package algo

// fixed_window. At is the start of the window, A the units taken in it. A window lies
// on multiples of the period since the epoch of the store's line, opens at its first
// use, or comes from a Calendar. The state of a window that never opened is zero.

// window is the window that holds t. With first use it is the one that would open at t.
func (p *Plan) window(t Store) (start, end Store) {
	switch {
	case p.calendar != nil:
		return p.calendar.Around(t)
	case p.firstUse:
		return t, t + Store(p.per)
	default:
		start = t - t%Store(p.per)
		return start, start + Store(p.per)
	}
}

// windowAt is the window that starts at start.
func (p *Plan) windowAt(start Store) (Store, Store) {
	if p.calendar != nil {
		return p.calendar.Around(start)
	}
	return start, start + Store(p.per)
}

// current is the window in force at now and what was taken in it. A window once passed
// is not entered again, whatever now says; one in which nothing is taken any more is as
// if it had never opened.
func (p *Plan) current(s *State, now Store) (start Store, count int64) {
	now = max(now, s.At)
	if s.A > 0 {
		if _, end := p.windowAt(s.At); now < end {
			return s.At, s.A
		}
	}
	start, _ = p.window(now)
	return start, 0
}

// opened is the start of the window that units spent at stamp opened, or now if that
// one is closed or lies in one that was open before.
func (p *Plan) opened(s *State, now, stamp Store) Store {
	from := s.At
	if s.A > 0 {
		_, from = p.windowAt(s.At)
	}
	if stamp < from || stamp+Store(p.per) <= now {
		return now
	}
	return stamp
}

func (p *Plan) takeFixed(s *State, now Store, cost int64) Verdict {
	start, a := p.current(s, now)
	v := Verdict{plan: p, now: max(now, start), units: cost, at: start, a: a}
	if cost == 0 {
		v.Admitted = true
		return v
	}
	if cost > p.count || a > p.count-cost {
		return v
	}
	v.Admitted, v.a = true, a+cost
	s.At, s.A = start, a+cost
	return v
}

func (p *Plan) chargeFixed(s *State, now Store, units int64, stamp Store) Verdict {
	start, a := p.current(s, now)
	if p.firstUse && a == 0 {
		start = p.opened(s, now, stamp)
	}
	v := Verdict{Admitted: true, plan: p, now: now, delay: Span(stamp - now), at: start, a: a}
	fit := min(units, p.most-a)
	if stamp < start {
		fit = 0
	}
	if fit > 0 {
		s.At, s.A = start, a+fit
	}
	v.units, v.a = fit, a+fit
	return v
}

func (p *Plan) refundFixed(s *State, now Store, r Receipt) Verdict {
	start, a := p.current(s, now)
	v := Verdict{Admitted: true, plan: p, now: max(now, start), at: start, a: a}
	if r.At >= start {
		v.units = min(a, r.Units)
	}
	if v.units > 0 {
		v.a = a - v.units
		s.At, s.A = start, v.a
	}
	return v
}
