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

// Where every request asks, two gateways admit the limit in each window of the store, and
// the drill counts what they say and what arrived alike.
func TestDrillOfTwoGateways(t *testing.T) {
	patiently(t, func() (problem string) {
		r := drillGateways(t, "--mode", "exact", "--rate", "300", "--limit", "150", "--for", "3s")
		// What was promised, whatever the machine does.
		if r.Over != 0 || len(r.Second) != 3 || r.Keeping <= 0 {
			t.Errorf("%+v", r)
		}
		// Calls of several requests are sent together when the machine is slow.
		if len(r.Windows) != 3 || len(r.Problems) > 0 || r.Error != 0 || r.Calls < 75 || r.Calls > 165 {
			return "the load fell behind, a window was not used up, or there was another number of calls"
		}
		return ""
	})
}
