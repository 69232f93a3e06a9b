package doctor

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/clocktest"
	"github.com/escapement-io/escapement/internal/config"
)

func TestKernelAndClockSource(t *testing.T) {
	for _, tt := range []struct {
		name string
		f    Facts
		want want
	}{
		{"synchronised", Facts{Kernel: synchronised}, want{"kernel-sync", OK, nil}},
		{"20 ms", Facts{Kernel: synchronised}, want{"kernel-error-bound", OK, []string{"20 ms", "5/s"}}},
		{"300 ms", Facts{Kernel: clock.KernelState{Known: true, Synchronised: true, MaxError: 300 * time.Millisecond}}, want{"kernel-error-bound", Warning, []string{"300 ms", "minpoll 4"}}},
		{"3 s", Facts{Kernel: clock.KernelState{Known: true, Synchronised: true, MaxError: 3 * time.Second}}, want{"kernel-error-bound", Fail, []string{"3 s"}}},
		{"jiffies", Facts{ClockSource: "jiffies", ClockSources: []string{"jiffies", "kvm-clock"}}, want{"clock-source", Fail, []string{"clocksource=kvm-clock"}}},
		{"hpet alone", Facts{ClockSource: "hpet", ClockSources: []string{"hpet"}}, want{"clock-source", Warning, []string{"clocksource=tsc"}}},
	} {
		t.Run(tt.name, func(t *testing.T) { expect(t, Judge(&tt.f), tt.want) })
	}
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := clocktest.NewMachine()
		looks := 0
		w := watch(t.Context(), eventful{m, func() {
			switch looks++; looks {
			case 20:
				m.Step(-320 * time.Millisecond)
			case 40:
				m.Suspend(3 * time.Second)
			}
			m.Advance(100 * time.Millisecond)
		}}, 10*time.Second)
		expect(t, Judge(&Facts{Watch: w}),
			want{"watched-steps", Fail, []string{"1 times", "-320 ms", "32 requests"}},
			want{"watched-suspends", Warning, []string{"3 s"}})

		m = clocktest.NewMachine()
		m.WithoutBoot()
		w = watch(t.Context(), m, time.Second)
		expect(t, Judge(&Facts{Watch: w}), want{"watched-steps", OK, nil}, want{"watched-suspends", Unknown, nil})
	})
}

// eventful is a machine on which something happens at every look.
type eventful struct {
	*clocktest.Machine
	before func()
}

func (e eventful) Read() clock.Reading {
	e.before()
	return e.Machine.Read()
}

func TestLimitPrecision(t *testing.T) {
	cfg := &config.Config{Limits: []*config.Limit{
		{Limit: escapement.Limit{Name: "slow", Rate: escapement.Rate{Count: 6, Per: time.Minute}}},
		{Limit: escapement.Limit{Name: "fast", Rate: escapement.Rate{Count: 100, Per: time.Second}}},
		{Limit: escapement.Limit{Name: "daily", Rate: escapement.Rate{Count: 1000}, Align: escapement.Day, Algorithm: escapement.FixedWindow}},
	}}
	needs := Needs(cfg)
	if len(needs) != 3 || needs[0] != (Need{"fast", 10 * time.Millisecond}) || needs[0].Bound() != time.Millisecond ||
		needs[1] != (Need{"slow", 10 * time.Second}) || needs[2] != (Need{"daily", 86_400 * time.Millisecond}) {
		t.Errorf("%+v", needs)
	}
	store := func(off, err time.Duration) *Offset { return &Offset{Name: "redis://s", Offset: off, Error: err} }
	for _, tt := range []struct {
		name string
		f    Facts
		want want
		met  []bool
	}{
		{"nothing known", Facts{}, want{"limit-precision", Unknown, []string{"fast", "1 ms", "10 ms"}}, []bool{false, false, false}},
		{"a near store", Facts{Store: store(-600*time.Microsecond, 300*time.Microsecond)}, want{"limit-precision", OK, []string{"900 µs"}}, []bool{true, true, true}},
		{"a far store", Facts{Store: store(600*time.Microsecond, 500*time.Microsecond)}, want{"limit-precision", Warning, []string{"fast (1 ms)", "local_share"}}, []bool{false, true, true}},
		{"the store counts, not NTP", Facts{Store: store(2*time.Second, 0), NTP: []Offset{{Name: "ntp n"}}}, want{"limit-precision", Warning, []string{"2 of 3", "slow (1 s)"}}, []bool{false, false, true}},
		{"a store that is away", Facts{Store: &Offset{Failed: "x"}, NTP: []Offset{{Name: "ntp n", Error: 5 * time.Millisecond}}}, want{"limit-precision", Warning, []string{"5 ms", "ntp n"}}, []bool{false, true, true}},
		{"the kernel", Facts{Kernel: synchronised}, want{"limit-precision", Warning, []string{"20 ms"}}, []bool{false, true, true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.f.Needs, tt.f.NeedsKnown = needs, true
			r := Judge(&tt.f)
			expect(t, r, tt.want)
			var met []bool
			for _, l := range r.Limits {
				met = append(met, l.Met)
			}
			if !slices.Equal(met, tt.met) {
				t.Errorf("met: %v, want %v", met, tt.met)
			}
		})
	}
	expect(t, Judge(&Facts{NeedsKnown: true}), want{"limit-precision", OK, nil})
}

// member is a gateway of a fleet whose clock is off by as much as it says.
func member(t *testing.T, boot string, offset time.Duration, state clock.State, steps uint64, sources ...string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/clock" {
			http.NotFound(w, r)
			return
		}
		d := clockDocument{BootID: boot, Sources: sources}
		d.Now = algo.Wall(clock.Wall().Add(offset).UnixNano())
		d.Bound.State, d.Bounded, d.ErrorBound = state, state == clock.Synchronised, 7*time.Millisecond
		d.Tally.StepsForward = steps
		_ = json.NewEncoder(w).Encode(&d)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestFleet(t *testing.T) {
	a := member(t, "one", 0, clock.Synchronised, 0, "server time.example.org")
	b := member(t, "two", 0, clock.Synchronised, 2, "server time.example.org")
	c := member(t, "three", 250*time.Millisecond, clock.Unknown, 0, "server time.example.org")
	d := member(t, "four", 0, clock.Synchronised, 0, "server other.example.org")
	e := member(t, "five", 0, clock.Synchronised, 0)
	twin := member(t, "one", 0, clock.Synchronised, 0, "server time.example.org")

	r := Judge(gather(t, Options{Fleet: []string{a, b, c}}))
	expect(t, r,
		want{"fleet-reach", OK, []string{"3 of 3 instances"}},
		want{"fleet-state", Warning, []string{c + ": unknown", b + " 2 times"}},
		want{"fleet-offset", Fail, []string{c + " is 2", "25 %"}},
		want{"fleet-source", Warning, []string{"all 3 machines", "server time.example.org alone", "server SECOND-SERVER"}})
	if row := r.Fleet[2]; row.URL != c || row.State != "unknown" || row.BoundMS != nil || *row.OffsetMS < 150 || *row.OffsetMS > 350 {
		t.Errorf("%+v", row)
	}
	if row := r.Fleet[1]; row.Steps != 2 || *row.BoundMS != 7 || !slices.Equal(row.Sources, []string{"server time.example.org"}) {
		t.Errorf("%+v", row)
	}

	expect(t, Judge(gather(t, Options{Fleet: []string{a, b, d}})),
		want{"fleet-offset", OK, nil}, want{"fleet-state", OK, nil}, want{"fleet-source", OK, []string{"3 machines"}})
	expect(t, Judge(gather(t, Options{Fleet: []string{a, b, e}})), want{"fleet-source", Unknown, []string{"--ntp"}})
	expect(t, Judge(gather(t, Options{Fleet: []string{a, twin}})), want{"fleet-source", Unknown, []string{"one machine"}})
	expect(t, Judge(gather(t, Options{Fleet: []string{a}})), want{"fleet-offset", Unknown, nil})
}

func TestFleetOfStrangers(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer page.Close()
	big := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2<<20)) }))
	defer big.Close()
	none := httptest.NewServer(http.NotFoundHandler())
	defer none.Close()
	r := Judge(gather(t, Options{Fleet: []string{page.URL, big.URL, none.URL}}))
	expect(t, r,
		want{"fleet-reach", Fail, []string{page.URL + ": ", "not the document of /v1/clock", "longer than", "404", "admin: HOST:PORT"}},
		want{"fleet-state", Unknown, []string{"no instance answered"}})
	for _, row := range r.Fleet {
		if row.OffsetMS != nil || row.Problem == "" {
			t.Errorf("%+v", row)
		}
	}
}

// What an instance says of itself is printed only if it stays in its place.
func TestFleetOfForgers(t *testing.T) {
	for name, change := range map[string]func(*clockDocument){
		"a state of its own":  func(d *clockDocument) { d.Bound.State = "synchronised\nhttp://other  0.000" },
		"a source of two":     func(d *clockDocument) { d.Sources = []string{"a\nb"} },
		"an escape sequence":  func(d *clockDocument) { d.Sources = []string{"\x1b[2J"} },
		"a long source":       func(d *clockDocument) { d.Sources = []string{strings.Repeat("s", 301)} },
		"many sources":        func(d *clockDocument) { d.Sources = make([]string, 65) },
		"a bound below zero":  func(d *clockDocument) { d.ErrorBound = -1 },
		"a time beyond times": func(d *clockDocument) { d.Now = math.MaxInt64 },
	} {
		d := clockDocument{BootID: "one"}
		d.Now, d.Bound.State = algo.Wall(clock.Wall().UnixNano()), clock.Synchronised
		change(&d)
		body, err := json.Marshal(&d)
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
		r := Judge(gather(t, Options{Fleet: []string{s.URL}}))
		s.Close()
		if row := r.Fleet[0]; row.Problem == "" || row.OffsetMS != nil || row.State != "" {
			t.Errorf("%s: %+v", name, row)
		}
	}
}

func TestReportAsJSON(t *testing.T) {
	r := Judge(&Facts{Store: &Offset{Name: "s", Failed: "away"}})
	b, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{`{"checks":[{"name":"kernel-sync","status":"unknown","detail":"`, `"fix":""}`, `"references":[{"name":"s","offset_ms":null,"error_ms":null,"problem":"away"}]`} {
		if !strings.Contains(string(b), s) {
			t.Errorf("no %s in\n%s", s, b)
		}
	}
}

// TestReferenceNamesEveryCheck compares docs/reference/doctor.md with the checks, both ways.
func TestReferenceNamesEveryCheck(t *testing.T) {
	doc, err := os.ReadFile("../../docs/reference/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z][a-z-]+)` \\|").FindAllStringSubmatch(string(doc), -1) {
		names = append(names, m[1])
	}
	if !slices.Equal(names, Names()) {
		t.Errorf("docs/reference/doctor.md has the checks\n%v, want, in this order,\n%v", names, Names())
	}
}

func TestGatherEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Gather(ctx, Options{Root: fstest.MapFS{}, Watch: time.Hour}); err == nil {
		t.Error("no error")
	}
}
