package algo

import "fmt"

// rolling_window: at most Count in every span of length Per, wherever it begins. Up to
// LogMax units the ring holds the instant of each (log.go); above, it counts per bucket
// (ring.go).

func (p *Plan) compileRolling(q Params) error {
	if q.Count <= LogMax {
		if q.Buckets != 0 {
			return &LimitError{Field: "buckets", Problem: fmt.Sprintf("a count of %d keeps exact instants", q.Count),
				Hint: fmt.Sprintf("drop buckets, they apply above %d", LogMax)}
		}
		return nil
	}
	if q.Count > maxSlot {
		return &LimitError{Field: "count", Problem: "too large for a rolling_window", Hint: fmt.Sprintf("use at most %d, or a sliding_window", int64(maxSlot))}
	}
	b := int64(q.Buckets)
	if b == 0 {
		b = 128
		if q.Per <= 1_000_000 {
			b = 256
		}
	}
	p.width = Span(ceilDiv(int64(q.Per), b))
	p.buckets = ceilDiv(int64(q.Per), int64(p.width))
	p.tick = 1
	return nil
}

func (p *Plan) takeRolling(s *State, now Store, cost int64) Verdict {
	v := p.peekRolling(s, now, cost)
	if !v.Admitted || cost == 0 {
		return v
	}
	p.record(s, v.now, cost)
	v.a += cost
	v.at = p.clear(v.now)
	return v
}

func (p *Plan) peekRolling(s *State, now Store, cost int64) Verdict {
	now = max(now, s.At)
	v := Verdict{plan: p, now: now, units: cost}
	if p.buckets == 0 {
		p.peekLog(s, &v)
	} else {
		p.peekRing(s, &v)
	}
	return v
}

// record adds units at now, dropping what has left the window.
func (p *Plan) record(s *State, now Store, units int64) {
	if p.buckets == 0 {
		p.pushLog(s, now, units)
	} else {
		p.addRing(s, now, now, units)
	}
}

// clear is the instant from which something taken at t counts no more.
func (p *Plan) clear(t Store) Store {
	if p.buckets == 0 {
		return t + Store(p.per)
	}
	return p.slot(t) + Store(p.buckets+1)*Store(p.width)
}

func (p *Plan) chargeRolling(s *State, now Store, units int64, stamp Store) Verdict {
	fit := int64(0)
	switch {
	case p.clear(stamp) <= now:
	case p.buckets == 0:
		// Beyond the newest Count instants nothing changes an answer.
		fit = units
		p.chargeLog(s, now, stamp, min(units, p.count))
	default:
		fit = p.addRing(s, now, stamp, units)
	}
	v := p.peekRolling(s, now, 0)
	v.units, v.delay = fit, Span(stamp-now)
	return v
}

func (p *Plan) refundRolling(s *State, now Store, r Receipt) Verdict {
	now = max(now, s.At)
	var given int64
	if p.clear(r.At) > now {
		if p.buckets == 0 {
			given = p.dropLog(s, r)
		} else {
			given = p.addRing(s, now, r.At, -r.Units)
		}
	}
	v := p.peekRolling(s, now, 0)
	v.units = given
	return v
}
