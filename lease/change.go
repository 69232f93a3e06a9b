package lease

import "github.com/escapement-io/escapement/algo"

// Retime changes the interval and the phase of the ticks, from the next one on. The
// interval must be one that the limit can be leased at.
func (l *Ledger) Retime(now algo.Mono, interval algo.Span, phase algo.Mono) {
	l.interval, l.cfg.Phase = algo.Mono(interval)*1000, phase
	if l.ticking {
		l.tickAt = l.nextTick(now)
	}
}

// Relend goes on under another count, a bucket under another rate and burst as well. It
// reports false, and changes nothing, if anything else about the lease is different: what
// is held would mean something else.
func (l *Ledger) Relend(to algo.Lease) bool {
	same := l.cfg.Lease
	same.Count, same.Interval, same.Fence = to.Count, to.Interval, to.Fence
	if same.IsBucket() && to.IsBucket() {
		same.Per, same.N, same.P, same.Tick = to.Per, to.N, to.P, to.Tick
	}
	if same != to {
		return false
	}
	l.cfg.Lease = to
	return true
}

// Usable is how many units Take would take at once, at most.
func (l *Ledger) Usable(now algo.Mono) int64 {
	lo, hi, known := l.line.Bounds(now)
	switch {
	case !known:
		return 0
	case l.isRolling():
		return l.rolling.usable(&l.cfg.Lease, lo, hi)
	}
	return l.fixed.usable(l.cfg.Lease.Per, lo, hi)
}

// PutBack undoes that units were taken at an instant, as a receipt says, and returns how
// many. Units of a fixed window are held again as long as it lasts; units of a rolling one
// go back to the store with the next tick, unless their use was reported already. Never
// more comes back than was taken here.
func (l *Ledger) PutBack(now algo.Mono, at algo.Store, units int64) int64 {
	stamp := int64(at) / int64(l.cfg.Lease.Per)
	if l.isRolling() {
		stamp = int64(at) / int64(l.cfg.Lease.Width)
	}
	alone := l.share.putBack(stamp, units)
	return alone + l.putBack(now, stamp, units-alone)
}

func (l *Ledger) putBack(now algo.Mono, stamp, units int64) int64 {
	if l.isRolling() {
		return l.rolling.putBack(stamp, units)
	}
	lo, _, known := l.line.Bounds(now)
	if !known || stamp < int64(lo)/int64(l.cfg.Lease.Per) {
		return 0
	}
	return l.fixed.putBack(stamp, units)
}

// Line is the middle of where the store's line may be.
func (l *Ledger) Line(now algo.Mono) (at algo.Store, known bool) {
	lo, hi, known := l.line.Bounds(now)
	return lo + (hi-lo)/2, known
}
