package lease

import (
	"math"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/ledgers"
)

// ask says what the instance has, wants, and gives back until the next tick and the round
// trip after it.
func (l *Ledger) ask(now algo.Mono, tick bool) algo.Ask {
	l.expire(now)
	ahead := l.interval
	if !tick {
		ahead = l.nextTick(now) - now
		if ahead < 2*l.rtt {
			ahead += l.interval
		}
	}
	ahead += 2*l.rtt + 2*millisecond
	rate := l.demand.rate
	registered := l.demand.average
	if !tick {
		rate = l.demand.projected(now-l.lastTick, l.interval)
	}
	if !tick || registered == 0 {
		registered = max(registered, rate)
	}
	a := algo.Ask{Epoch: l.epoch, LastRate: l.lastRate, Window: -1}
	perWindow := float64(registered * float64(int64(l.cfg.Lease.Per)*1000))
	a.Rate = int64(min(perWindow, float64(10*l.cfg.Lease.Count)))
	if a.Rate == 0 && l.demand.units > 0 {
		a.Rate = 1
	}
	l.lastRate = a.Rate
	least := int64(0)
	if !tick {
		least = l.demand.step(l.cfg.Lease.Count)
	} else {
		l.demand.grow = 1
	}
	f := forecast{rate: rate, cost: l.demand.cost, ahead: ahead, waiting: l.waiting, nothing: l.exactAt(rate)}
	if l.isRolling() {
		l.rolling.fill(&a, &l.cfg.Lease, f, l.position(now), tick, l.rtt)
		a.Base = max(a.Base, least)
	} else {
		l.fixed.fill(&a, l.cfg.Lease.Per, f, l.position(now), tick)
	}
	a.Want = max(a.Want, least)
	l.report(&a, false)
	l.confine(&a, now)
	if l.ver > 0 && now-l.verAt <= algo.Mono(l.cfg.Lease.Per)*1000 {
		a.Ver = l.ver // a record lives at least a window longer
	}
	return a
}

// forecast is what an ask reckons with.
type forecast struct {
	rate, cost float64
	ahead      algo.Mono // until the ask after this one is answered
	waiting    int64     // units of the requests that wait for this one
	nothing    bool      // each request asks for itself
}

func (f forecast) need(within algo.Mono) int64 {
	if f.nothing {
		return 0
	}
	return need(f.rate, f.cost, within)
}

// margin is how far a need may exceed its mean.
func (f forecast) margin() int64 {
	if f.nothing {
		return 0
	}
	return int64(math.Ceil(spread(float64(f.rate*float64(f.ahead)), f.cost)))
}

// position is where the store's line may be.
type position struct {
	lo, hi algo.Store
	known  bool
}

func (l *Ledger) position(now algo.Mono) position {
	lo, hi, known := l.line.Bounds(now)
	return position{lo, hi, known}
}

// Absorb takes in the answer to the Ask that Poll returned last. Requests that wait are
// to be asked about again.
func (l *Ledger) Absorb(now algo.Mono, g *algo.Grant) {
	l.inFlight = false
	l.hear(now, g)
	l.failures, l.retryAt = 0, 0
	l.ver, l.verAt = g.Ver, now
	l.lost += g.Lost
	if !g.Held && l.line.Observe(l.sent, now, g.At) {
		// What is held was granted on a line that is no more.
		l.fixed.reset()
		l.rolling.lots = l.rolling.lots[:0]
	}
	l.rtt += (min(now-l.sent, 4*l.rtt) - l.rtt) / 8
	l.epoch, l.available = g.Epoch, g.Available
	l.scarce = l.cfg.Lease.Count < g.Instances
	lo, _, _ := l.line.Bounds(now)
	l.dryUntil = 0
	until := func(at algo.Store) algo.Mono { return now + algo.Mono(at-lo)*1000 }
	little := g.Available < max(1, l.cfg.Lease.Count/64)
	switch {
	case l.isRolling():
		l.rolling.absorb(g)
		if g.Available == 0 && l.exact() {
			l.dryUntil = until(g.Free)
		} else if little && !l.exact() {
			l.dryUntil = l.nextTick(now)
		}
	default:
		l.fixed.add(g.Window, g.Units)
		l.fixed.add(g.Window+1, g.Next)
		if g.Available == 0 {
			l.dryUntil = until(g.Free)
		} else if little {
			l.dryUntil = l.nextTick(now)
		}
	}
}

// Failed says that the fate of the last Ask is unknown, or that it could not be sent.
// What it gave back or reported is not said again: the store then assumes the latest
// possible use, which is safe. From the second failure in a row on, asking pauses for
// 100 ms, then longer, up to 1 s.
func (l *Ledger) Failed(now algo.Mono) {
	l.inFlight = false
	l.failures++
	if pause := ledgers.Pause(int(l.failures), l.cfg.Phase); pause > 0 {
		l.retryAt = now + pause
	}
}

// Leave gives back what can be given back; the ledger is not to be used after it. Units of
// the next window, which the store takes back only when it has begun, are lost. Nothing is
// sent if there is nothing to say, or while an Ask is in flight: then call Leave again
// after its Absorb or Failed.
func (l *Ledger) Leave(now algo.Mono) (ask algo.Ask, send bool) {
	l.expire(now)
	if l.inFlight || !l.holds() {
		return algo.Ask{}, false
	}
	l.demand, l.waiting = demand{}, 0
	l.ticking, l.inFlight, l.sent = false, true, now
	ask = l.ask(now, true)
	l.report(&ask, true)
	l.fixed.reset()
	l.rolling.lots, l.share.owed = nil, nil
	return ask, true
}
