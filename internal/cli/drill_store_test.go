package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestStoreDrillUsage(t *testing.T) {
	for args, want := range map[string]string{
		"store-step":                                "--step",
		"store-step --flap x":                       "500ms*18",
		"store-step --step 48h":                     "a step of",
		"store-step --step 1s --rate 30000":         "30000 decisions",
		"store-step --step 1s --for 1ms":            "a run of",
		"store-step --step 1s --instances 100":      "100 instances",
		"store-step --step 1s --attempts 11":        "11 attempts",
		"store-step --step 1s --limit 10":           "use a period",
		"store-step --step 1s --limit 2000000/1ns":  "not a whole number of microseconds",
		"store-step --step 1s --plot x.pdf":         ".pdf",
		"failover":                                  "--skew",
		"failover --skew 48h":                       "a skew of",
		"node-skew":                                 "--skew",
		"node-skew --skew 0s":                       "a skew of",
		"node-skew --skew 1s --rate 1":              "1 requests",
		"node-skew --skew 1s --attempts -1":         "-1 attempts",
		"node-skew --skew 1s --for 1h --rate -5000": "-5000 requests",
	} {
		stdout, stderr, exit := command(t, append([]string{"drill"}, strings.Fields(args)...)...)
		if exit != ExitUsage || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("%q: exit %d\n%s%s\nwant %q", args, exit, stdout, stderr, want)
		}
	}
}

// Without a redis-server nothing on one can run, and what to install is said.
func TestWithoutRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, args := range []string{"drill store-step --step 1s", "drill failover --skew 1s", "replay --store redis ../../testdata/cases.jsonl"} {
		stdout, stderr, exit := command(t, strings.Fields(args)...)
		if exit != ExitFailed || !strings.Contains(stderr, "install the package redis-server") || stdout != "" {
			t.Errorf("%q: exit %d\n%s%s", args, exit, stdout, stderr)
		}
	}
	if _, stderr, exit := command(t, "replay", "--redis", "redis://h", "../../testdata/cases.jsonl"); exit != ExitUsage || !strings.Contains(stderr, "--store redis") {
		t.Errorf("exit %d, %s", exit, stderr)
	}
}

func TestStoreStepAsJSON(t *testing.T) {
	stdout, stderr, exit := command(t, "drill", "store-step", "--step", "+45s", "--for", "3s", "--json")
	var r struct {
		Admitted   *int     `json:"admitted"`
		Right      *float64 `json:"right"`
		Ratio      *float64 `json:"ratio"`
		LongestGap *float64 `json:"longest_gap_ms"`
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || r.Admitted == nil || r.Right == nil || r.Ratio == nil || r.LongestGap == nil {
		t.Fatalf("%v, exit %d\n%s%s", err, exit, stdout, stderr)
	}
	if exit != 0 || *r.Ratio < 0.9 || *r.Ratio > 1.1 {
		t.Errorf("exit %d: %s", exit, stdout)
	}
}
