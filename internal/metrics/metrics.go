package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/escapement-io/escapement/clock"
)

// Sources are where the numbers come from. A nil one leaves its metrics out.
type Sources struct {
	Clock   func() clock.Snapshot
	Gateway func() Gateway
	Store   func() Store
	Shared  func() []Shared
}

// Store is what a store in memory holds.
type Store struct {
	Keys, MaxKeys, Bytes int64
	RefusedAtCap         uint64
	Dropped              uint64 // because they were as good as new
}

// family is one metric; emit takes the values of its labels in order.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func counter(name, help string, labels ...string) family {
	return family{prometheus.NewDesc("escapement_"+name, help, labels, nil), prometheus.CounterValue}
}

func gauge(name, help string, labels ...string) family {
	return family{prometheus.NewDesc("escapement_"+name, help, labels, nil), prometheus.GaugeValue}
}

func (f family) emit(out chan<- prometheus.Metric, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(f.desc, f.kind, value, labels...)
}

var (
	steps      = counter("clock_step_total", "Steps of the wall clock of 1 ms or more.", "direction")
	lastStep   = gauge("clock_last_step_seconds", "Size of the last step, positive for forward; 0 before the first.")
	suspended  = counter("clock_suspend_seconds_total", "Time for which the machine was suspended.")
	unclear    = counter("clock_unclear_total", "Looks at the clocks that were too slow to tell anything.")
	checks     = counter("clock_check_total", "Looks at the clocks.")
	rebased    = counter("clock_rebased_total", "Times that guarded time was moved instead of slewed.")
	switched   = counter("clock_switched_total", "Times that guarded time went over to another reference.")
	offset     = gauge("clock_offset_seconds", "Guarded time minus the reference.", "reference")
	errorBound = gauge("clock_error_bound_seconds", "Bound of the error: of each reference, and of guarded time itself under the reference guard.", "reference")
	followed   = gauge("clock_followed", "1 for the reference that guarded time follows.", "reference")
	state      = gauge("clock_state", "1 for the state that guarded time is in.", "state")
	epoch      = gauge("clock_epoch", "Grows each time that guarded time is rebased.")
	slew       = gauge("clock_slew_ppm", "How much faster than the monotonic clock guarded time runs.")
	minusWall  = gauge("clock_guard_minus_wall_seconds", "Guarded time minus the raw wall clock.")
	fit        = gauge("clock_fit", "1 if this node's time is fit to limit by: the error of guarded time is bounded, by 2 s.")

	keys         = gauge("store_keys", "Records in memory.")
	maxKeys      = gauge("store_max_keys", "Cap of records in memory.")
	storeBytes   = gauge("store_bytes", "Memory of the records.")
	refusedAtCap = counter("store_refused_at_cap_total", "Claims on unknown keys while the store was full; they followed on_failure.")
	dropped      = counter("store_dropped_total", "Records dropped because they were as good as new.")

	clockFamilies = []family{steps, lastStep, suspended, unclear, checks, rebased, switched, offset, errorBound, followed, state, epoch, slew, minusWall, fit}
	storeFamilies = []family{keys, maxKeys, storeBytes, refusedAtCap, dropped}
)

// guardName is the label under which the bound of guarded time itself is shown.
const guardName = "guard"

// Handler serves the metrics of the sources and of this process.
func Handler(s Sources) http.Handler {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(&s, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// Describe names the metrics that Collect will emit.
func (s *Sources) Describe(out chan<- *prometheus.Desc) {
	describe := func(some bool, families []family) {
		for _, f := range families {
			if some {
				out <- f.desc
			}
		}
	}
	describe(s.Clock != nil, clockFamilies)
	describe(s.Gateway != nil, gatewayFamilies)
	describe(s.Store != nil, storeFamilies)
	describe(s.Shared != nil, sharedFamilies)
}

// Collect reads the sources once.
func (s *Sources) Collect(out chan<- prometheus.Metric) {
	if s.Clock != nil {
		collectClock(out, s.Clock())
	}
	if s.Gateway != nil {
		collectGateway(out, s.Gateway())
	}
	if s.Store != nil {
		st := s.Store()
		keys.emit(out, float64(st.Keys))
		maxKeys.emit(out, float64(st.MaxKeys))
		storeBytes.emit(out, float64(st.Bytes))
		refusedAtCap.emit(out, float64(st.RefusedAtCap))
		dropped.emit(out, float64(st.Dropped))
	}
	if s.Shared != nil {
		for _, st := range s.Shared() {
			st.collect(out)
		}
	}
}

func collectClock(out chan<- prometheus.Metric, c clock.Snapshot) {
	steps.emit(out, float64(c.Tally.StepsForward), "forward")
	steps.emit(out, float64(c.Tally.StepsBackward), "backward")
	lastStep.emit(out, c.Tally.LastStep.Seconds())
	suspended.emit(out, c.Tally.Suspended.Seconds())
	unclear.emit(out, float64(c.Tally.Unclear))
	checks.emit(out, float64(c.Tally.Checks))
	rebased.emit(out, float64(c.Tally.Rebases))
	switched.emit(out, float64(c.Tally.Switches))
	for _, r := range c.References {
		followed.emit(out, one(r.Followed), r.Name)
		if r.Known { // no data is not zero
			offset.emit(out, r.Offset.Seconds(), r.Name)
			errorBound.emit(out, r.Error.Seconds(), r.Name)
		}
	}
	if c.Bounded {
		errorBound.emit(out, c.ErrorBound.Seconds(), guardName)
	}
	for _, s := range clock.States() {
		state.emit(out, one(c.Bound.State == s), string(s))
	}
	epoch.emit(out, float64(c.Epoch))
	slew.emit(out, c.SlewPPM)
	minusWall.emit(out, c.GuardMinusWall.Seconds())
	fit.emit(out, one(Fit(&c)))
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
