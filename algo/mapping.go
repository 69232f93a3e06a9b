package algo

// Mapping bounds the line of a store on the monotonic clock of one process, from the round
// trips of its calls alone: a reply that carries the store's instant was written between
// sending and receiving. The bounds of several round trips are intersected, and widened
// by how far the two clocks may drift apart in between. The zero Mapping knows nothing.
type Mapping struct {
	lo, hi int64 // nanoseconds: the store's line minus the monotonic clock
	at     Mono  // when they held
	known  bool
}

// driftPPM is how fast the bounds widen, in millionths: ten times what quartz does, and
// as fast as a clock is slewed.
const driftPPM = 500

// Observe takes in a round trip. It reports whether the line is not where it was known
// to be: then the store's clock moved or this process was suspended, the line starts
// anew, and what was granted before means nothing any more.
func (m *Mapping) Observe(sent, received Mono, at Store) (moved bool) {
	w := drifted(received - sent)
	lo, hi := int64(at)*1000-int64(received)-w, int64(at)*1000+999-int64(sent)+w
	if m.known {
		w := drifted(received - m.at)
		if m.lo-w > hi || m.hi+w < lo {
			moved = true
		} else {
			lo, hi = max(lo, m.lo-w), min(hi, m.hi+w)
		}
	}
	m.lo, m.hi, m.at, m.known = lo, hi, received, true
	return moved
}

// drifted is how far the clocks may have moved apart, in nanoseconds, rounded up.
func drifted(over Mono) int64 { return (max(0, int64(over))/1_000_000 + 1) * driftPPM }

// Bounds are the earliest and latest instant of the line at now; false before the first
// round trip.
func (m *Mapping) Bounds(now Mono) (lo, hi Store, ok bool) {
	w := drifted(now - m.at)
	return Store((int64(now) + m.lo - w) / 1000), Store((int64(now) + m.hi + w) / 1000), m.known
}

// Phase places the ticks of one instance and key within an interval, in nanoseconds, so
// that the instances of a key and the keys of an instance do not tick together. It is
// FNV-1a, spread by a multiplication.
func Phase(instance, key string, interval Span) Mono {
	h := uint64(14695981039346656037)
	for _, s := range [...]string{instance, "\x00", key} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
	}
	h = (h ^ h>>32) * 0x9e3779b97f4a7c15
	return Mono(h>>11) % Mono(interval*1000)
}
