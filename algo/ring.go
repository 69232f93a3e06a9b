package algo

// The ring of a rolling_window above LogMax. Time is cut into buckets of width q, at
// least Per divided by the number of buckets B; Ring holds what was taken in each of the
// last B+1 of them, bucket k at k mod (B+1). At is the start of the newest bucket, A the
// total. A span of length Per that ends in bucket k begins in bucket k-B or later, so
// holding the total of B+1 buckets at Count holds every such span.

// maxSlot is the most one bucket counts.
const maxSlot = 1<<32 - 1

// slot is the start of the bucket that holds t.
func (p *Plan) slot(t Store) Store { return t - t%Store(p.width) }

// index is where the bucket that starts at start stands in the ring.
// Near instant zero the oldest buckets start before it.
func (p *Plan) index(start Store) int64 {
	size := p.buckets + 1
	return (int64(start)/int64(p.width)%size + size) % size
}

// stale is how many buckets have to be emptied when the newest becomes start.
func (p *Plan) stale(s *State, start Store) int64 {
	return min(p.buckets+1, int64(start-s.At)/int64(p.width))
}

func (p *Plan) peekRing(s *State, v *Verdict) {
	start := max(p.slot(v.now), s.At)
	stale := p.stale(s, start)
	used := s.A
	if stale > p.buckets {
		used = 0
	} else {
		for j := int64(1); j <= stale; j++ {
			used -= int64(s.Ring[p.index(s.At+Store(j)*Store(p.width))])
		}
	}
	v.a = used
	// The newest bucket in use says when everything is free again.
	for k := s.At; used > 0; k -= Store(p.width) {
		if s.Ring[p.index(k)] > 0 {
			v.at = p.clear(k)
			break
		}
	}
	if v.units == 0 {
		v.Admitted = true
		return
	}
	if v.units > p.count {
		return
	}
	if used <= p.count-v.units {
		v.Admitted = true
		return
	}
	over := used - (p.count - v.units)
	for k := start - Store(p.buckets)*Store(p.width); k <= s.At; k += Store(p.width) {
		if over -= int64(s.Ring[p.index(k)]); over <= 0 {
			v.b = int64(p.clear(k) - v.now)
			return
		}
	}
}

// addRing carries the ring forward to now and adds units, or with a negative number
// takes them out, in the bucket of stamp, which still counts at now. It returns how many
// it could move; if that is none, it changes nothing.
func (p *Plan) addRing(s *State, now, stamp Store, units int64) int64 {
	i, have := p.index(p.slot(stamp)), int64(0)
	if p.slot(stamp) <= s.At {
		have = int64(s.Ring[i])
	}
	if units < 0 {
		units = max(units, -have)
	} else {
		units = min(units, maxSlot-have)
	}
	if units == 0 {
		return 0
	}
	start := max(p.slot(now), s.At)
	stale := p.stale(s, start)
	for j := int64(1); j <= stale; j++ {
		k := p.index(start - Store(stale-j)*Store(p.width))
		s.A -= int64(s.Ring[k])
		s.Ring[k] = 0
	}
	s.At = start
	s.Ring[i] = uint32(have + units)
	s.A += units
	return max(units, -units)
}

// rebaseRing moves the counts so that the newest bucket is the one of now; it returns
// the new At.
func (p *Plan) rebaseRing(s *State, now Store) Store {
	to := p.slot(now)
	size := p.buckets + 1
	shift := (p.index(s.At) - p.index(to) + size) % size
	moved := make([]uint32, size)
	for i := range size {
		moved[i] = s.Ring[(i+shift)%size]
	}
	copy(s.Ring, moved)
	return to
}
