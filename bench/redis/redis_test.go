package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// One short round: every way is measured under both numbers of callers, nothing fails,
// and each goal has its figure.
func TestRound(t *testing.T) {
	var b bytes.Buffer
	if err := run(1, 20*time.Millisecond, "", &report{json: true, out: &b}); err != nil {
		t.Fatal(err)
	}
	seen, judged := 0, 0
	for l := range strings.Lines(b.String()) {
		var x map[string]any
		if err := json.Unmarshal([]byte(l), &x); err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		if _, ok := x["goal"]; ok {
			judged++
			if x["want"] == 0.0 && x["got"] != 0.0 {
				t.Errorf("%s", l)
			}
			continue
		}
		seen++
		for _, f := range []string{"decisions_per_s", "redis_us", "p50_us"} {
			if v, _ := x[f].(float64); v <= 0 {
				t.Errorf("%s: no %s", l, f)
			}
		}
		if x["errors"] != 0.0 {
			t.Errorf("%s", l)
		}
	}
	if seen != 2*len(ways) || judged != 8+len(rides) {
		t.Errorf("%d rows and %d goals, want %d and %d", seen, judged, 2*len(ways), 8+len(rides))
	}
}

func TestGoal(t *testing.T) {
	for _, c := range []struct {
		want    float64
		atLeast bool
		all     []float64
		met     bool
	}{
		{1.5, true, []float64{1, 1.6, 2}, true},
		{1.5, true, []float64{1, 1.4, 2}, false},
		{0.65, false, []float64{0.5, 0.6, 0.9}, true},
		{0.65, false, []float64{0.5, 0.7, 0.9}, false},
		{0, false, []float64{1}, false},
	} {
		if g := newGoal("", c.want, c.atLeast, c.all); g.Met != c.met {
			t.Errorf("%+v: met is %v", c, g.Met)
		}
	}
}

func TestInfoField(t *testing.T) {
	const info = "# Commandstats\r\ncmdstat_evalsha:calls=3,usec=41,usec_per_call=13.67\r\nused_cpu_user:0.25\r\n"
	for _, c := range []struct {
		line, pair string
		want       float64
	}{{"cmdstat_evalsha", "usec", 41}, {"cmdstat_evalsha", "calls", 3}, {"used_cpu_user", "", 0.25}} {
		if v, err := infoField(info, c.line, c.pair); err != nil || v != c.want {
			t.Errorf("%s %s: %v %v", c.line, c.pair, v, err)
		}
	}
	for _, line := range []string{"used_cpu_sys", "used_cpu"} {
		if v, err := infoField(info, line, ""); err == nil {
			t.Errorf("%s: %v", line, v)
		}
	}
}

// A script that is not the one in use is not taken for it.
func TestTrusting(t *testing.T) {
	if got, err := trusting("return 1"); err == nil {
		t.Errorf("%q", got)
	}
}
