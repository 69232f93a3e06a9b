package algo

// The log of a rolling_window up to LogMax. Ring holds the instants of the newest Count
// units, two words each, in a circle: A is how many there are, B where the oldest
// stands. At is the newest instant judged. Units beyond the newest Count, which only a
// Charge can add, are forgotten: the newest Count alone refuse everything until the oldest
// of them leaves. A Refund of newer ones does not bring them back.

func (p *Plan) entry(s *State, i int64) Store {
	j := 2 * ((s.B + i) % p.count)
	return Store(s.Ring[j])<<32 | Store(s.Ring[j+1])
}

func (p *Plan) setEntry(s *State, i int64, t Store) {
	j := 2 * ((s.B + i) % p.count)
	s.Ring[j], s.Ring[j+1] = uint32(t>>32), uint32(t)
}

// expired is how many of the oldest entries no longer count at now.
func (p *Plan) expired(s *State, now Store) int64 {
	i := int64(0)
	for i < s.A && p.entry(s, i)+Store(p.per) <= now {
		i++
	}
	return i
}

func (p *Plan) peekLog(s *State, v *Verdict) {
	gone := p.expired(s, v.now)
	v.a = s.A - gone
	if v.a > 0 {
		v.at = p.entry(s, s.A-1) + Store(p.per)
	}
	if v.units == 0 {
		v.Admitted = true
		return
	}
	if v.units > p.count {
		return
	}
	if over := v.a - (p.count - v.units); over > 0 {
		v.b = int64(p.entry(s, gone+over-1) + Store(p.per) - v.now)
		return
	}
	v.Admitted = true
}

// pushLog appends units at now, which is not before any entry.
func (p *Plan) pushLog(s *State, now Store, units int64) {
	gone := p.expired(s, now)
	s.A -= gone
	s.B = (s.B + gone) % p.count
	for range units {
		if s.A == p.count {
			s.B = (s.B + 1) % p.count
			s.A--
		}
		p.setEntry(s, s.A, now)
		s.A++
	}
	s.At = now
}

// chargeLog inserts units at stamp in order.
func (p *Plan) chargeLog(s *State, now, stamp Store, units int64) {
	gone := p.expired(s, now)
	s.A -= gone
	s.B = (s.B + gone) % p.count
	for range units {
		if s.A == p.count {
			if p.entry(s, 0) >= stamp {
				break
			}
			s.B = (s.B + 1) % p.count
			s.A--
		}
		i := s.A
		for i > 0 && p.entry(s, i-1) > stamp {
			p.setEntry(s, i, p.entry(s, i-1))
			i--
		}
		p.setEntry(s, i, stamp)
		s.A++
	}
	s.At = now
}

// dropLog takes up to r.Units entries of the receipt's instant out again.
func (p *Plan) dropLog(s *State, r Receipt) int64 {
	kept, given := int64(0), int64(0)
	for i := range s.A {
		t := p.entry(s, i)
		if t == r.At && given < r.Units {
			given++
			continue
		}
		p.setEntry(s, kept, t)
		kept++
	}
	s.A = kept
	return given
}

func (p *Plan) shiftLog(s *State, by Store) {
	for i := range s.A {
		p.setEntry(s, i, max(0, p.entry(s, i)-by))
	}
}
