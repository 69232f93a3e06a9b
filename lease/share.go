package lease

import (
	"slices"

	"github.com/escapement-io/escapement/algo"
)

// share is how a ledger goes on while the store does not answer, if its Config says so: it
// admits up to its instance's part of the limit, as the demand was divided when the store
// was last heard, in each window, and what it was granted of that window counts. The parts
// of all instances come to the limit; no record holds them to it.
//
// What was used so is reported with the first ask after one that was answered: an ask is
// never repeated, so that what it reports cannot count twice, and while none is answered
// none reports. If that ask is lost the report is as well. So for a window and an interval
// after the store is back the ledger asks for no more than its part: then the parts hold
// without the report, and it matters only to those who have none.
type share struct {
	part int64         // of the demand, in millionths; 0 if it is not known
	keep algo.Mono     // until then no more than the part is asked for
	at   int64         // the last window or bucket in which it was used
	used []algo.Amount // by window or bucket, as long as it counts
	owed []algo.Amount // of it, what was not reported
}

// shares reports whether the ledger has a part to go on with.
func (l *Ledger) shares() bool { return l.cfg.Share && l.share.part > 0 && !l.cfg.Lease.IsBucket() }

// most is the part in units, rounded down.
func (l *Ledger) most() int64 { return l.cfg.Lease.Count * l.share.part / 1_000_000 }

// Part is what the ledger admits of each window while the store is away, what it was
// granted included; 0 if it goes on with nothing.
func (l *Ledger) Part() int64 {
	if !l.shares() {
		return 0
	}
	return l.most()
}

// stampOf is where use at now counts: the window that the store is in, or the latest
// bucket that it may be in.
func (l *Ledger) stampOf(now algo.Mono) (stamp int64, known bool) {
	lo, hi, known := l.line.Bounds(now)
	if l.isRolling() {
		return int64(hi) / int64(l.cfg.Lease.Width), known
	}
	return int64(lo+(hi-lo)/2) / int64(l.cfg.Lease.Per), known
}

// got is what was granted or used of the window that ends at a stamp.
func (l *Ledger) got(stamp int64) (units int64) {
	if !l.isRolling() {
		if s := &l.fixed.slots[stamp&1]; s.window == stamp {
			units = s.granted
		}
		return units + l.share.within(stamp, stamp)
	}
	from := stamp - l.cfg.Lease.Buckets
	for _, o := range l.rolling.own {
		if o.Bucket >= from {
			units += o.Units
		}
	}
	return units + l.rolling.held() + l.share.within(from, algo.MaxInt)
}

func (s *share) within(from, to int64) (units int64) {
	for _, a := range s.used {
		if a.Bucket >= from && a.Bucket <= to {
			units += a.Units
		}
	}
	return units
}

// partly admits a request within the part.
func (l *Ledger) partly(now algo.Mono, cost int64) (stamp int64, ok bool) {
	stamp, known := l.stampOf(now)
	if !known || !l.shares() {
		return 0, false
	}
	l.share.at = stamp
	if cost > l.most()-l.got(stamp) {
		return 0, false
	}
	l.spend(stamp, cost)
	return stamp, true
}

func (l *Ledger) spend(stamp, units int64) {
	s := &l.share
	s.used, s.owed = add(s.used, stamp, units), add(s.owed, stamp, units)
}

// alone answers a request that cannot be admitted from what is held while the store does
// not answer.
func (l *Ledger) alone(now algo.Mono, cost int64) Answer {
	if !l.shares() {
		return Answer{Verdict: Unavailable, RetryAfter: l.retryAfter(now, cost)}
	}
	if stamp, ok := l.partly(now, cost); ok {
		return Answer{Verdict: Admitted, Window: stamp, Fallback: true}
	}
	return Answer{Verdict: Refused, RetryAfter: l.retryAfter(now, cost), Fallback: true}
}

// spendAlone counts units that were used while the store does not answer, above the part
// too; false if it answers, or there is nothing to go on with.
func (l *Ledger) spendAlone(now algo.Mono, units int64) (stamp int64, ok bool) {
	stamp, known := l.stampOf(now)
	if l.failures == 0 || !known || !l.shares() {
		return 0, false
	}
	l.arm(now)
	l.spend(stamp, units)
	return stamp, true
}

// putBack undoes use that was not reported yet.
func (s *share) putBack(stamp, units int64) int64 {
	for i := range s.owed {
		if s.owed[i].Bucket != stamp {
			continue
		}
		units = min(units, s.owed[i].Units)
		s.owed[i].Units -= units
		for j := range s.used {
			if s.used[j].Bucket == stamp {
				s.used[j].Units -= units
			}
		}
		return units
	}
	return 0
}

// forget drops what counts no more at stamps before the one given.
func (s *share) forget(before int64) {
	old := func(a algo.Amount) bool { return a.Bucket < before }
	s.used, s.owed = slices.DeleteFunc(s.used, old), slices.DeleteFunc(s.owed, old)
}

// report puts into an ask what is owed. It says nothing while it is in doubt that asks
// arrive, unless it is the last one.
func (l *Ledger) report(a *algo.Ask, last bool) {
	s := &l.share
	if len(s.owed) == 0 || l.failures > 0 && !last {
		return
	}
	if l.isRolling() {
		a.Used = append(a.Used, s.owed...)
		s.owed = nil
		return
	}
	s.owed = slices.DeleteFunc(s.owed, func(o algo.Amount) bool {
		if o.Bucket == a.Window {
			a.Spent += o.Units
		}
		return o.Bucket == a.Window
	})
}

// confine counts the part that was used as what this instance has, and keeps an ask to the
// part as long as that is needed.
func (l *Ledger) confine(a *algo.Ask, now algo.Mono) {
	s := &l.share
	stamp, known := l.stampOf(now)
	if known && !l.isRolling() {
		stamp = a.Window
	}
	if len(s.used) > 0 && known {
		if l.isRolling() {
			a.Have += s.within(stamp-l.cfg.Lease.Buckets, algo.MaxInt)
		} else {
			a.Have += s.within(stamp, stamp)
			a.HaveNext += s.within(stamp+1, stamp+1)
		}
	}
	if now >= s.keep && (l.failures == 0 || len(s.used) == 0) || !l.shares() {
		return
	}
	a.Want, a.WantNext = min(a.Want, l.most()), min(a.WantNext, l.most())
	if known {
		a.Want = min(a.Want, max(0, l.most()-l.got(stamp)))
		if !l.isRolling() {
			a.WantNext = min(a.WantNext, max(0, l.most()-l.got(stamp+1)))
		}
	}
	a.Base = min(a.Base, a.Want)
}

// hear takes in the part that a reply tells, before the failures before it are forgotten.
func (l *Ledger) hear(now algo.Mono, g *algo.Grant) {
	s := &l.share
	if l.failures > 0 && len(s.used) > 0 {
		s.keep = now + algo.Mono(l.cfg.Lease.Per)*1000 + l.interval
	}
	if now < s.keep {
		return // the demand that the store knows is that of those who were heard already
	}
	if s.part = g.Share; l.lastRate == 0 {
		s.part = 0
	}
}
