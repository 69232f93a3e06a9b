package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const rulesFile = "prometheus/escapement.rules.yaml"

// rule is an alarm, or a recording rule.
type rule struct {
	Alert       string
	Record      string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// files are those that match, of which there must be some.
func files(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no files, %v", pattern, err)
	}
	return names
}

func parse[T any](t *testing.T, file string) T {
	t.Helper()
	var v T
	if err := yaml.Unmarshal([]byte(read(t, file)), &v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return v
}

// allRules are the rules of the file, alarms and recording rules.
func allRules(t *testing.T) (alarms, records []rule) {
	t.Helper()
	f := parse[struct {
		Groups []struct{ Rules []rule }
	}](t, rulesFile)
	for _, g := range f.Groups {
		for _, r := range g.Rules {
			if r.Alert != "" {
				alarms = append(alarms, r)
			} else {
				records = append(records, r)
			}
		}
	}
	if len(alarms) == 0 {
		t.Fatalf("%s has no alarms", rulesFile)
	}
	return alarms, records
}

// promtool fails the test unless the tool is content.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v (make need installs it)\n%s", strings.Join(args, " "), err, out)
	}
}

func TestRulesAreValid(t *testing.T) {
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", rulesFile)
}

// TestAlarms runs what stands in the test files: series in, alarms out.
func TestAlarms(t *testing.T) {
	promtool(t, append([]string{"test", "rules"}, files(t, "prometheus/*.test.yaml")...)...)
}

// TestEveryAlarmIsTried finds for each alarm a test in which it fires and one in which it
// must not.
func TestEveryAlarmIsTried(t *testing.T) {
	type tests struct {
		Tests []struct {
			Alerts []struct {
				Alertname string
				Expected  []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	fires, silent := map[string]int{}, map[string]int{}
	for _, file := range files(t, "prometheus/*.test.yaml") {
		for _, test := range parse[tests](t, file).Tests {
			for _, a := range test.Alerts {
				if len(a.Expected) > 0 {
					fires[a.Alertname]++
				} else {
					silent[a.Alertname]++
				}
			}
		}
	}
	alarms, _ := allRules(t)
	for _, a := range alarms {
		if fires[a.Alert] == 0 || silent[a.Alert] == 0 {
			t.Errorf("%s fires in %d tests and does not in %d; want at least one of each", a.Alert, fires[a.Alert], silent[a.Alert])
		}
		delete(fires, a.Alert)
		delete(silent, a.Alert)
	}
	if len(fires)+len(silent) > 0 {
		t.Errorf("tests ask for alarms that do not exist: %v %v", fires, silent)
	}
}

const (
	pages    = "../docs/runbooks/"
	pagesURL = "https://github.com/escapement-io/escapement/blob/main/docs/runbooks/"
)

// TestEveryAlarmIsExplained holds each alarm to its labels, its texts, its page among the
// runbooks and its row in docs/operating.md, and the pages to the alarms.
func TestEveryAlarmIsExplained(t *testing.T) {
	alarms, _ := allRules(t)
	operating := read(t, "../docs/operating.md")
	orphans := map[string]bool{}
	for _, page := range files(t, pages+"*.md") {
		orphans[page] = true
	}
	for _, a := range alarms {
		if s := a.Labels["severity"]; s != "P2" && s != "P3" {
			t.Errorf("%s has the severity %q, want P2 or P3", a.Alert, s)
		}
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s has no summary or no description", a.Alert)
		}
		file, ok := strings.CutPrefix(a.Annotations["runbook_url"], pagesURL)
		if !ok || !orphans[pages+file] {
			t.Errorf("the page of %s is %s, which is not in docs/runbooks, or another alarm's", a.Alert, a.Annotations["runbook_url"])
			continue
		}
		delete(orphans, pages+file)
		page := read(t, pages+file)
		for _, part := range []string{"# " + a.Alert + "\n", "**" + a.Labels["severity"] + ".**", "\n## Look first\n", "\n## Do\n"} {
			if !strings.Contains(page, part) {
				t.Errorf("docs/runbooks/%s has no %q", file, part)
			}
		}
		row := "| [" + a.Alert + "](runbooks/" + file + ") | " + a.Labels["severity"] + " |"
		if !strings.Contains(operating, row) {
			t.Errorf("docs/operating.md has no row that begins with %s", row)
		}
	}
	if len(orphans) > 0 {
		t.Errorf("pages without an alarm: %v", orphans)
	}
}

var (
	named     = regexp.MustCompile(`[a-z_:]*escapement_[a-z0-9_:]+`)
	reference = regexp.MustCompile("(?m)^\\| `(escapement_\\w+)` \\| (\\w+) \\|")
)

// known are the metrics of docs/reference/metrics.md and the recording rules.
func known(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, m := range reference.FindAllStringSubmatch(read(t, "../docs/reference/metrics.md"), -1) {
		names[m[1]] = true
		if m[2] == "histogram" {
			names[m[1]+"_bucket"], names[m[1]+"_sum"], names[m[1]+"_count"] = true, true, true
		}
	}
	_, records := allRules(t)
	for _, r := range records {
		names[r.Record] = true
	}
	return names
}

// TestEveryMetricExists holds rules, their tests, the dashboard and the pages to the
// metrics of docs/reference/metrics.md and the recording rules.
func TestEveryMetricExists(t *testing.T) {
	known := known(t)
	asking := slices.Concat([]string{rulesFile, dashboardFile, "../docs/operating.md"},
		files(t, "prometheus/*.test.yaml"), files(t, pages+"*.md"))
	for _, file := range asking {
		for _, name := range named.FindAllString(read(t, file), -1) {
			if !known[name] {
				t.Errorf("%s asks for %s, which docs/reference/metrics.md does not have", file, name)
			}
		}
	}
}

var (
	ofMetrics = regexp.MustCompile(`(?m)^curl -s http://127\.0\.0\.1:9090/metrics \| grep (.*)$`)
	pattern   = regexp.MustCompile(`-e ([a-z_]+)|^([a-z_]+)$`)
)

// TestEveryPatternFinds holds what the pages look for in /metrics to the names there, so
// that no command of a page is silent for good.
func TestEveryPatternFinds(t *testing.T) {
	var names []string
	for name := range known(t) {
		names = append(names, name)
	}
	all := strings.Join(names, "\n")
	patterns := 0
	for _, file := range append(files(t, pages+"*.md"), "../docs/operating.md") {
		for _, line := range ofMetrics.FindAllStringSubmatch(read(t, file), -1) {
			command, _, _ := strings.Cut(line[1], "   #")
			for _, m := range pattern.FindAllStringSubmatch(strings.TrimSpace(command), -1) {
				p := m[1] + m[2]
				patterns++
				if !strings.Contains(all, p) && !strings.HasPrefix(p, "go_") && !strings.HasPrefix(p, "process_") {
					t.Errorf("%s looks for %s, which is in no name of a metric", file, p)
				}
			}
		}
	}
	if patterns < 50 {
		t.Errorf("%d patterns found, want more", patterns)
	}
}

// TestConfigurationOfPrometheus gives promtool the file that docs/operating.md shows.
func TestConfigurationOfPrometheus(t *testing.T) {
	_, rest, _ := strings.Cut(read(t, "../docs/operating.md"), "```yaml\n")
	block, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/operating.md has no block of YAML")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"prometheus.yml": block, "escapement.rules.yaml": read(t, rulesFile)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	promtool(t, "check", "config", filepath.Join(dir, "prometheus.yml"))
}
