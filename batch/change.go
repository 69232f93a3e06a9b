package batch

import "github.com/escapement-io/escapement/algo"

// Retime changes the interval and the phase of the reports, from the next one on.
func (l *Ledger) Retime(now algo.Mono, interval algo.Span, phase algo.Mono) {
	l.interval, l.cfg.Interval, l.cfg.Phase = algo.Mono(interval)*1000, interval, phase
	if l.ticking {
		l.tickAt = l.nextTick(now)
	}
}

// Recount goes on under a plan that differs in its count. It reports false, and changes
// nothing, if the windows of the plan are others.
func (l *Ledger) Recount(p *algo.Plan) bool {
	is, to := l.cfg.Plan.Numbers(), p.Numbers()
	if l.cfg.Plan.Algorithm() != p.Algorithm() || is.Per != to.Per || is.FirstUse != to.FirstUse || is.Calendar != to.Calendar {
		return false
	}
	l.left += to.Count - is.Count
	l.cfg.Plan, l.count = p, to.Count
	return true
}

// Usable is how many units Take would take at once.
func (l *Ledger) Usable(now algo.Mono) int64 {
	if !l.current(now) {
		return 0
	}
	return max(0, min(l.left-l.since, l.count-l.own))
}

// Charge counts units that were spent already, whatever is left: at an instant, or now if
// that is zero. What was spent in a fixed window that is over, or before the window before
// a sliding one, is dropped; so is everything before the first reply, and what would make
// the units that are not reported yet reach 2^53. It returns what is counted, and in which
// window.
func (l *Ledger) Charge(now algo.Mono, units int64, at algo.Store) (window algo.Store, counted int64) {
	l.current(now)
	if window = l.of(at); !l.told || window < l.window && !l.sliding || window+algo.Store(l.per) < l.window {
		return 0, 0
	}
	waiting := int64(0)
	for i := range l.pending {
		waiting += l.pending[i].Units
	}
	units = min(units, max(0, algo.MaxInt-max(waiting, l.own)))
	l.asked = true
	l.arm(now)
	if window == l.window {
		l.enter(units)
	} else if units > 0 {
		l.pending = add(l.pending, window, units)
	}
	return window, units
}

// PutBack undoes that units were counted at an instant, as a receipt says, unless they are
// reported already. It returns how many.
func (l *Ledger) PutBack(at algo.Store, units int64) int64 {
	window := l.of(at)
	for i := range l.pending {
		p := &l.pending[i]
		if p.Window != window {
			continue
		}
		units = min(units, p.Units)
		p.Units -= units
		if window == l.window {
			l.since -= units
			l.own -= units
		}
		return units
	}
	return 0
}

// of is the window of an instant: the open one, or one before it; of zero it is the open one.
func (l *Ledger) of(at algo.Store) algo.Store {
	if at == 0 || at >= l.window || l.per == 0 {
		return l.window
	}
	behind := (l.window - at + algo.Store(l.per) - 1) / algo.Store(l.per)
	return l.window - behind*algo.Store(l.per)
}
