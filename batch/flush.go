package batch

import (
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/ledgers"
)

// arm starts the ticks with the first request after a silence.
func (l *Ledger) arm(now algo.Mono) {
	if !l.ticking {
		l.ticking, l.tickAt = true, l.nextTick(now)
	}
}

// nextTick is the first instant after now that has the ledger's phase.
func (l *Ledger) nextTick(now algo.Mono) algo.Mono {
	return ledgers.NextTick(now, l.cfg.Phase, l.interval)
}

// Next is when Poll has something to do; false while the key is silent.
func (l *Ledger) Next() (at algo.Mono, ok bool) { return l.tickAt, l.ticking }

// Poll returns the Flush that is due at now, if there is one. A window that refuses
// reports too: it learns that way when there is room again.
func (l *Ledger) Poll(now algo.Mono) (f algo.Flush, send bool) {
	due := l.urgent
	if l.ticking && now >= l.tickAt {
		l.tickAt = l.nextTick(now)
		reports := l.asked || l.unknown || len(l.pending) > 0
		due = due || reports
		l.asked, l.ticking = false, reports
	}
	l.urgent = false
	if !due || l.inFlight || now < l.retryAt {
		return algo.Flush{}, false
	}
	l.sent = now
	return l.next(), true
}

// next is the flush that is not answered yet, unchanged, or a new one of what is pending.
func (l *Ledger) next() algo.Flush {
	if !l.unknown {
		l.flush.Number = l.number()
		l.flush.Interval = l.cfg.Interval
		l.flush.Parts, l.pending = l.pending, nil
		l.unknown = true
	}
	l.inFlight = true
	return l.flush
}

// number is the next number of a report.
func (l *Ledger) number() int64 {
	if l.cfg.Numbers == nil {
		return l.flush.Number + 1
	}
	return l.cfg.Numbers.Add(1)
}

// Leave returns the last Flush of a ledger that is not to be used any more; nothing is
// sent if there is nothing to say. While it fails, call Leave again.
func (l *Ledger) Leave() (f algo.Flush, send bool) {
	if l.inFlight || !l.unknown && len(l.pending) == 0 {
		return algo.Flush{}, false
	}
	return l.next(), true
}

// Absorb takes in the answer to the Flush that Poll returned last. Requests that wait are
// to be asked about again.
func (l *Ledger) Absorb(now algo.Mono, g *algo.Flushed) {
	l.inFlight, l.unknown, l.failures, l.retryAt = false, false, 0, 0
	l.late += g.Late
	flushed := l.flush.Parts
	l.line.Observe(l.sent, now, g.At)
	l.unseen = 0
	if l.told && g.Window >= l.window {
		before := l.used
		if g.Window != l.window {
			before = 0
		}
		l.unseen = max(0, g.Used-before-units(flushed, g.Window))
	}
	switch {
	case l.told && g.Window == l.window:
		l.since = units(l.pending, l.window)
		l.used, l.left, l.ends = g.Used, g.Remaining, now+algo.Mono(g.Rest)*1000
	case l.told && g.Window < l.window && !l.asks:
		// Answered just before the boundary, or by a store whose clock went back: it is
		// about the window that weighs now. This ledger does not go back.
		if now >= l.ends {
			l.roll(now)
		}
		l.since = units(l.pending, l.window) + units(flushed, l.window)
		l.left = l.fresh(g.Used + units(l.pending, g.Window))
	default:
		back := l.told && g.Window < l.window // left before, so what was admitted in it is not known any more
		l.told, l.window, l.ends = true, g.Window, now+algo.Mono(g.Rest)*1000
		l.used, l.left = g.Used, g.Remaining
		l.since = units(l.pending, g.Window)
		l.own = l.since + units(flushed, g.Window)
		if back {
			l.own = l.count
		}
	}
}

func units(parts []algo.Spent, window algo.Store) (n int64) {
	for _, p := range parts {
		if p.Window == window {
			n += p.Units
		}
	}
	return n
}

// Failed says that the fate of the last Flush is unknown, or that it could not be sent;
// it is repeated. From the second failure in a row on, asking pauses for 100 ms, then
// longer, up to 1 s.
func (l *Ledger) Failed(now algo.Mono) {
	l.inFlight = false
	l.failures++
	if pause := ledgers.Pause(l.failures, l.cfg.Phase); pause > 0 {
		l.retryAt = now + pause
	}
}
