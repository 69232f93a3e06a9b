package batch

import "github.com/escapement-io/escapement/algo"

// Config describes a ledger.
type Config struct {
	Plan     *algo.Plan // a fixed_window or a sliding_window
	Interval algo.Span  // between two reports, below the period
	Phase    algo.Mono  // of the ticks within the interval, see algo.Phase
	Instance int64      // tells processes apart: below 2^53, not zero, and drawn anew by each, for its reports are numbered from 1
	MaxWait  algo.Mono  // the longest a request waits for the first reply of a window; zero means 20 ms
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
	cfg      Config
	count    int64
	per      algo.Span
	sliding  bool
	firstUse bool

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
	late     int64

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
		firstUse: n.FirstUse, interval: algo.Mono(cfg.Interval) * 1000, flush: algo.Flush{Instance: cfg.Instance, Interval: cfg.Interval}}
}

// Admit decides a request at now, or says that it has to wait, at most MaxWait in all.
// After a Waiting, call Poll: there may be a Flush to send.
func (l *Ledger) Admit(now algo.Mono, r *Request) Answer {
	l.asked = true
	l.arm(now)
	if r.Cost > l.count {
		return Answer{Verdict: Refused, RetryAfter: algo.Never}
	}
	if l.told && now >= l.ends && !l.firstUse && l.failures == 0 {
		l.roll(now)
	}
	if !l.told || now >= l.ends {
		return l.ask(now, r)
	}
	if l.left-l.since >= r.Cost && l.own+r.Cost <= l.count {
		l.since += r.Cost
		l.own += r.Cost
		l.pending = add(l.pending, l.window, r.Cost)
		return Answer{Verdict: Admitted, Window: l.window}
	}
	return l.refuse(now)
}

// ask lets a request wait for the store: it is the first, or the first of a window.
func (l *Ledger) ask(now algo.Mono, r *Request) Answer {
	last := r.Since + l.cfg.MaxWait
	switch {
	case now >= last || now < l.retryAt:
		return l.refuse(now)
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
	// A sliding window may have room at the next report, a fixed one that is full when it ends.
	at := l.tickAt
	if !l.sliding && l.told && l.left <= 0 {
		at = l.ends
	}
	if at = max(at, l.retryAt); at > now {
		a.RetryAfter = algo.Span((at - now + 999) / 1000)
	}
	return a
}

func add(parts []algo.Spent, window algo.Store, units int64) []algo.Spent {
	if n := len(parts); n > 0 && parts[n-1].Window == window {
		parts[n-1].Units += units
		return parts
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

// Late is how many units were reported after their window had ended.
func (l *Ledger) Late() int64 { return l.late }

// Idle reports whether the ledger may be dropped: it has nothing to report.
func (l *Ledger) Idle() bool { return !l.ticking && !l.inFlight && !l.unknown && len(l.pending) == 0 }
