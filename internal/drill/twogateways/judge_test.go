package twogateways

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/escapement-io/escapement/algo"
)

const (
	second = 1_000_000
	begin  = algo.Store(1_700_000_000 * second)
)

// at are stamps of n decisions one microsecond apart.
func at(after, window algo.Store, n int) (all []Stamp) {
	for i := range n {
		all = append(all, Stamp{At: begin + after + algo.Store(i), Window: begin + window, Basis: "exact"})
	}
	return all
}

func TestCount(t *testing.T) {
	const ms = algo.Store(1000)
	for name, c := range map[string]struct {
		h    history
		want counted
	}{
		"nothing at all": {
			history{length: 2 * second},
			counted{windows: []int{0, 0}, perSecond: []int{0, 0}, quarter: 1},
		},
		"a decision late in a window counts there, whenever it was answered": {
			history{length: 2 * second, admitted: slices.Concat(at(0, 0, 3), at(1_000_500, 0, 2), at(1_200_000, second, 4))},
			counted{windows: []int{5, 4}, perSecond: []int{3, 6}, worst: 5, worstSpan: 6, quarter: 0.6, last: 1_000_501, total: 9},
		},
		"the window that the load does not end is not complete, and its excess is seen": {
			history{length: second, admitted: slices.Concat(at(0, 0, 3), at(second, second, 7))},
			counted{windows: []int{3}, perSecond: []int{3}, worst: 7, worstSpan: 7, quarter: 1, last: 2, total: 10},
		},
		"a rolling window has instants and no windows": {
			history{rolling: true, length: 2 * second, admitted: slices.Concat(at(900_000, 77, 4), at(1_100_000, 78, 3), at(1_899_999, 79, 1))},
			counted{windows: []int{4, 4}, perSecond: []int{4, 4}, worst: 4, worstSpan: 8, quarter: 0, last: 900_003, total: 8},
		},
		"a unit that is used again exactly one window later is in another span": {
			history{rolling: true, length: 2 * second, admitted: slices.Concat(at(0, 0, 2), at(second, 0, 2))},
			counted{windows: []int{2, 2}, perSecond: []int{2, 2}, worst: 2, worstSpan: 2, quarter: 1, last: 1, total: 4},
		},
		"an opened window is one although the gateways map its start differently": {
			history{opened: true, length: 2 * second, covered: 2*second + 100_000,
				admitted: slices.Concat(at(3*ms, 3*ms, 2), at(4*ms, 3*ms+40, 3), at(1010*ms, 1009*ms, 4), at(1020*ms, 1009*ms-30, 1), at(2050*ms, 2050*ms, 9))},
			counted{windows: []int{5, 5}, perSecond: []int{5, 5}, worst: 9, worstSpan: 9, quarter: 1, last: 11_030, total: 19},
		},
		"a window in which the load fell behind does not count, and its excess is seen": {
			history{length: 4 * second, stalls: []stall{{begin + 1_900_000, begin + 2_000_001}},
				admitted: slices.Concat(at(0, 0, 5), at(second, second, 7), at(2*second, 2*second, 4), at(3*second, 3*second, 5))},
			counted{windows: []int{5, 5}, disturbed: 2, perSecond: []int{5, 7, 4, 5}, worst: 7, worstSpan: 7, quarter: 1, last: 4, total: 21},
		},
		"of bursts only the windows with one count": {
			history{each: 3, length: 5 * second, admitted: slices.Concat(at(0, 0, 5), at(second, second, 1), at(3*second, 3*second, 6))},
			counted{windows: []int{5, 6}, perSecond: []int{5, 1, 0, 6, 0}, worst: 6, worstSpan: 5 + 1, quarter: 1, last: 5, total: 12},
		},
	} {
		h := c.h
		h.per, h.begin, h.each = second, begin, max(1, h.each)
		h.covered = max(h.covered, h.length)
		got := count(&h)
		if diff := cmp.Diff(&c.want, got, cmp.AllowUnexported(counted{})); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// worstSpan against the count in the span from each instant on.
func TestWorstSpan(t *testing.T) {
	instants := []algo.Store{70, 3, 3, 12, 12, 13, 21, 22, 40, 41, 49, 50, 50, 59}
	for per := algo.Span(1); per < 80; per++ {
		want := 0
		for _, from := range instants {
			n := 0
			for _, at := range instants {
				if at >= from && algo.Span(at-from) < per {
					n++
				}
			}
			want = max(want, n)
		}
		if got := worstSpan(slices.Clone(instants), per); got != want {
			t.Errorf("%d: %d, want %d", per, got, want)
		}
	}
}

func TestMatch(t *testing.T) {
	all := []asked{{status: 200}, {status: 429}, {status: 0}, {status: 200}, {status: 503}}
	for name, c := range map[string]struct {
		arrivals []int
		want     []int
		err      string
	}{
		"all as it was answered":         {[]int{3, 0}, nil, ""},
		"arrived and not answered":       {[]int{0, 2, 3}, []int{2}, ""},
		"arrived and answered otherwise": {[]int{0, 3, 4}, []int{4}, ""},
		"refused and arrived":            {[]int{0, 1, 3}, nil, "request 1 was refused"},
		"twice":                          {[]int{0, 3, 3}, nil, "request 3 arrived at the upstream twice"},
		"answered by nobody":             {[]int{0}, nil, "request 3 was answered and did not arrive"},
		"never sent":                     {[]int{0, 3, 5}, nil, "request 5"},
		"broken":                         {[]int{-1}, nil, "request -1"},
	} {
		got, err := match(all, c.arrivals)
		if !slices.Equal(got, c.want) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestParseStamp(t *testing.T) {
	got, err := ParseStamp("at=1700000000123456; window=1700000000000000;basis=leased;more=1")
	if want := (Stamp{1700000000123456, 1700000000000000, "leased"}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{"", "at=1;window=2", "at=x;window=2;basis=exact", "at=1;at=1;window=2;basis=exact", "at=1;window=;basis=exact", "at=1;window=2;basis="} {
		if _, err := ParseStamp(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestProblems(t *testing.T) {
	fixed := Options{Instances: 2, Limit: 500, Per: time.Second, Window: "fixed", Mode: Leased, Sync: time.Second / 5}
	right := -1.0
	for name, c := range map[string]struct {
		change func(*Options)
		r      Report
		want   string
	}{
		"all is well":                        {nil, Report{worst: 500, worstSpan: 900, Windows: []int{500}}, ""},
		"one too many in a window":           {nil, Report{worst: 501, Windows: []int{500}}, "501 were admitted in a window"},
		"the same, delayed":                  {func(o *Options) { o.Mode = Delayed }, Report{worst: 1000, Windows: []int{500}}, ""},
		"N times the limit is the worst":     {func(o *Options) { o.Mode = Delayed }, Report{worst: 1001, Windows: []int{500}}, "2 instances admit at most 1000"},
		"any span of a rolling window":       {func(o *Options) { o.Window = "rolling" }, Report{worst: 500, worstSpan: 501, Windows: []int{500}}, "span"},
		"sliding is leased as rolling":       {func(o *Options) { o.Window = "sliding" }, Report{worst: 500, worstSpan: 501, Windows: []int{500}}, "span"},
		"sliding alone promises no span":     {func(o *Options) { o.Window, o.Mode = "sliding", Exact }, Report{worst: 500, worstSpan: 501, Windows: []int{500}}, ""},
		"no window":                          {nil, Report{}, "0 were complete"},
		"few windows are left":               {nil, Report{Windows: []int{500}, Disturbed: 4}, "fell behind in 4 windows"},
		"enough windows are left":            {nil, Report{Windows: []int{500}, Disturbed: 3}, ""},
		"too many failures":                  {nil, Report{Windows: []int{500}, Offered: 1000, Failed: 11}, "11 of 1000 requests failed"},
		"failures by intent":                 {func(o *Options) { o.Faults.KillStore = 1 }, Report{Windows: []int{500}, Offered: 1000, Failed: 110}, ""},
		"what a replica had not heard of":    {nil, Report{worst: 510, Windows: []int{500}, Failover: &Failover{Lost: 10}}, ""},
		"more than that":                     {nil, Report{worst: 511, Windows: []int{500}, Failover: &Failover{Lost: 10}}, "had not heard of"},
		"a burst that was not used":          {func(o *Options) { o.Burst = true }, Report{Mean: 490, Windows: []int{490}}, "at least 99 %"},
		"a burst that was":                   {func(o *Options) { o.Burst = true }, Report{Mean: 495, Windows: []int{495}}, ""},
		"as with right clocks":               {nil, Report{Windows: []int{500}, Error: -1.9, Clean: &right}, ""},
		"worse than with right clocks":       {nil, Report{Windows: []int{500}, Error: -2.1, Clean: &right}, "with right clocks"},
		"better than right is wrong as well": {nil, Report{Windows: []int{500}, Error: 0.1, Clean: &right}, "with right clocks"},
	} {
		o := fixed
		if c.change != nil {
			c.change(&o)
		}
		got := strings.Join(c.r.problems(&o), "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestJudge(t *testing.T) {
	o := Options{Instances: 2, Limit: 5, Per: time.Second, Window: "fixed", Mode: Delayed, Sync: time.Second / 5}
	h := &history{limit: 5, per: second, each: 1, begin: begin, length: 2 * second, covered: 2 * second, admitted: slices.Concat(at(0, 0, 6), at(second, second, 5))}
	r := judge(&o, h)
	if r.Mean != 5.5 || r.Error != 10 || r.MaxOver != 20 || r.MaxOverAnySpan != 20 || r.Admitted != 11 || r.Per != "1s" || r.Sync != "200ms" {
		t.Errorf("%+v", r)
	}
	var text, picture strings.Builder
	if err := r.Text(&text); err != nil || !strings.Contains(text.String(), "windows: 6 5\n") || !strings.Contains(text.String(), "█▅") {
		t.Errorf("%v\n%s", err, text.String())
	}
	if err := r.Chart().Write(&picture, ".svg"); err != nil || !strings.Contains(picture.String(), "the limit") {
		t.Errorf("the picture: %v", err)
	}
}

func TestCallsOfRedis(t *testing.T) {
	info := "# Commandstats\r\ncmdstat_evalsha:calls=812,usec=1,usec_per_call=1.00,rejected_calls=0,failed_calls=2\r\n" +
		"cmdstat_eval:calls=3,usec=1\r\ncmdstat_zcard:calls=40,usec=1\r\ncmdstat_evalsha_ro:calls=9,usec=1\r\ncmdstat_get:calls=900,usec=1\r\n"
	if got, want := parseCalls(info), (calls{scripts: 815, keeping: 40}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestUnansweredRequestsCountWhenTheyWereSent(t *testing.T) {
	const ms = algo.Mono(time.Millisecond)
	all := []asked{
		{due: 7, sent: 7, status: 200, stamp: Stamp{At: begin + 5, Window: begin + 4}},
		{due: 7, sent: 7 + 50*ms, status: 429},
		{due: 7 + 1198*ms, sent: 7 + 1250*ms},
	}
	h := &history{per: second, begin: begin}
	h.take(all, []int{2}, 7)
	want := []Stamp{{At: begin + 5, Window: begin + 4}, {At: begin + 1_250_000, Window: begin + second}}
	if !slices.Equal(h.admitted, want) || !slices.Equal(h.stalls, []stall{{begin + 1_198_000, begin + 1_250_000}}) {
		t.Errorf("%+v, want %+v; %v", h.admitted, want, h.stalls)
	}
	h = &history{per: second, begin: begin, opened: true}
	h.take(all, []int{2}, 7)
	if want[1].Window = begin + 4; !slices.Equal(h.admitted, want) {
		t.Errorf("%+v, want %+v", h.admitted, want)
	}
	if got := lastOpened(nil, 9); got != 9 {
		t.Errorf("%d, want 9", got)
	}
}

func TestOptionsAreCheckedAllAtOnce(t *testing.T) {
	o := Options{Instances: 99, Window: "round", Mode: "never", Rate: -1, Faults: Faults{KillStore: time.Hour, KillGateway: time.Hour, Skew: 48 * time.Hour}}
	err := o.Check()
	for _, want := range []string{"99 instances", "a limit of 0", "a window of 0s", `window "round"`, `mode "never"`, "-1 requests", "a run of", "48h", "end of the store at 1h0m0s", "gateway and store"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no mention of %q in: %v", want, err)
		}
	}
	o = Options{Instances: 2, Limit: 500, Per: time.Second, Window: "rolling", Sync: 900 * time.Millisecond, Mode: Leased, Rate: 800, For: 30 * time.Second}
	if err := o.Check(); err == nil || !strings.Contains(err.Error(), "sync") {
		t.Errorf("an interval above half a rolling window: %v", err)
	}
	o.Sync = 200 * time.Millisecond
	if err := o.Check(); err != nil {
		t.Error(err)
	}
}
