package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/escapement-io/escapement/redisstore"
)

// Shared is what a process knows of a store that it shares with others.
type Shared struct {
	Name      string
	Reached   bool
	Instances int             // 0: not known
	Bounds    []time.Duration // upper ends of the classes of Calls
	Calls     []uint64        // by class, not summed; one more than Bounds
	Failed    uint64
	Took      time.Duration        // of all calls
	State     *redisstore.Snapshot // nil until it is reached
	Sync      []Sync               // of each mode in use
}

// Sync is what a process counted of the limits of a store on which instances agree from
// time to time.
type Sync struct {
	Mode          string // lease or delayed
	Calls, Failed uint64
	RefusedAtCap  uint64        // claims on unknown keys
	Keys          int64         // that are kept in agreement now
	Interval      time.Duration // between two agreements, as it is in force
}

var (
	reached    = gauge("store_reached", "1 once the store was opened.", "store")
	instances  = gauge("store_instances", "Instances that share the store's limits, as configured or counted; 0 if that is not known.", "store")
	callTime   = family{desc: prometheus.NewDesc("escapement_store_call_seconds", "How long calls of the store took, failed ones included.", []string{"store"}, nil)}
	callErrors = counter("store_call_errors_total", "Calls of the store that failed.", "store")
	asked      = counter("store_requests_total", "Requests sent to a primary.", "store", "primary")
	unknown    = counter("store_unknown_total", "Requests sent and not answered: they count as spent.", "store", "primary")
	notRun     = counter("store_not_run_total", "Requests that did not run.", "store", "primary")
	breaker    = gauge("store_breaker_open", "1 while the primary is left alone because it failed.", "store", "primary")
	queued     = gauge("store_queued_requests", "Requests waiting to be sent.", "store", "primary")
	storeClock = gauge("store_clock_offset_seconds", "The primary's clock minus this machine's, as it was read.", "store", "primary")
	adjustment = gauge("store_clock_adjustment_seconds", "What added to the primary's clock gives the line that decisions are dated on.", "store", "primary")
	storeError = gauge("store_clock_error_seconds", "How far ahead of the line a decision can be dated: e.", "store")
	clamped    = counter("store_clock_clamped_total", "Calls whose reading of the store's clock was held by the caller's bounds.", "store")
	storeSteps = counter("store_clock_step_total", "Steps of the store's clocks against the line.", "store")
	storeStep  = gauge("store_clock_last_step_seconds", "Size of the last step, positive for forward; 0 before the first.", "store")
	adopted    = counter("store_clock_adopted_total", "Adjustments that were taken over from other callers.", "store")
	syncCalls  = counter("sync_calls_total", "Calls by which this instance came to an agreement with others, those that failed included.", "store", "mode")
	syncFailed = counter("sync_failed_total", "Of these calls, those that failed.", "store", "mode")
	syncAtCap  = counter("sync_refused_at_cap_total", "Claims on unknown keys while as many as may be were kept in agreement; they followed on_failure.", "store", "mode")
	syncKeys   = gauge("sync_keys", "Keys that are kept in agreement now.", "store", "mode")
	syncEvery  = gauge("sync_interval_seconds", "Time between two agreements about a key, as it is in force.", "store", "mode")

	sharedFamilies = []family{reached, instances, callTime, callErrors, asked, unknown, notRun, breaker, queued, storeClock, adjustment,
		storeError, clamped, storeSteps, storeStep, adopted, syncCalls, syncFailed, syncAtCap, syncKeys, syncEvery}
)

func (s *Shared) collect(out chan<- prometheus.Metric) {
	reached.emit(out, one(s.Reached), s.Name)
	instances.emit(out, float64(s.Instances), s.Name)
	callErrors.emit(out, float64(s.Failed), s.Name)
	classes, n := map[float64]uint64{}, uint64(0)
	for i, c := range s.Calls {
		n += c
		if i < len(s.Bounds) {
			classes[s.Bounds[i].Seconds()] = n
		}
	}
	out <- prometheus.MustNewConstHistogram(callTime.desc, n, s.Took.Seconds(), classes, s.Name)
	for i := range s.Sync {
		y := &s.Sync[i]
		syncCalls.emit(out, float64(y.Calls), s.Name, y.Mode)
		syncFailed.emit(out, float64(y.Failed), s.Name, y.Mode)
		syncAtCap.emit(out, float64(y.RefusedAtCap), s.Name, y.Mode)
		syncKeys.emit(out, float64(y.Keys), s.Name, y.Mode)
		syncEvery.emit(out, y.Interval.Seconds(), s.Name, y.Mode)
	}
	if s.State == nil {
		return
	}
	if s.State.Known { // no data is not zero
		storeError.emit(out, s.State.Error.Seconds(), s.Name)
	}
	clamped.emit(out, float64(s.State.Clamped), s.Name)
	storeSteps.emit(out, float64(s.State.Steps), s.Name)
	storeStep.emit(out, s.State.Last.Seconds(), s.Name)
	adopted.emit(out, float64(s.State.Adopted), s.Name)
	for i := range s.State.Primaries {
		p := &s.State.Primaries[i]
		asked.emit(out, float64(p.Requests), s.Name, p.Name)
		unknown.emit(out, float64(p.Unknown), s.Name, p.Name)
		notRun.emit(out, float64(p.NotRun), s.Name, p.Name)
		breaker.emit(out, one(p.Open), s.Name, p.Name)
		queued.emit(out, float64(p.Queued), s.Name, p.Name)
		storeClock.emit(out, p.Offset.Seconds(), s.Name, p.Name)
		adjustment.emit(out, p.Adjustment.Seconds(), s.Name, p.Name)
	}
}
