// Package promlimit counts the decisions of limiters for Prometheus, under the names that
// the gateway uses.
//
//	limits := promlimit.New()
//	prometheus.MustRegister(limits)
//	limiter, err := escapement.New(store, limit, escapement.WithObserver(limits))
//
// It serves escapement_limit_decisions_total, with the labels limit, verdict (admitted,
// refused, or shadow_refused where a shadow limit would have refused) and basis (exact,
// delayed, leased, fallback), and escapement_limit_admitted_units_total with the label
// limit. A decision costs a few atomic additions and allocates nothing. Keys never become
// labels, and MaxLimits bounds the names of limits.
package promlimit

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/escapement-io/escapement"
)

// MaxLimits is how many limits are told apart by name; what further ones decide is counted
// together, under the name Others.
const MaxLimits = 1000

// Others is the name under which limits are counted that came after MaxLimits others. No
// limit can have it.
const Others = "(others)"

// Observer counts what it is told of. It serves any number of limiters, is a
// prometheus.Collector, and is safe for concurrent use. Make one with New.
type Observer struct {
	limits atomic.Pointer[map[string]*counts] // replaced, never changed
	others *counts
	mu     sync.Mutex // held to replace it
}

// The verdicts.
const (
	admitted = iota
	refused
	shadowRefused
)

var verdictNames = [...]string{admitted: "admitted", refused: "refused", shadowRefused: "shadow_refused"}

// counts is what one limit decided.
type counts struct {
	by    [escapement.Fallback + 1][len(verdictNames)]atomic.Uint64
	units atomic.Uint64
}

var (
	decisions = prometheus.NewDesc("escapement_limit_decisions_total", "Decisions of a limit.", []string{"limit", "verdict", "basis"}, nil)
	units     = prometheus.NewDesc("escapement_limit_admitted_units_total", "Units that a limit admitted.", []string{"limit"}, nil)
)

// New makes an observer that has seen nothing.
func New() *Observer {
	o := &Observer{others: &counts{}}
	o.limits.Store(&map[string]*counts{})
	return o
}

// Decided counts an answer to a claim that asks for units. Charges, refunds and peeks
// decide nothing, and units that come back stay counted.
func (o *Observer) Decided(c *escapement.Claim, d *escapement.Decision, _ error) {
	if c.Mode != escapement.Take && c.Mode != escapement.TakeUpTo {
		return
	}
	l, verdict := o.of(c.Plan.Limit().Name), verdictOf(c, d)
	l.by[min(d.Basis(), escapement.Fallback)][verdict].Add(1)
	if verdict != admitted {
		return
	}
	n := d.Units()
	if n == 0 && c.Mode == escapement.Take { // on_failure does not know them
		n = c.Cost
	}
	l.units.Add(uint64(max(0, n)))
}

// verdictOf is what the limit said. A limiter lets through what a shadow limit refuses,
// but the decision still knows how long it would be refused.
func verdictOf(c *escapement.Claim, d *escapement.Decision) int {
	if c.Plan.Limit().Shadow && d.Basis() != escapement.Fallback {
		asked := *d
		asked.Allowed = false
		if !d.Allowed || asked.RetryAfter() > 0 {
			return shadowRefused
		}
		return admitted
	}
	if d.Allowed {
		return admitted
	}
	return refused
}

// of is what counts the limit of a name.
func (o *Observer) of(name string) *counts {
	known := *o.limits.Load()
	if l := known[name]; l != nil {
		return l
	}
	if len(known) >= MaxLimits {
		return o.others
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	limits := *o.limits.Load()
	if l := limits[name]; l != nil {
		return l
	}
	if len(limits) >= MaxLimits {
		return o.others
	}
	next, l := maps.Clone(limits), &counts{}
	next[name] = l
	o.limits.Store(&next)
	return l
}

// Describe names what Collect sends.
func (o *Observer) Describe(out chan<- *prometheus.Desc) {
	out <- decisions
	out <- units
}

// Collect sends what was counted so far: of each limit that has decided anything, the
// bases on which it did.
func (o *Observer) Collect(out chan<- prometheus.Metric) {
	for name, l := range *o.limits.Load() {
		l.collect(out, name)
	}
	o.others.collect(out, Others)
}

func (l *counts) collect(out chan<- prometheus.Metric, name string) {
	some := false
	for b := range l.by {
		var n [len(verdictNames)]uint64
		total := uint64(0)
		for v := range n {
			n[v] = l.by[b][v].Load()
			total += n[v]
		}
		if total == 0 {
			continue
		}
		some = true
		for v := range n {
			out <- prometheus.MustNewConstMetric(decisions, prometheus.CounterValue, float64(n[v]), name, verdictNames[v], escapement.Basis(b).String())
		}
	}
	if some {
		out <- prometheus.MustNewConstMetric(units, prometheus.CounterValue, float64(l.units.Load()), name)
	}
}
