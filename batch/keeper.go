package batch

import (
	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/ledgers"
)

// keeper is a Ledger as package ledgers drives it.
type keeper struct{ Ledger }

// Open implements ledgers.Ledger.
func (k *keeper) Open(p *escapement.Plan, s ledgers.Setting) {
	k.Ledger = *New(Config{Plan: p.Core(), Interval: s.Interval, Phase: s.Phase, Instance: s.Instance, Numbers: s.Numbers, MaxWait: s.MaxWait})
}

// Replan implements ledgers.Ledger.
func (k *keeper) Replan(p *escapement.Plan) bool { return k.Recount(p.Core()) }

// Take implements ledgers.Ledger.
func (k *keeper) Take(now algo.Mono, cost int64) (stamp int64, ok bool) {
	window, ok := k.Ledger.Take(now, cost)
	return int64(window), ok
}

// Warm implements ledgers.Ledger.
func (k *keeper) Warm() int64 { return k.count + k.left + int64(len(k.pending)) + int64(k.interval) }

// Decide implements ledgers.Ledger.
func (k *keeper) Decide(core *algo.Plan, now algo.Mono, cost int64) (v algo.Verdict, ok bool) {
	stamp, ok := k.Take(now, cost)
	if !ok {
		return v, false
	}
	return k.Verdict(core, now, ledgers.Said{Admitted: true, Stamp: stamp, Units: cost}), true
}

// Admit implements ledgers.Ledger.
func (k *keeper) Admit(now algo.Mono, r *ledgers.Request) ledgers.Answer {
	a := k.Ledger.Admit(now, &Request{Cost: r.Cost, Since: r.Since})
	return ledgers.Answer{Verdict: ledgers.Verdict(a.Verdict), Stamp: int64(a.Window), Until: a.Until, RetryAfter: a.RetryAfter}
}

// Withdraw implements ledgers.Ledger: a request that waits is not counted.
func (k *keeper) Withdraw(*ledgers.Request) {}

// Charge implements ledgers.Ledger.
func (k *keeper) Charge(now algo.Mono, units int64, at algo.Store) (stamp, charged int64) {
	window, charged := k.Ledger.Charge(now, units, at)
	return int64(window), charged
}

// PutBack implements ledgers.Ledger.
func (k *keeper) PutBack(_ algo.Mono, at algo.Store, units int64) int64 {
	return k.Ledger.PutBack(at, units)
}

// Told implements ledgers.Ledger.
func (k *keeper) Told(now algo.Mono) bool { return k.current(now) }

// Line implements ledgers.Ledger.
func (k *keeper) Line(now algo.Mono) (algo.Store, bool) {
	lo, hi, known := k.line.Bounds(now)
	return lo + (hi-lo)/2, known
}

// Leave implements ledgers.Ledger.
func (k *keeper) Leave(now algo.Mono) (algo.Flush, bool) {
	k.sent = now
	return k.Ledger.Leave()
}

// Figures implements ledgers.Ledger.
func (k *keeper) Figures() ledgers.Figures {
	f := ledgers.Figures{Count: k.count, Used: k.used, Unseen: k.unseen, Late: k.late}
	k.late = 0
	return f
}

// Verdict implements ledgers.Ledger. The instant of a decision lies in the window that it
// counts in; that of a refusal is the earliest possible, so that no wait ends early.
func (k *keeper) Verdict(core *algo.Plan, now algo.Mono, s ledgers.Said) algo.Verdict {
	at, known := k.Line(now)
	if !known {
		return core.Told(algo.Told{Admitted: s.Admitted, None: s.None, Units: s.Units, Wait: s.Wait})
	}
	if !s.Admitted {
		at, _, _ = k.line.Bounds(now)
	}
	start := k.window
	if s.Admitted && !s.None {
		start = algo.Store(s.Stamp)
	}
	at = max(at, start)
	if k.per > 0 {
		at = min(at, start+algo.Store(k.per)-1)
	}
	wait := s.Wait
	if !k.sliding && now < k.ends && s.Units <= k.count {
		wait = 0 // until the window ends
	}
	return core.Told(algo.Told{Admitted: s.Admitted, None: s.None, Now: at, Start: start, Units: s.Units, Remaining: s.Left(k.Remaining()), Wait: wait})
}
