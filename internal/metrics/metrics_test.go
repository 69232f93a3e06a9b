package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/clocktest"
	"github.com/escapement-io/escapement/redisstore"
)

// everything is sources in which every metric has a value.
func everything() Sources {
	return Sources{
		Clock: func() clock.Snapshot {
			return clock.Snapshot{
				Bound: clock.Interval{State: clock.Slewing}, Bounded: true, ErrorBound: 7 * time.Millisecond,
				Epoch: 2, SlewPPM: 533.3, GuardMinusWall: -320 * time.Millisecond,
				Tally: clock.Tally{Checks: 90, Unclear: 4, StepsForward: 2, StepsBackward: 1, LastStep: -50 * time.Millisecond,
					Suspends: 1, Suspended: 3 * time.Second, Rebases: 5, Switches: 6},
				References: []clock.ReferenceStatus{
					{Name: "system", Known: true, Followed: true, Offset: time.Millisecond, Error: 2 * time.Millisecond},
					{Name: "ntp a", Offset: time.Hour}, // not known
				},
			}
		},
		Gateway: func() Gateway {
			n, most := int64(2000), int64(42)
			return Gateway{Held: 3, ReloadsOK: 8, ReloadsFailed: 1, Limits: []Limit{
				{Name: "login", Bases: []Decisions{{"exact", 100, 30, 5}, {"delayed", 20, 4, 0}, {"leased", 10, 3, 1}}, Fallback: 7, FallbackRefused: 2,
					Invalid: 9, Delayed: 11, AdmittedUnits: 85, PerSecond: 12.5, Bound: &n, Overshoot: &most, Lost: 17, RefusedRatio: 0.25, RefusedRatioMax: 0.5},
				{Name: "free", Bases: []Decisions{{"exact", 1, 0, 0}}}}} // nothing is known of its bound, overshoot and rate
		},
		Store: func() Store { return Store{Keys: 12, MaxKeys: 100, Bytes: 4096, RefusedAtCap: 13, Dropped: 14} },
		Shared: func() []Shared {
			return []Shared{{Name: "main", Reached: true, Instances: 3, Bounds: []time.Duration{time.Millisecond, 50 * time.Millisecond},
				Calls: []uint64{7, 2, 1}, Failed: 1, Took: 1500 * time.Millisecond,
				Sync: []Sync{{Mode: "lease", Calls: 70, Failed: 6, RefusedAtCap: 15, Keys: 500, Interval: 250 * time.Millisecond}},
				State: &redisstore.Snapshot{Known: true, Error: 3 * time.Millisecond, Clamped: 21, Steps: 2, Last: -30 * time.Second, Adopted: 4,
					Primaries: []redisstore.PrimarySnapshot{{Name: "a:1", Open: true, Queued: 5, Requests: 60, Unknown: 8, NotRun: 9,
						Adjustment: -45 * time.Second, Offset: 45 * time.Second}}}}}
		},
	}
}

func TestMetricsSayWhatTheSourcesSay(t *testing.T) {
	s := everything()
	want := map[string]float64{
		`clock_step_total{direction="forward"}`: 2, `clock_step_total{direction="backward"}`: 1, `clock_last_step_seconds`: -0.05,
		`clock_suspend_seconds_total`: 3, `clock_unclear_total`: 4, `clock_check_total`: 90, `clock_rebased_total`: 5, `clock_switched_total`: 6,
		`clock_offset_seconds{reference="system"}`: 0.001, `clock_error_bound_seconds{reference="system"}`: 0.002, `clock_error_bound_seconds{reference="guard"}`: 0.007,
		`clock_followed{reference="system"}`: 1, `clock_followed{reference="ntp a"}`: 0,
		`clock_state{state="unknown"}`: 0, `clock_state{state="synchronised"}`: 0, `clock_state{state="slewing"}`: 1, `clock_state{state="holdover"}`: 0, `clock_state{state="disrupted"}`: 0,
		`clock_epoch`: 2, `clock_slew_ppm`: 533.3, `clock_guard_minus_wall_seconds`: -0.32, `clock_fit`: 1,
		`limit_decisions_total{basis="exact",limit="login",verdict="admitted"}`: 65, `limit_decisions_total{basis="exact",limit="login",verdict="refused"}`: 30,
		`limit_decisions_total{basis="exact",limit="login",verdict="shadow_refused"}`: 5,
		`limit_decisions_total{basis="fallback",limit="login",verdict="admitted"}`:    5, `limit_decisions_total{basis="fallback",limit="login",verdict="refused"}`: 2,
		`limit_decisions_total{basis="delayed",limit="login",verdict="admitted"}`: 16, `limit_decisions_total{basis="delayed",limit="login",verdict="refused"}`: 4,
		`limit_decisions_total{basis="delayed",limit="login",verdict="shadow_refused"}`: 0,
		`limit_decisions_total{basis="leased",limit="login",verdict="admitted"}`:        6, `limit_decisions_total{basis="leased",limit="login",verdict="refused"}`: 3,
		`limit_decisions_total{basis="leased",limit="login",verdict="shadow_refused"}`: 1,
		`limit_admitted_units_total{limit="login"}`:                                    85, `limit_units_per_second{limit="login"}`: 12.5, `limit_bound_units{limit="login"}`: 2000, `limit_overshoot_units{limit="login"}`: 42, `limit_lost_units_total{limit="login"}`: 17, `limit_lost_units_total{limit="free"}`: 0,
		`limit_refused_ratio{limit="login"}`: 0.25, `limit_refused_ratio_max{limit="login"}`: 0.5,
		`limit_decisions_total{basis="exact",limit="free",verdict="admitted"}`: 1, `limit_decisions_total{basis="exact",limit="free",verdict="refused"}`: 0,
		`limit_decisions_total{basis="exact",limit="free",verdict="shadow_refused"}`: 0,
		`limit_decisions_total{basis="fallback",limit="free",verdict="admitted"}`:    0, `limit_decisions_total{basis="fallback",limit="free",verdict="refused"}`: 0,
		`limit_admitted_units_total{limit="free"}`: 0, `limit_refused_ratio{limit="free"}`: 0, `limit_refused_ratio_max{limit="free"}`: 0,
		`limit_invalid_total{limit="free"}`: 0, `limit_delayed_total{limit="free"}`: 0,
		`limit_invalid_total{limit="login"}`: 9, `limit_delayed_total{limit="login"}`: 11,
		`held_requests`: 3, `reloads_total{result="ok"}`: 8, `reloads_total{result="failed"}`: 1,
		`store_keys`: 12, `store_max_keys`: 100, `store_bytes`: 4096, `store_refused_at_cap_total`: 13, `store_dropped_total`: 14,
		`store_reached{store="main"}`: 1, `store_instances{store="main"}`: 3, `store_call_errors_total{store="main"}`: 1,
		`store_call_seconds_bucket{store="main",le="0.001"}`: 7, `store_call_seconds_bucket{store="main",le="0.05"}`: 9, `store_call_seconds_bucket{store="main",le="+Inf"}`: 10,
		`store_call_seconds_sum{store="main"}`: 1.5, `store_call_seconds_count{store="main"}`: 10,
		`store_requests_total{primary="a:1",store="main"}`: 60, `store_unknown_total{primary="a:1",store="main"}`: 8, `store_not_run_total{primary="a:1",store="main"}`: 9,
		`store_breaker_open{primary="a:1",store="main"}`: 1, `store_queued_requests{primary="a:1",store="main"}`: 5,
		`store_clock_offset_seconds{primary="a:1",store="main"}`: 45, `store_clock_adjustment_seconds{primary="a:1",store="main"}`: -45,
		`sync_calls_total{mode="lease",store="main"}`: 70, `sync_failed_total{mode="lease",store="main"}`: 6, `sync_keys{mode="lease",store="main"}`: 500, `sync_refused_at_cap_total{mode="lease",store="main"}`: 15,
		`sync_interval_seconds{mode="lease",store="main"}`: 0.25,
		`store_clock_error_seconds{store="main"}`:          0.003, `store_clock_clamped_total{store="main"}`: 21, `store_clock_step_total{store="main"}`: 2,
		`store_clock_last_step_seconds{store="main"}`: -30, `store_clock_adopted_total{store="main"}`: 4,
	}
	body := scrape(t, Handler(s))
	got := map[string]float64{}
	for _, m := range regexp.MustCompile(`(?m)^escapement_(\S+(?:\{.*\})?) (\S+)$`).FindAllStringSubmatch(body, -1) {
		var v float64
		if _, err := fmt.Sscan(m[2], &v); err != nil {
			t.Fatal(err)
		}
		got[m[1]] = v
	}
	for name, v := range want {
		if g, ok := got[name]; !ok || g != v {
			t.Errorf("%s is %v (there: %v), want %v", name, g, ok, v)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s was not expected", name)
		}
	}
	for _, s := range []string{"go_goroutines", "process_open_fds"} {
		if !strings.Contains(body, "\n"+s+" ") {
			t.Errorf("no %s", s)
		}
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(&s)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

func scrape(t *testing.T, h http.Handler) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// TestReferenceOfMetrics compares docs/reference/metrics.md with what is served: names,
// types and labels, both ways.
func TestReferenceOfMetrics(t *testing.T) {
	doc, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(escapement_\\w+)` \\| (\\w+) \\| ([^|]*)\\|").FindAllStringSubmatch(string(doc), -1) {
		documented = append(documented, m[1]+" "+m[2]+" "+labelsOf(strings.FieldsFunc(m[3], func(r rune) bool { return strings.ContainsRune("`, ", r) })))
	}
	s := everything()
	r := prometheus.NewRegistry()
	r.MustRegister(&s)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var served []string
	for _, f := range families {
		var labels []string
		for _, l := range f.Metric[0].Label {
			labels = append(labels, l.GetName())
		}
		served = append(served, f.GetName()+" "+strings.ToLower(f.GetType().String())+" "+labelsOf(labels))
	}
	slices.Sort(documented)
	slices.Sort(served)
	if !slices.Equal(documented, served) {
		t.Errorf("documented:\n%s\nserved:\n%s", strings.Join(documented, "\n"), strings.Join(served, "\n"))
	}
	// The alerts of docs/operating.md ask for metrics that exist.
	operating, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`escapement_\w+`).FindAllString(string(operating), -1) {
		if !strings.Contains(strings.Join(served, "\n")+"\n", name+" ") {
			t.Errorf("docs/operating.md asks for %s", name)
		}
	}
}

func labelsOf(list []string) string {
	slices.Sort(list)
	return strings.Join(list, ",")
}

func TestSourcesMayBeMissing(t *testing.T) {
	body := scrape(t, Handler(Sources{Store: everything().Store}))
	if !strings.Contains(body, "escapement_store_keys 12") || strings.Contains(body, "escapement_clock") {
		t.Error(body)
	}
}

// fields lists the paths of the values a type is written with as JSON.
func fields(typ reflect.Type, prefix string, add func(string)) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct {
			if inner.Kind() == reflect.Slice {
				name += "[]"
			}
			inner = inner.Elem()
		}
		switch {
		case f.Anonymous:
			fields(inner, prefix, add)
		case inner.Kind() == reflect.Struct:
			fields(inner, prefix+name+".", add)
		default:
			add(prefix + name)
		}
	}
}

// TestReferenceOfClock compares docs/reference/clock-api.md with the document, both ways.
func TestReferenceOfClock(t *testing.T) {
	doc, err := os.ReadFile("../../docs/reference/clock-api.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, served []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(string(doc), -1) {
		for _, name := range strings.Split(row[1], ", ") {
			documented = append(documented, strings.Trim(name, "`"))
		}
	}
	fields(reflect.TypeFor[ClockDocument](), "", func(name string) { served = append(served, name) })
	slices.Sort(documented)
	slices.Sort(served)
	if !slices.Equal(documented, served) {
		t.Errorf("documented:\n%s\nserved:\n%s", strings.Join(documented, "\n"), strings.Join(served, "\n"))
	}
}

func TestClockShowsAGuard(t *testing.T) {
	m := clocktest.NewMachine()
	m.SetKernel(clock.KernelState{Known: true, Synchronised: true, MaxError: 5 * time.Millisecond})
	g, err := clock.NewGuard(clock.Config{Source: m})
	if err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	g.Subscribe(Log(slog.New(slog.NewJSONHandler(&lines, nil))))
	m.Advance(time.Second)
	g.Check()
	if lines.Len() != 0 {
		t.Errorf("nothing happened, and the log says %s", &lines)
	}
	m.Step(-320 * time.Millisecond)
	m.Advance(time.Second)
	g.Check()
	if n := strings.Count(lines.String(), `"msg":"clock step"`); n != 1 {
		t.Errorf("%d lines for one step:\n%s", n, &lines)
	}
	for _, s := range []string{`"level":"ERROR"`, `"severity":"critical"`, `"direction":"backward"`, `"size_seconds":-0.32`} {
		if !strings.Contains(lines.String(), s) {
			t.Errorf("the log lacks %s:\n%s", s, &lines)
		}
	}
	var d ClockDocument
	if err := json.Unmarshal([]byte(scrape(t, Clock(g.Snapshot, []string{"server a"}))), &d); err != nil {
		t.Fatal(err)
	}
	if d.BootID != clock.BootID() || !slices.Equal(d.Sources, []string{"server a"}) || d.Tally.StepsBackward != 1 ||
		d.LastEvent == nil || d.LastEvent.Kind != clock.Step || d.References[0].Name != "system" || d.Now <= 0 {
		t.Errorf("%+v", d)
	}
	body := scrape(t, Clock(func() clock.Snapshot { return clock.Snapshot{} }, nil))
	if !strings.Contains(body, `"sources":[]`) || !strings.Contains(body, `"references":[]`) {
		t.Errorf("lists are null in %s", body)
	}
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		state clock.State
		bound time.Duration
		want  bool
	}{
		{clock.Synchronised, time.Millisecond, true},
		{clock.Slewing, fitWithin, true},
		{clock.Slewing, fitWithin + 1, false},
		{clock.Holdover, time.Second, true},
		{clock.Holdover, time.Minute, false},
		{clock.Unknown, 0, false},
		{clock.Disrupted, 0, false},
	} {
		i := clock.Interval{State: c.state}
		if got := Fit(&clock.Snapshot{Bound: i, Bounded: i.Bounded(), ErrorBound: c.bound}); got != c.want {
			t.Errorf("%s with a bound of %v: fit %v", c.state, c.bound, got)
		}
	}
}

// TestAGuardIsFitOnceItsReferencesAgree and no longer when their error is too much.
func TestAGuardIsFitOnceItsReferencesAgree(t *testing.T) {
	m := clocktest.NewMachine()
	g, err := clock.NewGuard(clock.Config{Source: m})
	if err != nil {
		t.Fatal(err)
	}
	fit := func(want string) {
		t.Helper()
		m.Advance(time.Second)
		g.Check()
		if body := scrape(t, Handler(Sources{Clock: g.Snapshot})); !strings.Contains(body, "\nescapement_clock_fit "+want+"\n") {
			t.Errorf("want fit %s in the state %s", want, g.Snapshot().Bound.State)
		}
		if body := scrape(t, Clock(g.Snapshot, nil)); !strings.Contains(body, `"fit":`+map[string]string{"0": "false", "1": "true"}[want]) {
			t.Errorf("want fit %s in %s", want, body)
		}
	}
	fit("0")
	m.SetKernel(clock.KernelState{Known: true, Synchronised: true, MaxError: 5 * time.Millisecond})
	fit("1")
	m.SetKernel(clock.KernelState{Known: true, Synchronised: true, MaxError: 3 * time.Second})
	fit("0")
}

func TestLevelsOfLogLines(t *testing.T) {
	var lines bytes.Buffer
	log := Log(slog.New(slog.NewTextHandler(&lines, nil)))
	for _, l := range []clock.Level{clock.Info, clock.Warning, clock.Critical} {
		log(clock.Event{Kind: clock.Unclear, Level: l})
	}
	for _, s := range []string{"level=INFO msg=\"clock unclear\" severity=info", "level=WARN msg=\"clock unclear\" severity=warning", "level=ERROR msg=\"clock unclear\" severity=critical"} {
		if !strings.Contains(lines.String(), s) {
			t.Errorf("no %s in\n%s", s, &lines)
		}
	}
}
