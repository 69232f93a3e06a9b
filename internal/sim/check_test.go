package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/batch"
	"github.com/escapement-io/escapement/lease"
)

// careless is a limiter with one fault, to see that the checks notice.
type careless struct {
	limiter
	generous bool // admits what the ledger refuses
	repeats  bool // sends reports again under a new number
	drops    bool // loses reports
	alone    bool // says that what it admits is within a part
	number   int64
}

func (c *careless) admit(now algo.Mono, r *request) verdict {
	v := c.limiter.admit(now, r)
	if c.generous && !v.waits && !v.admitted {
		v.admitted, v.stamp = true, windowOf(r)
	}
	if c.alone {
		v.part = 3
	}
	return v
}

// windowOf is the fixed window of a second in which a request arrived.
func windowOf(r *request) int64 { return int64((epoch + r.at) / time.Second) }

func (c *careless) poll(now algo.Mono) (func(*store) any, bool) {
	d, ok := c.limiter.(delayed)
	if !ok {
		return c.limiter.poll(now)
	}
	f, send := d.Poll(now)
	switch {
	case !send:
		return nil, false
	case c.drops:
		f.Parts = nil
	case c.repeats:
		return func(s *store) any {
			c.number += 2
			f.Number = c.number
			s.flush(&f)
			f.Number++
			return s.flush(&f)
		}, true
	}
	return sendFlush(f, true)
}

func calm(mode Mode, window Window) *Setup {
	return &Setup{Name: "calm", Instances: 3, Limit: 100, Per: time.Second, Window: window, Mode: mode, Sync: 100 * time.Millisecond, Phases: Spread, For: 5 * time.Second,
		Load: Load{Kind: Poisson, Rate: 400}, Network: Network{Latency: 200 * time.Microsecond, Jitter: 100 * time.Microsecond, Timeout: 50 * time.Millisecond}}
}

// broken runs a calm world in which one instance is careless and returns what is wrong.
func broken(t *testing.T, s *Setup, fault func(*node)) string {
	t.Helper()
	w, err := s.build(1)
	if err != nil {
		t.Fatal(err)
	}
	requests, err := s.arrivals(1)
	if err != nil {
		t.Fatal(err)
	}
	if fault != nil {
		fault(w.nodes[0])
	}
	w.run(requests)
	w.check(requests)
	return strings.Join(w.book.violations, "\n")
}

func TestChecksNotice(t *testing.T) {
	for _, s := range []*Setup{calm(Leased, Fixed), calm(Leased, Rolling), calm(Delayed, Fixed), calm(Delayed, FirstUse), calm(Delayed, Sliding)} {
		if got := broken(t, s, nil); got != "" {
			t.Errorf("%s %s: nothing is wrong, and %s", s.Mode, s.Window, got)
		}
	}
	for name, tt := range map[string]struct {
		setup *Setup
		fault func(*node)
		want  string
	}{
		"more than was granted":  {calm(Leased, Fixed), func(n *node) { n.limit = &careless{limiter: n.limit, generous: true} }, "limit 100"},
		"a report counted twice": {calm(Delayed, Fixed), func(n *node) { n.limit = &careless{limiter: n.limit, repeats: true} }, "counted"},
		"a report lost":          {calm(Delayed, Fixed), func(n *node) { n.limit = &careless{limiter: n.limit, drops: true} }, "counted"},
		"a wait without end": {calm(Leased, Fixed), func(n *node) {
			n.limit = &leased{Ledger: lease.New(lease.Config{Lease: n.w.store.lease, MaxWait: algo.Mono(time.Second)})}
			n.w.setup.Store.Outages = []Outage{{0, time.Second}}
		}, "waited"},
		"more than a part": {calm(Leased, Fixed), func(n *node) {
			n.w.setup.Share = true
			n.limit = &careless{limiter: n.limit, alone: true}
		}, "without the store"},
		"a part that was not told": {calm(Leased, Fixed), func(n *node) {
			n.w.setup.Share = true
			n.limit = &careless{limiter: n.limit, alone: true}
		}, "was told"},
		"too many calls": {calm(Leased, Rolling), func(n *node) {
			n.limit = &leased{Ledger: lease.New(lease.Config{Lease: n.w.store.lease, Extras: 1000})}
			n.w.setup.Extras, n.w.setup.Sync = 1, 400*time.Millisecond
		}, "calls in"},
		"a longer blind spot": {calm(Delayed, Fixed), func(n *node) {
			for _, n := range n.w.nodes {
				n.limit = delayed{batch.New(batch.Config{Plan: n.w.store.core, Interval: 900_000, Instance: int64(n.id) + 1})}
			}
			n.w.setup.Sync = 10 * time.Millisecond
		}, "are possible"},
		"a rolling store that forgets": {calm(Leased, Rolling), func(n *node) {
			n.w.at(1900*time.Millisecond, func() { n.w.store.record = record{} })
		}, "limit 100"},
	} {
		if got := broken(t, tt.setup, tt.fault); !strings.Contains(got, tt.want) {
			t.Errorf("%s is not noticed: %q", name, got)
		}
	}
}

func TestScenarioMistakes(t *testing.T) {
	const good = "title: x\nlimit: 5\nper: 1s\nwindow: fixed\nmode: lease\nload: {kind: constant, rate: 1}\n"
	if sc, f := Parse("x", []byte(good)); sc == nil || len(f) > 0 {
		t.Fatalf("%v", f)
	}
	for text, want := range map[string]string{
		good + "limits: 3\n":                                                   "did you mean limit",
		good + "sync: 0.2\n":                                                   "has no unit",
		good + "crashes: [{instance: 2, at: 1s}]\n":                            "instance 2 does not exist",
		good + "runs: [{mode: exact}]\n":                                       "name is missing",
		good + "runs: []\n":                                                    "no run",
		good + "runs: [{name: a, sync: 2s}]\n":                                 "between syncs",
		good + "runs: [{name: a, mode: delayed, window: rolling}]\n":           "cannot be synchronised delayed",
		good + "store: {failovers: [{at: 1s, loses: 2s}]}\n":                   "cannot lose",
		good + "clocks: [{instance: 0, ppm: 500, steps: [{at: 1s, by: x}]}]\n": "is above 400",
		good + "exact_instances: 3\n":                                          "exact_instances",
		good + "overbook: 101\nfor: 25h\n":                                     "is above",
		"title: x\n":                                                           "limit is missing",
		"- a\n":                                                                "a map",
	} {
		sc, findings := Parse("x", []byte(text))
		var all []string
		for _, f := range findings {
			all = append(all, f.String()+" "+f.Hint)
		}
		if got := strings.Join(all, "\n"); sc != nil || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	// A mistake that all runs share is told once.
	mistyped := strings.Replace(good, "lease", "leas", 1) + "instance: 2\nruns: [{name: a}, {name: b}]\n"
	if _, f := Parse("x", []byte(mistyped)); len(f) != 2 {
		t.Errorf("%q: %v", mistyped, f)
	}
	s := calm(Leased, Fixed)
	s.Load.Rate, s.For = 1e6, time.Minute
	if _, err := s.Run(1); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("sixty million requests: %v", err)
	}
}
