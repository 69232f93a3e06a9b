package lease

import (
	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/ledgers"
)

// keeper is a Ledger as package ledgers drives it.
type keeper struct{ Ledger }

// Open implements ledgers.Ledger.
func (k *keeper) Open(p *escapement.Plan, s ledgers.Setting) {
	l, _ := p.Lease()
	k.Ledger = *New(Config{Lease: l, Phase: s.Phase, MaxWait: s.MaxWait, Share: p.Limit().OnFailure == escapement.LocalShare})
	k.Retime(0, s.Interval, s.Phase)
}

// Replan implements ledgers.Ledger.
func (k *keeper) Replan(p *escapement.Plan) bool {
	l, ok := p.Lease()
	if !ok || !k.Relend(l) {
		return false
	}
	k.cfg.Share = p.Limit().OnFailure == escapement.LocalShare
	return true
}

// Admit implements ledgers.Ledger.
func (k *keeper) Admit(now algo.Mono, r *ledgers.Request) ledgers.Answer {
	q := Request{Cost: r.Cost, Since: r.Since, counted: r.Counted, waiting: r.Queued}
	a := k.Ledger.Admit(now, &q)
	r.Counted, r.Queued = q.counted, q.waiting
	return ledgers.Answer{Verdict: ledgers.Verdict(a.Verdict), Stamp: a.Window, Until: a.Until, RetryAfter: a.RetryAfter, Fallback: a.Fallback, Send: a.Send}
}

// Withdraw implements ledgers.Ledger.
func (k *keeper) Withdraw(r *ledgers.Request) {
	q := Request{Cost: r.Cost, waiting: r.Queued}
	k.Ledger.Withdraw(&q)
	r.Queued = q.waiting
}

// Warm implements ledgers.Ledger.
func (k *keeper) Warm() int64 {
	n := k.fixed.slots[0].window + k.fixed.slots[1].units + k.available
	if k.isRolling() {
		n += int64(k.cfg.Lease.Width) + int64(len(k.rolling.lots))
	}
	return n
}

// Charge implements ledgers.Ledger: units are taken from what is held, and the rest is
// reported later if the store is away. What was spent in a window that is over is dropped.
func (k *keeper) Charge(now algo.Mono, units int64, at algo.Store) (stamp, charged int64) {
	line, known := k.Line(now)
	if !known || at != 0 && k.window(at) != k.window(line) {
		return 0, 0
	}
	if held := min(units, k.Usable(now)); held > 0 {
		if s, ok := k.Take(now, held); ok {
			stamp, charged = s, held
		}
	}
	if charged < units {
		if s, ok := k.spendAlone(now, units-charged); ok {
			stamp, charged = s, units
		}
	}
	return stamp, charged
}

// window is the fixed window of an instant; of a rolling one any recent instant will do.
func (k *keeper) window(at algo.Store) int64 {
	if k.isRolling() {
		return 0
	}
	return int64(at) / int64(k.cfg.Lease.Per)
}

// Told implements ledgers.Ledger.
func (k *keeper) Told(now algo.Mono) bool {
	_, known := k.Line(now)
	return known
}

// Figures implements ledgers.Ledger.
func (k *keeper) Figures() ledgers.Figures {
	f := ledgers.Figures{Count: k.cfg.Lease.Count, Lost: k.lost}
	k.lost = 0
	return f
}

// Decide implements ledgers.Ledger.
func (k *keeper) Decide(core *algo.Plan, now algo.Mono, cost int64) (v algo.Verdict, ok bool) {
	if k.isRolling() {
		stamp, ok := k.Take(now, cost)
		if !ok {
			return v, false
		}
		return k.Verdict(core, now, ledgers.Said{Admitted: true, Stamp: stamp, Units: cost}), true
	}
	lo, hi, known := k.line.Bounds(now)
	if !known {
		return v, false
	}
	per := k.cfg.Lease.Per
	window, _, ok := k.fixed.take(per, lo, hi, cost)
	if !ok {
		return v, false
	}
	k.arrive(now, cost)
	start := algo.Store(window) * algo.Store(per)
	at := min(max(lo+(hi-lo)/2, start), start+algo.Store(per)-1)
	return core.Told(algo.Told{Admitted: true, Now: at, Start: start, Units: cost, Remaining: k.Remaining()}), true
}

// Verdict implements ledgers.Ledger. The instant of a decision lies in the window or the
// bucket that its units are charged to.
func (k *keeper) Verdict(core *algo.Plan, now algo.Mono, s ledgers.Said) algo.Verdict {
	at, known := k.Line(now)
	if !known {
		at = 0
	}
	p := &k.cfg.Lease
	if !k.isRolling() {
		if s.Admitted && !s.None {
			start := algo.Store(s.Stamp) * algo.Store(p.Per)
			at = min(max(at, start), start+algo.Store(p.Per)-1)
		}
		return core.Told(algo.Told{Admitted: s.Admitted, None: s.None, Now: at, Start: at - at%algo.Store(p.Per),
			Units: s.Units, Remaining: s.Left(k.Remaining()), Wait: s.Wait})
	}
	bucket := int64(at) / int64(p.Width)
	if s.Admitted && !s.None {
		if start := algo.Store(s.Stamp) * algo.Store(p.Width); at < start {
			at, bucket = start, s.Stamp
		}
	}
	if p.IsBucket() {
		return core.Told(algo.Told{Admitted: s.Admitted, None: s.None, Now: at, Units: s.Units, Remaining: s.Left(k.Remaining()), Wait: s.Wait})
	}
	r := algo.Rolled{Admitted: s.Admitted, None: s.None, Now: at, Units: s.Units, InUse: max(0, p.Count-s.Left(k.Remaining())), Wait: s.Wait}
	if r.InUse > 0 {
		r.Free = algo.Store(bucket+p.Buckets+1) * algo.Store(p.Width)
	}
	if r.Wait > 0 && r.Wait != algo.Never { // ends on a bucket
		end := at + algo.Store(r.Wait) + algo.Store(p.Width) - 1
		r.Wait = algo.Span(end - end%algo.Store(p.Width) - at)
	}
	return core.Rolled(r)
}
