package sizing

import (
	"fmt"
	"math"
)

// Steady is what is admitted under lasting demand, against what a limiter that knows
// all at once admits: the limit, or the demand where that is less.
type Steady struct {
	PerWindow float64 `json:"per_window"`
	Error     float64 `json:"error_pct"` // the estimate, of what should be admitted
	From      float64 `json:"from_pct"`  // the range in which it lies
	To        float64 `json:"to_pct"`
}

// parts of what should be admitted: an estimate and its range.
type parts struct{ error, from, to float64 }

func (s *Setup) steady(buckets int64) Steady {
	var p parts
	switch {
	case s.Mode == Delayed && s.Window == Fixed:
		p = s.delayedFixed()
	case s.Mode == Delayed:
		p = s.delayedSliding()
	case s.Mode == Lease && s.Window == Fixed:
		p = s.leaseFixed()
	case s.Mode == Lease:
		p = s.leaseRolling(buckets)
	}
	// + 0 makes zero of what would be written as -0.
	return Steady{PerWindow: s.aim() * (1 + p.error), Error: 100*p.error + 0, From: 100*p.from + 0, To: 100*p.to + 0}
}

// unseen is what the other instances admit while one does not see it: (N-1)*r*s, as part
// of the limit, and never more than there is demand or N full windows.
func (s *Setup) unseen() float64 {
	limit := float64(s.Limit)
	return max(0, min(float64(s.Instances-1)*s.each()*s.Sync.Seconds(), s.most()-limit)) / limit
}

// most is what delayed instances admit in a window if none sees another.
func (s *Setup) most() float64 { return min(s.perWindow(), float64(s.Instances)*float64(s.Limit)) }

// delayedFixed: every window exceeds the limit by what is not seen. Where a window is
// full within two intervals, instances may hear of each other too late or not at all;
// where it is full less than one before its end, the end cuts the excess short.
func (s *Setup) delayedFixed() parts {
	e, full := s.unseen(), float64(s.Limit)/s.Rate
	switch {
	case e > 0 && 2*s.Sync.Seconds() > full:
		return parts{e, 0, s.most()/float64(s.Limit) - 1}
	case full+s.Sync.Seconds() > s.Per.Seconds():
		return parts{0.75 * e, 0.5 * e, e}
	}
	return parts{e, e, e}
}

// delayedSliding: over many windows the excess of the first is repaid; room that appears
// between two reports waits for the next one, half an interval in the mean and a whole
// one where the reports of all instances lie badly. A window counts in the next one as
// no more than the limit, so far above it a part of the excess remains.
func (s *Setup) delayedSliding() parts {
	share := s.Sync.Seconds() / s.Per.Seconds() * s.near(false)
	return parts{-share / 2, -share, s.unseen() / 4}
}

// near is 1 where the demand is the limit and falls to 0 at four fifths of it, where there
// is room for all that is unused; if above counts, also at six fifths, where requests come
// for all of it in time.
func (s *Setup) near(above bool) float64 {
	d := s.perWindow()/float64(s.Limit) - 1
	if d > 0 && !above {
		return 1
	}
	return max(0, 1-5*math.Abs(d))
}

// leaseFixed: what an instance took for its need until the next tick, with a margin of
// the square root, and had no requests for, is of no use when the window ends.
func (s *Setup) leaseFixed() parts {
	need := s.each() * s.Sync.Seconds()
	if s.Instances == 1 || need <= 1 {
		return parts{}
	}
	stranded := min(float64(s.Instances)*math.Sqrt(need)/s.aim(), 1) * s.near(true)
	return parts{-stranded / 3, -stranded, 0}
}

// leaseRolling: a unit is lost for as long as its bucket is wide and as it waits for a
// request at its instance, which is the shorter the more there are in excess, and never
// longer than an interval, when it is given back.
func (s *Setup) leaseRolling(buckets int64) parts {
	n, limit := float64(s.Instances), float64(s.Limit)
	excess := max(s.perWindow()-limit, limit/10)
	waits := 1 / (excess/n + s.Per.Seconds()/s.Sync.Seconds())
	e := (1/float64(buckets+1) + waits) * s.near(false)
	return parts{-e, -min(1.6*e, 1), -e / 8}
}

// impossible is the least part of the limit that is lost in a rolling window that no
// instance ever exceeds, deciding locally, at even random demand: N/(D+N).
func (s *Setup) impossible() float64 {
	n := float64(s.Instances)
	return n / (s.perWindow() + n)
}

// firstWindow is what a window that opens without a history admits above the limit.
func (s *Setup) firstWindow() float64 {
	if s.Mode != Delayed {
		return 0
	}
	return 100 * s.unseen()
}

// worst is the most in one window, whatever the demand.
func (s *Setup) worst() float64 {
	if s.Mode == Delayed {
		return float64(s.Instances) * float64(s.Limit)
	}
	return float64(s.Limit)
}

// worstSpan is the most in one span of the period, wherever it begins.
func (s *Setup) worstSpan() float64 {
	if s.rolls() {
		return s.worst()
	}
	return 2 * s.worst()
}

// extras is how often an instance may ask between two ticks: package lease's default.
const extras = 4

// roundTrips is how often an instance calls the store about one key in a second: about,
// and at most.
func (s *Setup) roundTrips() (about, most float64) {
	r := s.each()
	if s.Mode == Exact {
		return r, r
	}
	ticks := 1 / s.Sync.Seconds()
	if s.Mode == Delayed {
		// A tick without requests before it reports nothing. Windows opened by first use
		// ask once more at their beginning.
		most = ticks
		if s.Window == Fixed {
			most += 1 / s.Per.Seconds()
		}
		return ticks * (1 - math.Exp(-r/ticks)), min(most, r)
	}
	// A lone request asks for itself, and may ask again to give back or say where it was used.
	about = min(1.1*ticks, 1.2*r)
	if s.rolls() {
		about = min(s.rollingTicks()*ticks, 1.5*r)
	}
	return about, min((1+extras)*ticks, 2*r)
}

// rollingTicks is how many calls an instance makes in an interval for a rolling window:
// more where the demand is near the limit, and what is asked for in between may be there.
func (s *Setup) rollingTicks() float64 {
	switch load := s.perWindow() / float64(s.Limit); {
	case load > 0.9 && load < 1.1:
		return 1.5
	case load > 0.7 && load < 1.3:
		return 1.3
	}
	return 1.1
}

// MaxBatch is how many keys a call carries at most.
const MaxBatch = 64

// cost is what Redis spends, in µs of one core: on a call, and on each key in it.
func (s *Setup) cost() (call, key float64) {
	switch {
	case s.Mode == Exact:
		return 21, 7
	case s.Mode == Delayed:
		return 58, 19
	case s.rolls():
		return 79, 46
	}
	return 62, 13
}

// basis says where the cost comes from.
func (s *Setup) basis() string {
	call, key := s.cost()
	text := fmt.Sprintf("%.0f µs of a core for a call about one key", call+key)
	if s.Mode != Exact {
		text += fmt.Sprintf(", %.0f µs a key in one about %d", key+call/MaxBatch, MaxBatch)
	}
	return text + "; measured with Redis 7.0 over loopback on an AMD EPYC with other work to do, by go test ./redisstore -run '^$' -bench 'Decisions|Syncs'"
}

// store is the load of the store by all instances: calls a second and the part of a core.
// What is due at an instance at the same time goes together; a request asks alone.
func (s *Setup) store(about float64) (calls, core float64) {
	syncs := about * float64(s.Instances) * float64(s.Keys)
	batch := 1.0
	if s.Mode != Exact {
		batch = min(float64(s.Keys), MaxBatch)
	}
	calls = syncs / batch
	call, key := s.cost()
	return calls, (calls*call + syncs*key) / 1e6
}
