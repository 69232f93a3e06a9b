package cli

import (
	"encoding/json"
	goflag "flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updatePlans = goflag.Bool("update-plans", false, "write what the plans print into docs/sync-and-leases.md")

var planBlock = regexp.MustCompile("(?s)```console\n\\$ escapement (plan [^\n]*)\n(.*?)```")

// TestPlanDocument runs the plans that the document shows and compares what it says they
// print.
func TestPlanDocument(t *testing.T) {
	t.Chdir("../..")
	data, err := os.ReadFile(simulated)
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	replaced := planBlock.ReplaceAllStringFunc(string(data), func(block string) string {
		m := planBlock.FindStringSubmatch(block)
		stdout, stderr, exit := command(t, strings.Fields(m[1])...)
		if exit != ExitFine || stderr != "" {
			t.Errorf("%s: exit %d, %s", m[1], exit, stderr)
		}
		if m[2] != stdout && !*updatePlans {
			t.Errorf("%s: -document +printed\n%s", m[1], cmp.Diff(m[2], stdout))
		}
		shown++
		return "```console\n$ escapement " + m[1] + "\n" + stdout + "```"
	})
	if shown < 2 {
		t.Errorf("%d plans in the document", shown)
	}
	if *updatePlans {
		if err := os.WriteFile(simulated, []byte(replaced), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPlanJSON(t *testing.T) {
	stdout, stderr, exit := command(t, strings.Fields("plan --instances 2 --demand 800 --limit 500 --per 1s --sync 200ms --mode delayed --keys 64 --json")...)
	var doc struct {
		Mode, Window, Sync string
		Steady             struct {
			PerWindow float64 `json:"per_window"`
			Error     float64 `json:"error_pct"`
		}
		Worst struct {
			PerWindow float64 `json:"per_window"`
		}
		Trips struct{ About, Most float64 } `json:"round_trips_per_s_per_instance"`
		Store struct {
			Calls float64 `json:"calls_per_s"`
			Basis string
		}
		Advice []string
	}
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil || exit != ExitFine || stderr != "" {
		t.Fatalf("exit %d, %v\n%s%s", exit, err, stdout, stderr)
	}
	if doc.Mode != "delayed" || doc.Window != "fixed" || doc.Sync != "200ms" || doc.Steady.PerWindow != 580 || doc.Steady.Error != 16 || doc.Worst.PerWindow != 1000 ||
		doc.Trips.About < 4.99 || doc.Trips.About > 5 || doc.Store.Calls != 2*doc.Trips.About || doc.Store.Basis == "" || len(doc.Advice) == 0 {
		t.Errorf("%+v", doc)
	}
}

// All flags that are wrong are named at once, and each once.
func TestPlanFlags(t *testing.T) {
	for args, want := range map[string][]string{
		"plan": {"--instances: missing", "--rate: missing", "--limit: missing", "--per: missing"},
		"plan --instances two --rate fast --limit 1e3 --per 10 --sync 0s --window round --mode loan --keys 0": {"--instances: \"two\"", "--rate: \"fast\"",
			"--limit: \"1e3\"", "--per: \"10\"", "--sync: \"0s\"", "--window: \"round\"", "--mode: \"loan\"", "--keys: \"0\""},
		"plan --instances 10001 --rate -1 --limit 0 --per 1s --sync 1s --keys 1000000000":            {"--instances: 10001 instances", "--rate: -1 requests", "--limit: ", "--sync: 1s is not below", "--keys: 1000000000 keys"},
		"plan --instances 2 --rate 9 --limit 5 --per 1s --sync 600ms --window sliding":               {"--sync: 600ms is above half the window"},
		"plan --instances 2 --rate 9 --limit 5 --per 1s --sync 60ms --window rolling --mode delayed": {"--sync: rolling_window cannot be reported later"},
		"plan --instances 2 --rate NaN --limit 5 --per 1s --sync 60ms --mode exact":                  {"--rate: NaN requests", "--sync: with --mode exact"},
		"plan --instances 2 --rate 9 --limit 9007199254740991 --per 1s":                              {"--sync: count: too large to be leased"},
	} {
		stdout, stderr, exit := command(t, strings.Fields(args)...)
		if exit != ExitUsage || stdout != "" || strings.Count(stderr, "escapement: plan: --") != len(want) {
			t.Errorf("%s: exit %d, %s%s", args, exit, stdout, stderr)
		}
		for _, w := range want {
			if !strings.Contains(stderr, "escapement: plan: "+w) {
				t.Errorf("%s: no %q in\n%s", args, w, stderr)
			}
		}
	}
}
