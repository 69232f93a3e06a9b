package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Gateway is what a gateway counted since the process started.
type Gateway struct {
	Limits        []Limit
	Held          int64 // requests waiting for their turn
	ReloadsOK     int64
	ReloadsFailed int64
}

// Limit is what one limit counted.
type Limit struct {
	Name             string
	Bases            []Decisions // answered by the limit's store: its usual basis, and others that occurred
	Fallback         int64       // answered by on_failure
	FallbackRefused  int64       // of these
	Invalid, Delayed int64
	AdmittedUnits    int64 // of requests that passed

	PerSecond float64 // units, as enforced; 0: not a rate
	Bound     *int64  // units of a key that can pass above the limit at most; nil: unbounded or not known
	Overshoot *int64  // the most that was seen above the limit; nil: not known
	Lost      int64   // units that the store had handed out at most, and forgot

	RefusedRatio    float64 // of the last 10 s
	RefusedRatioMax float64 // the highest of the 10 s spans that ended in the last minute
}

// Decisions is what was answered on one basis.
type Decisions struct {
	Basis         string
	Decided       int64
	Refused       int64 // of these
	ShadowRefused int64 // of these, let through because the limit is a shadow
}

var (
	decisions    = counter("limit_decisions_total", "Decisions of a limit.", "limit", "verdict", "basis")
	admitted     = counter("limit_admitted_units_total", "Units that a limit admitted, of requests that passed.", "limit")
	perSecond    = gauge("limit_units_per_second", "The rate that a limit enforces for each key, headroom taken off.", "limit")
	bound        = gauge("limit_bound_units", "Units of a key that can pass above the limit at most at present.", "limit")
	overshoot    = gauge("limit_overshoot_units", "The most units above the limit that were seen.", "limit")
	lost         = counter("limit_lost_units_total", "Units that a store had handed out in advance, at most, in writes that it lost.", "limit")
	refusedRatio = gauge("limit_refused_ratio", "Share refused of the decisions of the last 10 s; 0 below 10 decisions.", "limit")
	refusedMost  = gauge("limit_refused_ratio_max", "Highest share refused of the 10 s spans that ended within the last minute.", "limit")
	invalid      = counter("limit_invalid_total", "Requests without a valid count or window for a limit that takes them from the request.", "limit")
	delayed      = counter("limit_delayed_total", "Requests held until their turn.", "limit")
	held         = gauge("held_requests", "Requests waiting for their turn now.")
	reloads      = counter("reloads_total", "Configurations taken over or refused while running.", "result")

	gatewayFamilies = []family{decisions, admitted, perSecond, bound, overshoot, lost, refusedRatio, refusedMost, invalid, delayed, held, reloads}
)

func collectGateway(out chan<- prometheus.Metric, g Gateway) {
	for i := range g.Limits {
		g.Limits[i].collect(out)
	}
	held.emit(out, float64(g.Held))
	reloads.emit(out, float64(g.ReloadsOK), "ok")
	reloads.emit(out, float64(g.ReloadsFailed), "failed")
}

func (l *Limit) collect(out chan<- prometheus.Metric) {
	// Counters that are read one after the other may not add up for a moment.
	for _, d := range l.Bases {
		decisions.emit(out, float64(max(0, d.Decided-d.Refused-d.ShadowRefused)), l.Name, "admitted", d.Basis)
		decisions.emit(out, float64(d.Refused), l.Name, "refused", d.Basis)
		decisions.emit(out, float64(d.ShadowRefused), l.Name, "shadow_refused", d.Basis)
	}
	decisions.emit(out, float64(max(0, l.Fallback-l.FallbackRefused)), l.Name, "admitted", "fallback")
	decisions.emit(out, float64(l.FallbackRefused), l.Name, "refused", "fallback")
	admitted.emit(out, float64(l.AdmittedUnits), l.Name)
	if l.PerSecond > 0 {
		perSecond.emit(out, l.PerSecond, l.Name)
	}
	if l.Bound != nil {
		bound.emit(out, float64(*l.Bound), l.Name)
	}
	if l.Overshoot != nil {
		overshoot.emit(out, float64(*l.Overshoot), l.Name)
	}
	lost.emit(out, float64(l.Lost), l.Name)
	refusedRatio.emit(out, l.RefusedRatio, l.Name)
	refusedMost.emit(out, l.RefusedRatioMax, l.Name)
	invalid.emit(out, float64(l.Invalid), l.Name)
	delayed.emit(out, float64(l.Delayed), l.Name)
}
