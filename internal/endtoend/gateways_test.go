package endtoend

import (
	"encoding/json"
	"os/exec"
	"testing"
)

// drillReport is what the tests read of a drill.
type drillReport struct {
	Windows  []int    `json:"windows"`
	Error    float64  `json:"error_pct"`
	Over     float64  `json:"max_over_pct"`
	OverSpan float64  `json:"max_over_any_span_pct"`
	Calls    float64  `json:"redis_calls_per_s_per_instance"`
	Keeping  float64  `json:"redis_witness_calls_per_s_per_instance"`
	Second   []int    `json:"per_second"`
	Problems []string `json:"problems"`
}

// drillGateways runs the drill. It ends with 1 exactly if there is a problem.
func drillGateways(t *testing.T, args ...string) *drillReport {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"drill", "two-gateways", "--json"}, args...)...)
	out, err := cmd.Output()
	var r drillReport
	if bad := json.Unmarshal(out, &r); bad != nil {
		t.Fatalf("%q: %v, %v", out, bad, err)
	}
	t.Logf("%s", out)
	if code := cmd.ProcessState.ExitCode(); (code == 1) != (len(r.Problems) > 0) || code > 1 {
		t.Errorf("exit %d: %v", code, err)
	}
	return &r
}

// Two gateways in each mode: what was promised is kept whatever the machine does; how much of
// the limit is used, and at how many calls, takes one that is not too busy.
func TestDrillOfTwoGateways(t *testing.T) {
	for _, c := range []struct {
		name        string
		args        []string
		least, most float64 // error_pct
		calls       float64 // at most
		rolling     bool
	}{
		{"exact", []string{"--mode", "exact"}, 0, 0, 165, false},
		{"lease", []string{"--mode", "lease"}, -1, 0, 9, false},
		{"lease, rolling", []string{"--mode", "lease", "--window", "rolling"}, -5, 0, 9, true},
		{"delayed", []string{"--mode", "delayed"}, 5, 35, 9, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			patiently(t, func() (problem string) {
				r := drillGateways(t, append(c.args, "--rate", "300", "--limit", "150", "--for", "3s")...)
				if c.most == 0 && r.Over != 0 || c.rolling && r.OverSpan != 0 || r.Over > 100 || len(r.Second) != 3 || r.Keeping <= 0 {
					t.Errorf("%+v", r)
				}
				if len(r.Windows) == 0 || len(r.Problems) > 0 || r.Error < c.least || r.Error > c.most || r.Calls > c.calls || r.Calls == 0 {
					return "the load fell behind, a window was not used as it should be, or there were too many calls"
				}
				return ""
			})
		})
	}
}
