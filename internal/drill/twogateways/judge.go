package twogateways

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// asked is one request of the load.
type asked struct {
	due, sent, answered algo.Mono
	status              int // 0: no answer
	stamp               Stamp
}

const (
	admitted = 200
	refused  = 429
)

// match compares what was answered with what arrived at the upstream, both by the number
// of the request, and returns the requests that arrived and were not answered.
func match(all []asked, arrivals []int) (unanswered []int, err error) {
	arrived := make([]bool, len(all))
	for _, n := range arrivals {
		switch {
		case n < 0 || n >= len(all):
			return nil, fmt.Errorf("drill: request %d arrived at the upstream and was not sent", n)
		case arrived[n]:
			return nil, fmt.Errorf("drill: request %d arrived at the upstream twice", n)
		case all[n].status == refused:
			return nil, fmt.Errorf("drill: request %d was refused and arrived at the upstream", n)
		}
		arrived[n] = true
		if all[n].status != admitted {
			unanswered = append(unanswered, n)
		}
	}
	for n := range all {
		if all[n].status == admitted && !arrived[n] {
			return nil, fmt.Errorf("drill: request %d was answered and did not arrive at the upstream", n)
		}
	}
	return unanswered, nil
}

// history is what the judge is told.
type history struct {
	limit    int64
	per      algo.Span
	opened   bool       // windows begin where stamps say, not on multiples of per
	rolling  bool       // no windows: an instant counts to the multiple of per before it
	each     int        // windows from one that counts to the next
	begin    algo.Store // a multiple of per
	length   algo.Span  // of what is counted
	covered  algo.Span  // of the load, which is longer
	stalls   []stall    // when the load fell behind
	admitted []Stamp
}

// stall is a time in which requests that were due were not sent: from when the first was due
// until it was sent.
type stall struct{ from, to algo.Store }

// counted is what the judge found.
type counted struct {
	windows   []int // the complete ones without a stall
	disturbed int   // those with one: what was not offered could not pass
	perSecond []int
	worst     int       // in any window, complete or not
	worstSpan int       // in any span of one window
	quarter   float64   // the least share of a complete window in its first quarter; 1 without any
	last      algo.Span // the latest admission after the start of its complete window
	total     int
}

// count counts by stamp.
func count(h *history) *counted {
	c := &counted{windows: []int{}, perSecond: make([]int, int(h.length/1_000_000)), quarter: 1, total: len(h.admitted)}
	starts := h.starts()
	in, early, latest := map[algo.Store]int{}, map[algo.Store]int{}, map[algo.Store]algo.Span{}
	instants := make([]algo.Store, 0, len(h.admitted))
	for i, s := range h.admitted {
		w, after := starts[i], algo.Span(s.At-starts[i])
		in[w]++
		c.worst = max(c.worst, in[w])
		if after < h.per/4 {
			early[w]++
		}
		latest[w] = max(latest[w], after)
		instants = append(instants, s.At)
		if k := int64(s.At-h.begin) / 1_000_000; s.At >= h.begin && k < int64(len(c.perSecond)) {
			c.perSecond[k]++
		}
	}
	for _, w := range h.complete(in) {
		if h.stalled(w) {
			c.disturbed++
			continue
		}
		c.windows = append(c.windows, in[w])
		if in[w] > 0 {
			c.quarter, c.last = min(c.quarter, float64(early[w])/float64(in[w])), max(c.last, latest[w])
		}
	}
	c.worstSpan = worstSpan(instants, h.per)
	return c
}

// starts are the starts of the windows of the stamps. Gateways agree on a window that its
// first use opened to within what they know of the line, so those that are less than half
// a window apart are one.
func (h *history) starts() []algo.Store {
	starts := make([]algo.Store, len(h.admitted))
	for i, s := range h.admitted {
		switch {
		case h.rolling:
			starts[i] = s.At - algo.Store(int64(s.At)%int64(h.per))
		default:
			starts[i] = s.Window
		}
	}
	if !h.opened {
		return starts
	}
	sorted := slices.Clone(starts)
	slices.Sort(sorted)
	same := map[algo.Store]algo.Store{}
	for i, first := 0, algo.Store(0); i < len(sorted); i++ {
		if i == 0 || algo.Span(sorted[i]-first) >= h.per/2 {
			first = sorted[i]
		}
		same[sorted[i]] = first
	}
	for i := range starts {
		starts[i] = same[starts[i]]
	}
	return starts
}

// complete are the windows that the load covered from beginning to end and that count.
func (h *history) complete(in map[algo.Store]int) []algo.Store {
	var all []algo.Store
	if h.opened {
		for w := range in {
			if w >= h.begin && w+algo.Store(h.per) <= h.begin+algo.Store(h.covered) {
				all = append(all, w)
			}
		}
		slices.Sort(all)
	} else {
		for w := h.begin; w+algo.Store(h.per) <= h.begin+algo.Store(h.length); w += algo.Store(h.per) {
			all = append(all, w)
		}
	}
	var some []algo.Store
	for i := 0; i < len(all); i += h.each {
		some = append(some, all[i])
	}
	return some
}

// stalled says whether the load fell behind in a window.
func (h *history) stalled(w algo.Store) bool {
	return slices.ContainsFunc(h.stalls, func(s stall) bool { return s.from < w+algo.Store(h.per) && s.to > w })
}

// worstSpan is the most instants in any span of the length per, its end not included.
func worstSpan(instants []algo.Store, per algo.Span) int {
	slices.Sort(instants)
	worst, first := 0, 0
	for i, at := range instants {
		for algo.Span(at-instants[first]) >= per {
			first++
		}
		worst = max(worst, i-first+1)
	}
	return worst
}

// over is by how much per cent n is above the limit; 0 if it is not.
func over(n int, limit int64) float64 {
	return hundredths(max(0, 100*(float64(n)/float64(limit)-1)))
}

func hundredths(x float64) float64 { return math.Round(x*100) / 100 }

// judge makes the report of what was counted, without what only a run knows.
func judge(o *Options, h *history) *Report {
	c := count(h)
	r := &Report{
		Mode: o.Mode, Window: o.Window, Windows: c.windows, Disturbed: c.disturbed, PerSecond: c.perSecond,
		MaxOver: over(c.worst, h.limit), MaxOverAnySpan: over(c.worstSpan, h.limit),
		FirstQuarter: hundredths(100 * c.quarter), LastAfter: hundredths(float64(c.last) / 1e6), Admitted: c.total,
		Limit: h.limit, Per: time.Duration(h.per * 1000).String(), Instances: o.Instances, Problems: []string{},
		worst: c.worst, worstSpan: c.worstSpan, perSecond: float64(h.limit) / (float64(h.per) / 1e6),
	}
	if o.Mode != Exact {
		r.Sync = o.Sync.String()
	}
	if len(c.windows) > 0 {
		sum := 0
		for _, n := range c.windows {
			sum += n
		}
		mean := float64(sum) / float64(len(c.windows))
		r.Mean, r.Error = hundredths(mean), hundredths(100*(mean/float64(h.limit)-1))
	}
	return r
}

// problems are what is out of bounds.
func (r *Report) problems(o *Options) []string {
	all := []string{}
	bad := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	most, why := int(o.Limit), ""
	if r.Failover != nil {
		most, why = most+r.Failover.Lost, fmt.Sprintf(" and the %d that the replica had not heard of", r.Failover.Lost)
	}
	switch {
	case o.Mode == Delayed && r.worst > int(o.Limit)*o.Instances+most-int(o.Limit):
		bad("%d were admitted in a window; %d instances admit at most %d%s", r.worst, o.Instances, int(o.Limit)*o.Instances, why)
	case o.Mode != Delayed && r.worst > most:
		bad("%d were admitted in a window; the limit is %d%s", r.worst, o.Limit, why)
	}
	if o.Mode != Delayed && o.algorithm() == windows["rolling"] && r.worstSpan > most {
		bad("%d were admitted in a span of one window; the limit is %d%s", r.worstSpan, o.Limit, why)
	}
	if len(r.Windows)*enough <= r.Disturbed {
		bad("the load fell behind in %d windows, and %d were complete: this machine is too busy, or the run too short", r.Disturbed, len(r.Windows))
	}
	f := &o.Faults
	if f.KillGateway+f.KillStore+f.Failover == 0 && r.Failed*100 > r.Offered*bearable {
		bad("%d of %d requests failed", r.Failed, r.Offered)
	}
	if o.Burst && o.Mode == Leased && r.Mean < 0.99*float64(o.Limit) {
		bad("%.1f of a limit of %d were admitted of a burst; at least 99 %% are right", r.Mean, o.Limit)
	}
	if r.Clean != nil && math.Abs(r.Error-*r.Clean) > 1 {
		bad("the error is %+.2f %%, and %+.2f %% with right clocks", r.Error, *r.Clean)
	}
	return all
}

// enough is how many windows may be disturbed for one that is not.
const enough = 4

// bearable is how many of a hundred requests may fail on a busy machine.
const bearable = 1
