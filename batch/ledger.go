package batch

import (
	"sync/atomic"

	"github.com/escapement-io/escapement/algo"
)

// Config describes a ledger.
type Config struct {
	Plan     *algo.Plan // a fixed_window or a sliding_window
	Interval algo.Span  // between two reports, below the period
	Phase    algo.Mono  // of the ticks within the interval, see algo.Phase
	Instance int64      // tells processes apart: below 2^53, not zero, and drawn anew by each, for its reports are numbered from 1
	// Numbers is the last number that a report of this instance has. A key that is dropped and
	// comes back has a new ledger, of which no report may have a number of the old one's: to the
	// store it would be a repetition. Nil is for a ledger that is the only one of its key.
	Numbers *atomic.Int64
	MaxWait algo.Mono // the longest a request waits for the first reply of a window; zero means 20 ms
}

// DefaultMaxWait is the MaxWait of the zero Config.
const DefaultMaxWait algo.Mono = 20 * millisecond

const millisecond algo.Mono = 1_000_000

// Request is one request on its way through a ledger, decided as a whole.
type Request struct {
	Cost  int64     // at least 1
	Since algo.Mono // when it arrived
}

// Verdict says what becomes of a request.
type Verdict uint8

// The verdicts.
const (
	Refused     Verdict = iota
	Admitted            // its cost is counted
	Waiting             // to be asked about again: after the next Absorb or Failed, and at Answer.Until
	Unavailable         // what was told is spent or over and the store does not answer: the policy for failures decides
)

// Answer is what a ledger says to a request.
type Answer struct {
	Verdict    Verdict
	Window     algo.Store // Admitted: the start of the window it counts in
	Until      algo.Mono  // Waiting
	RetryAfter algo.Span  // Refused: when it may be worth asking again, algo.Never for more than the limit
}

// Ledger is one instance's view of one key.
type Ledger struct {
	cfg     Config
	count   int64
	per     algo.Span
	sliding bool
	asks    bool // at the end of a window where the next one lies is the store's to say: first use, calendars

	line   algo.Mapping
	sent   algo.Mono
	unseen int64 // by others, between the last two replies

	told   bool       // by the store, ever
	window algo.Store // the start of the window this ledger is in
	ends   algo.Mono
	used   int64 // in it, when the store last told
	left   int64 // told to remain then
	since  int64 // admitted here and not contained in left
	own    int64 // admitted here in this window: never more than the limit, whatever the store forgets

	pending  []algo.Spent // not in a flush yet
	flush    algo.Flush   // the last one made
	unknown  bool         // it is not answered yet
	inFlight bool
	late     int64 // units that came after their window, until Figures asks

	interval algo.Mono
	tickAt   algo.Mono
	ticking  bool
	asked    bool // a request came since the last tick
	urgent   bool // a request needs a reply now
	failures int
	retryAt  algo.Mono
}

// New makes a ledger that was told nothing yet.
func New(cfg Config) *Ledger {
	if cfg.MaxWait == 0 {
		cfg.MaxWait = DefaultMaxWait
	}
	n := cfg.Plan.Numbers()
	return &Ledger{cfg: cfg, count: n.Count, per: n.Per, sliding: cfg.Plan.Algorithm() == algo.SlidingWindow,
		asks: n.FirstUse || n.Calendar != nil, interval: algo.Mono(cfg.Interval) * 1000, flush: algo.Flush{Instance: cfg.Instance, Interval: cfg.Interval}}
}

// Admit decides a request at now, or says that it has to wait, at most MaxWait in all.
// After a Waiting, call Poll: there may be a Flush to send.
func (l *Ledger) Admit(now algo.Mono, r *Request) Answer {
	l.asked = true
	l.arm(now)
	if r.Cost > l.count {
		return Answer{Verdict: Refused, RetryAfter: algo.Never}
	}
	if !l.current(now) {
		return l.ask(now, r)
	}
	if l.fits(r.Cost) {
		l.enter(r.Cost)
		return Answer{Verdict: Admitted, Window: l.window}
	}
	return l.refuse(now)
}

// Take is Admit for a request that can be admitted from what was told; otherwise it counts
// nothing, and Admit says what becomes of the request.
func (l *Ledger) Take(now algo.Mono, cost int64) (window algo.Store, ok bool) {
	if cost > l.count || !l.current(now) || !l.fits(cost) {
		return 0, false
	}
	l.asked = true
	l.arm(now)
	l.enter(cost)
	return l.window, true
}

// current enters the window of now if its place is known, and reports whether what was
// told is about it.
func (l *Ledger) current(now algo.Mono) bool {
	if !l.told {
		return false
	}
	if now < l.ends {
		return true
	}
	if l.asks || l.failures > 0 {
		return false
	}
	l.roll(now)
	return true
}

func (l *Ledger) fits(cost int64) bool { return l.left-l.since >= cost && l.own+cost <= l.count }

// enter counts units in the window that is open.
func (l *Ledger) enter(units int64) {
	l.since += units
	l.own += units
	if units > 0 {
		l.pending = add(l.pending, l.window, units)
	}
}

// ask lets a request wait for the store: it is the first, or the first of a window.
func (l *Ledger) ask(now algo.Mono, r *Request) Answer {
	last := r.Since + l.cfg.MaxWait
	switch {
	case now >= last || now < l.retryAt:
		a := l.refuse(now)
		a.Verdict = Unavailable // nothing is known of this window
		return a
	case !l.inFlight:
		l.urgent = true
	}
	return Answer{Verdict: Waiting, Until: last}
}

func (l *Ledger) refuse(now algo.Mono) Answer {
	a := Answer{Verdict: Refused}
	if l.failures > 0 {
		a.Verdict = Unavailable
	}
	// A sliding window may have room at the next report, a fixed one when it ends.
	at := l.tickAt
	if !l.sliding && l.told && now < l.ends {
		at = l.ends
	}
	if at = max(at, l.retryAt); at > now {
		a.RetryAfter = algo.Span((at - now + 999) / 1000)
	}
	return a
}

func add(parts []algo.Spent, window algo.Store, units int64) []algo.Spent {
	for i := len(parts) - 1; i >= 0; i-- {
		if parts[i].Window == window {
			parts[i].Units += units
			return parts
		}
	}
	return append(parts, algo.Spent{Window: window, Units: units})
}

// roll enters the next window without asking. Of a sliding window it knows that the
// window that ends weighs fully, of a fixed one that the whole limit is free. What it
// has not reported yet counts in the new window when it is.
func (l *Ledger) roll(now algo.Mono) {
	before := l.used
	l.window += algo.Store(l.per)
	l.ends += algo.Mono(l.per) * 1000
	for now >= l.ends {
		before = 0
		l.window += algo.Store(l.per)
		l.ends += algo.Mono(l.per) * 1000
	}
	l.used, l.since, l.own = 0, 0, 0
	l.left = l.fresh(before)
}

// fresh is what is left at the beginning of a window.
func (l *Ledger) fresh(before int64) int64 {
	if !l.sliding {
		return l.count
	}
	return l.count - min(before, l.count)
}

// Remaining is the last known global figure less what was admitted here since.
func (l *Ledger) Remaining() int64 { return max(0, l.left-l.since) }

// Idle reports whether the ledger may be dropped: it has nothing to report.
func (l *Ledger) Idle() bool { return !l.ticking && !l.inFlight && !l.unknown && len(l.pending) == 0 }
