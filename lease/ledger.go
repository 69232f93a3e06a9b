package lease

import (
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/ledgers"
)

// Config describes a ledger.
type Config struct {
	Lease   algo.Lease
	Phase   algo.Mono // of its ticks within the interval, see algo.Phase
	Extras  int       // asks that requests may cause between two ticks, below 0 none but the first of a silent key; zero means 4
	MaxWait algo.Mono // the longest a request waits for quota; zero means 20 ms
	SkipDry bool      // fixed windows: no ticks while the store has nothing until the window ends
	Share   bool      // while the store does not answer: admit this instance's part of the limit
}

// Defaults of a Config.
const (
	DefaultExtras            = 4
	DefaultMaxWait algo.Mono = 20 * millisecond
)

const millisecond algo.Mono = 1_000_000

// Request is one request on its way through a ledger. It is decided as a whole: all of
// its cost is taken, or nothing.
type Request struct {
	Cost  int64     // at least 1
	Since algo.Mono // when it arrived

	counted, waiting bool
}

// Verdict says what becomes of a request.
type Verdict uint8

// The verdicts.
const (
	Refused     Verdict = iota
	Admitted            // its cost is spent
	Waiting             // to be asked about again: after the next Absorb or Failed, and at Answer.Until
	Unavailable         // nothing is held, the store does not answer, and no part is known: the policy for failures decides
)

// Answer is what a ledger says to a request.
type Answer struct {
	Verdict    Verdict
	Window     int64     // Admitted: the fixed window or the bucket it was charged to
	Until      algo.Mono // Waiting
	RetryAfter algo.Span // Refused: when it may be worth asking again, algo.Never for more than the limit
	Fallback   bool      // Admitted, Refused: by this instance's part of the limit, the store does not answer
	Send       bool      // Admitted: Poll has something to send
}

// Ledger is one instance's share of one key. What most requests touch stands first and
// close together: with many keys a decision costs what it has to fetch.
type Ledger struct {
	line      algo.Mapping
	fixed     fixed
	demand    demand // its counters first
	available int64  // at the store, when it last answered
	ticking   bool
	urgent    bool // a request needs an Ask now
	inFlight  bool
	scarce    bool // fewer units than holders
	inBuckets bool // a rolling window, or a bucket
	failures  int32
	cfg       Config
	rolling   rolling

	interval algo.Mono
	tickAt   algo.Mono
	lastTick algo.Mono
	extras   int // left until the next tick
	sent     algo.Mono
	waiting  int64 // units of the requests that wait

	rtt      algo.Mono
	dryUntil algo.Mono // the store has nothing worth asking for before
	epoch    int64     // of the last registration
	lastRate int64

	retryAt algo.Mono
	share   share
	ver     int64 // of the record, when it answered last
	verAt   algo.Mono
	lost    int64 // by how much records were behind it, until Figures asks
}

// New makes a ledger that holds nothing.
func New(cfg Config) *Ledger {
	if cfg.Extras == 0 {
		cfg.Extras = DefaultExtras
	}
	if cfg.MaxWait == 0 {
		cfg.MaxWait = DefaultMaxWait
	}
	l := &Ledger{cfg: cfg, inBuckets: cfg.Lease.Width > 0, interval: algo.Mono(cfg.Lease.Interval) * 1000, rtt: millisecond, epoch: -1}
	l.fixed.reset()
	l.rolling.upto = -1
	return l
}

// isRolling tells the two kinds of window apart.
func (l *Ledger) isRolling() bool { return l.inBuckets }

// Admit decides a request at now, or says that it has to wait, at most MaxWait in all.
// After a Waiting, call Poll: there may be an Ask to send.
func (l *Ledger) Admit(now algo.Mono, r *Request) Answer {
	if !r.counted {
		r.counted = true
		l.arm(now)
		l.demand.arrive(r.Cost)
	}
	asked := r.waiting
	if asked {
		r.waiting = false
		l.waiting -= r.Cost
	}
	stamp, crossing, ok := l.take(now, r.Cost)
	if ok {
		return Answer{Verdict: Admitted, Window: stamp}
	}
	if l.failures > 1 {
		if stamp, ok := l.partly(now, r.Cost); ok {
			a := Answer{Verdict: Admitted, Window: stamp, Fallback: true}
			if now >= l.retryAt && !l.inFlight && !l.urgent && l.extras > 0 {
				l.extras--
				l.urgent, a.Send = true, true
			}
			return a
		}
	}
	last := r.Since + l.cfg.MaxWait
	if now < last && r.Cost <= l.cfg.Lease.Count {
		switch {
		case l.isRolling() && asked && crossing > 0:
			// It came in answer to an ask.
			return l.wait(r, min(last, now+crossing))
		case !l.isRolling() && crossing > 0:
			// After a silence the bounds are wide; a round trip narrows them.
			if crossing > 2*l.rtt && !l.inFlight && !l.urgent && now >= l.retryAt && l.extras > 0 {
				l.extras--
				l.urgent = true
			}
			return l.wait(r, min(last, now+crossing))
		case l.failures > 0 && now < l.retryAt:
		case l.inFlight || l.urgent:
			return l.wait(r, last)
		case now >= l.dryUntil && l.extras > 0:
			l.extras--
			l.urgent = true
			return l.wait(r, last)
		}
	}
	told := l.epoch >= 0
	if dry := told && now < l.dryUntil; l.failures > 0 && !dry || !told && r.Cost <= l.cfg.Lease.Count {
		return l.alone(now, r.Cost)
	}
	return Answer{Verdict: Refused, RetryAfter: l.retryAfter(now, r.Cost)}
}

// Take is Admit for a request that can be admitted from what is held; otherwise it changes
// nothing, and Admit says what becomes of the request.
func (l *Ledger) Take(now algo.Mono, cost int64) (window int64, ok bool) {
	window, _, ok = l.take(now, cost)
	if ok {
		l.arrive(now, cost)
	}
	return window, ok
}

// arrive counts a request.
func (l *Ledger) arrive(now algo.Mono, cost int64) {
	l.arm(now)
	l.demand.arrive(cost)
}

// Withdraw forgets a request that waits: whoever made it has gone.
func (l *Ledger) Withdraw(r *Request) {
	if r.waiting {
		r.waiting = false
		l.waiting -= r.Cost
	}
}

func (l *Ledger) wait(r *Request, until algo.Mono) Answer {
	r.waiting = true
	l.waiting += r.Cost
	return Answer{Verdict: Waiting, Until: until}
}

func (l *Ledger) retryAfter(now algo.Mono, cost int64) algo.Span {
	if cost > l.cfg.Lease.Count {
		return algo.Never
	}
	at := max(l.dryUntil, l.retryAt)
	if at <= now {
		at = l.nextTick(now)
	}
	return algo.Span((at - now + 999) / 1000)
}

// take spends cost if so much is certainly valid now. crossing is not zero while it
// cannot be said which window or bucket it is: how long that takes.
func (l *Ledger) take(now algo.Mono, cost int64) (stamp int64, crossing algo.Mono, ok bool) {
	lo, hi, known := l.line.Bounds(now)
	if !known {
		return 0, 0, false
	}
	if l.isRolling() {
		return l.rolling.take(&l.cfg.Lease, lo, hi, cost)
	}
	return l.fixed.take(l.cfg.Lease.Per, lo, hi, cost)
}

// arm starts the ticks with the first request after a silence.
func (l *Ledger) arm(now algo.Mono) {
	if l.ticking {
		return
	}
	l.ticking = true
	l.extras = max(1, l.cfg.Extras)
	l.demand.quiet = 0
	l.lastTick, l.tickAt = now, l.nextTick(now)
}

// nextTick is the first instant after now that has the ledger's phase.
func (l *Ledger) nextTick(now algo.Mono) algo.Mono {
	return ledgers.NextTick(now, l.cfg.Phase, l.interval)
}

// Next is when Poll has something to do; false while the key is silent.
func (l *Ledger) Next() (at algo.Mono, ok bool) { return l.tickAt, l.ticking }

// Poll returns the Ask that is due at now, if there is one. What it gives back is gone
// from the ledger when it returns.
func (l *Ledger) Poll(now algo.Mono) (ask algo.Ask, send bool) {
	tick := l.ticking && now >= l.tickAt && l.tick(now)
	if l.inFlight || now < l.retryAt || !tick && !l.urgent {
		l.urgent = false
		return algo.Ask{}, false
	}
	// The first ask of an idle instance announces it, as a tick does.
	first := !tick && l.demand.average == 0 && l.demand.requests <= 1
	l.urgent, l.inFlight, l.sent = false, true, now
	return l.ask(now, tick || first), true
}

// tick closes an interval and reports whether there is anything to say.
func (l *Ledger) tick(now algo.Mono) bool {
	l.demand.close(max(now-l.lastTick, millisecond), l.interval)
	l.lastTick, l.tickAt, l.extras = now, l.nextTick(now), l.cfg.Extras
	l.expire(now)
	holds := l.holds()
	if l.demand.quiet >= 1 {
		l.demand.rate = 0
		if l.demand.quiet >= 2 && len(l.share.owed) == 0 || !holds {
			l.ticking, l.demand.average = false, 0
			return holds
		}
	}
	if l.cfg.SkipDry && l.failures == 0 && l.dryUntil-now > l.interval+5*millisecond {
		return false
	}
	// Below a request per interval the requests themselves say what there is to say.
	return !l.exact() || l.held() > 0 || l.demand.quiet > 0 || len(l.share.owed) > 0
}

// exact: so few requests, or so few units, that each request asks for itself.
func (l *Ledger) exact() bool { return l.exactAt(l.demand.rate) }

func (l *Ledger) exactAt(rate float64) bool {
	return l.scarce || float64(rate*float64(l.interval)) <= 1
}

func (l *Ledger) held() int64 {
	if l.inBuckets {
		return l.rolling.held()
	}
	return l.fixed.held()
}

// holds reports whether there is something to give back or to report.
func (l *Ledger) holds() bool {
	return l.held() > 0 || len(l.rolling.settle) > 0 || len(l.share.owed) > 0
}

func (l *Ledger) expire(now algo.Mono) {
	lo, hi, known := l.line.Bounds(now)
	if known && l.isRolling() {
		l.rolling.expire(&l.cfg.Lease, lo, hi)
		l.share.forget(int64(lo)/int64(l.cfg.Lease.Width) - l.cfg.Lease.Buckets)
	}
	if known && !l.isRolling() {
		l.fixed.expire(int64(lo) / int64(l.cfg.Lease.Per))
		l.share.forget(int64(lo) / int64(l.cfg.Lease.Per))
	}
}

// Remaining is what the store had when it last answered and what is held here; requests
// elsewhere may have taken it since. While the store is away it is what is left of the part.
func (l *Ledger) Remaining() int64 {
	if l.failures > 0 && l.shares() {
		return max(0, l.most()-l.got(l.share.at)) + l.held()
	}
	return max(0, l.available) + l.held()
}

// Idle reports whether the ledger may be dropped: it holds nothing and waits for nothing.
func (l *Ledger) Idle() bool { return !l.ticking && !l.inFlight && l.waiting == 0 && !l.holds() }
