package sim

import (
	"slices"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// Result is what a world, or the mean of several, came to. Per cent are of the limit;
// what is worst is the worst of all worlds, what is a mean the mean of them.
type Result struct {
	Name       string   `json:"name"`
	Mode       string   `json:"mode"`
	Window     string   `json:"window"`
	Instances  int      `json:"instances"`
	Limit      int64    `json:"limit"`
	Per        string   `json:"per"`
	Sync       string   `json:"sync,omitempty"`
	Mean       float64  `json:"mean_per_window"`
	Error      float64  `json:"error_pct"`             // of the mean over complete windows
	Over       float64  `json:"max_over_pct"`          // worst window of the store
	OverAny    float64  `json:"max_over_any_span_pct"` // worst span of one period, wherever it begins
	Under      float64  `json:"under_pct"`             // admitted less than an exact limiter without any delay, 0 if more
	Fairness   float64  `json:"fairness"`              // Jain's index of the admitted parts, 1 is even
	Calls      float64  `json:"store_calls_per_s_per_instance"`
	Waited     float64  `json:"waited_pct"` // requests that waited for a round trip
	WaitMean   float64  `json:"waited_mean_ms"`
	Offered    int64    `json:"offered"` // requests of the first world, as all that follows
	Admitted   int64    `json:"admitted"`
	Refused    int64    `json:"refused"`
	NoStore    int64    `json:"refused_without_store"`
	Late       int64    `json:"late_units"`      // reported after their window
	Forgotten  int64    `json:"forgotten_units"` // handed out and lost by a failover
	Noticed    int64    `json:"noticed_units"`   // of these, with the syncs that handed them out, what instances came to know of
	Alone      int64    `json:"admitted_without_store"`
	Windows    []int64  `json:"windows"`    // units in each complete window
	PerSecond  []int64  `json:"per_second"` // units in each second of the world
	Violations []string `json:"violations"`
}

// Run runs as many worlds as the setup asks for, from one seed on, and measures them.
func (s *Setup) Run(seed int64) (*Result, error) {
	var sum Result
	n := max(1, s.Seeds)
	for i := range n {
		r, err := s.runOne(seed + int64(i))
		if err != nil {
			return nil, err
		}
		if i == 0 {
			sum = *r
			continue
		}
		sum.Over, sum.OverAny = max(sum.Over, r.Over), max(sum.OverAny, r.OverAny)
		for _, m := range []struct{ to, from *float64 }{{&sum.Mean, &r.Mean}, {&sum.Error, &r.Error}, {&sum.Under, &r.Under},
			{&sum.Fairness, &r.Fairness}, {&sum.Calls, &r.Calls}, {&sum.Waited, &r.Waited}, {&sum.WaitMean, &r.WaitMean}} {
			*m.to += *m.from
		}
		sum.Violations = append(sum.Violations, r.Violations...)
	}
	for _, m := range []*float64{&sum.Mean, &sum.Error, &sum.Under, &sum.Fairness, &sum.Calls, &sum.Waited, &sum.WaitMean} {
		*m /= float64(n)
	}
	return &sum, nil
}

func (s *Setup) runOne(seed int64) (*Result, error) {
	if s.Network.Timeout == 0 {
		s.Network.Timeout = 50 * time.Millisecond
	}
	w, err := s.build(seed)
	if err != nil {
		return nil, err
	}
	requests, err := s.arrivals(seed)
	if err != nil {
		return nil, err
	}
	w.run(requests)
	w.check(requests)
	return w.measure(requests), nil
}

func (w *world) measure(requests []request) *Result {
	s, b := w.setup, &w.book
	r := &Result{Name: s.Name, Mode: string(s.Mode), Window: string(s.Window), Instances: s.Instances, Limit: s.Limit, Per: s.Per.String(),
		Offered: int64(len(requests)), Admitted: int64(len(b.admissions)), Refused: b.refused, NoStore: b.away,
		Late: w.store.late, Forgotten: w.store.forgot, Noticed: w.store.noticed, Violations: b.violations, Windows: []int64{}}
	if s.Mode != Exact {
		r.Sync = s.Sync.String()
	}
	if r.Violations == nil {
		r.Violations = []string{}
	}
	for _, a := range b.admissions {
		if a.open || a.part > 0 {
			r.Alone++
		}
	}
	slices.SortStableFunc(b.admissions, func(a, c admission) int { return int(a.at - c.at) })
	r.PerSecond = make([]int64, s.For/time.Second+1)
	for _, a := range b.admissions {
		if k := int(a.at / time.Second); k < len(r.PerSecond) {
			r.PerSecond[k] += a.cost
		}
	}
	w.windows(r)
	r.OverAny = s.percent(w.anySpan()) - 100
	r.Under = w.under(requests)
	r.Fairness = b.fairness()
	trips := int64(0)
	for _, n := range w.nodes {
		trips += n.trips
	}
	r.Calls = float64(trips) / float64(s.Instances) / s.For.Seconds()
	if b.waited > 0 {
		r.Waited = 100 * float64(b.waited) / float64(len(requests))
		r.WaitMean = b.waitedFor.Seconds() * 1000 / float64(b.waited)
	}
	return r
}

func (s *Setup) percent(units int64) float64 { return 100 * float64(units) / float64(s.Limit) }

// windows counts by the windows of the store; those opened by first use by their stamps.
func (w *world) windows(r *Result) {
	s := w.setup
	count, worst := map[int64]int64{}, int64(0)
	for _, a := range w.book.admissions {
		k := w.stamped(a)
		count[k] += a.cost
		worst = max(worst, count[k])
	}
	r.Over = s.percent(worst) - 100
	var starts []int64 // of complete windows, as true time
	if s.Window == FirstUse {
		for k := range count {
			starts = append(starts, k)
		}
		slices.Sort(starts)
		if n := len(starts); n > 0 && time.Duration(starts[n-1])*time.Microsecond-epoch-s.Store.Offset+s.Per > s.For {
			starts = starts[:n-1]
		}
	} else {
		for k := w.window(s.Load.Start + s.Per - 1); ; k++ {
			if time.Duration(k+1)*s.Per-s.Store.Offset > s.For {
				break
			}
			starts = append(starts, k)
		}
	}
	total, n := int64(0), 0
	for _, k := range starts {
		at := time.Duration(k)*s.Per - s.Store.Offset
		if s.Window == FirstUse {
			at = time.Duration(k)*time.Microsecond - epoch - s.Store.Offset
		}
		r.Windows = append(r.Windows, count[k])
		if at >= s.Warmup {
			total += count[k]
			n++
		}
	}
	if n > 0 {
		r.Mean = float64(total) / float64(n)
		r.Error = 100*r.Mean/float64(s.Limit) - 100
	}
}

// stamped is the window a was counted in: of fixed windows as the store has them, however
// its clock moved, of others by true time.
func (w *world) stamped(a admission) int64 {
	s := w.setup
	switch {
	case a.open || s.Window == Sliding || s.Window == Rolling || s.Window == Bucket:
	case s.Window == FirstUse:
		return a.stamp
	case s.Mode == Delayed:
		return (a.stamp - int64(epoch/time.Microsecond)) / int64(s.Per/time.Microsecond)
	default:
		return a.stamp - int64(epoch/s.Per)
	}
	return w.window(a.at)
}

// window is the aligned window of the store in which a true instant lies; steps of its
// clock are left out, for this counts what the world saw.
func (w *world) window(t instant) int64 {
	return int64((t + w.setup.Store.Offset) / w.setup.Per)
}

// anySpan is the most that passed in any span of one period.
func (w *world) anySpan() (most int64) {
	from, in := 0, int64(0)
	a := w.book.admissions
	for i := range a {
		in += a[i].cost
		for a[from].at <= a[i].at-w.setup.Per {
			in -= a[from].cost
			from++
		}
		most = max(most, in)
	}
	return most
}

// under is how much less than an exact limiter that needs no time passed, in per cent of
// what that one lets pass, 0 if it is more; whole windows after the warm-up. Windows opened by first use
// are compared with aligned ones as a whole.
func (w *world) under(requests []request) float64 {
	s := w.setup
	first, last := w.window(s.Warmup+s.Per-1), w.window(s.For)
	got, ideal := map[int64]int64{}, map[int64]int64{}
	for _, a := range w.book.admissions {
		got[w.window(a.at)] += a.cost
	}
	var log []request
	var bucket algo.State
	in := int64(0)
	for _, r := range requests {
		k := w.window(r.at)
		if s.Window == Bucket {
			if v := w.store.core.Take(&bucket, algo.Store((epoch+r.at)/time.Microsecond), r.cost); v.Admitted {
				ideal[k] += r.cost
			}
			continue
		}
		if s.Window == Fixed || s.Window == FirstUse {
			if ideal[k]+r.cost <= s.Limit {
				ideal[k] += r.cost
			}
			continue
		}
		for len(log) > 0 && log[0].at <= r.at-s.Per {
			in -= log[0].cost
			log = log[1:]
		}
		if in+r.cost <= s.Limit {
			in += r.cost
			ideal[k] += r.cost
			log = append(log, r)
		}
	}
	short, total := int64(0), int64(0)
	for k, v := range ideal {
		if k < first || k >= last {
			continue
		}
		total += v
		if d := v - got[k]; d > 0 || s.Window != Fixed {
			short += d
		}
	}
	if total == 0 {
		return 0
	}
	return max(0, 100*float64(short)/float64(total))
}

// fairness is Jain's index over instances that saw enough requests to tell.
func (b *book) fairness() float64 {
	var sum, squares float64
	n := 0
	for i, offered := range b.offered {
		if offered >= 10 {
			x := float64(b.passed[i]) / float64(offered)
			sum += x
			squares += float64(x * x)
			n++
		}
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(n) * squares)
}
