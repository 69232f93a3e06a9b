package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// check runs the command and gives its two outputs and the exit code.
func check(t *testing.T, c *CheckCmd) (stdout, stderr string, exit int) {
	t.Helper()
	var o, e bytes.Buffer
	err := c.Run(&Output{Out: &o, Err: &e})
	if err != nil {
		e.WriteString(err.Error())
	}
	return o.String(), e.String(), code(err)
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const faulty = `limits:
  per-client:
    count: 0
    per: 1s
    key: [remote_addr]
routes:
  - {id: a-route-with-a-long-name, uri: /api/*, limits: [per-client], upstream: {type: roundrobin, nodes: {"127.0.0.1:8081": 1}}, limit: [x]}
`

func TestCheckPrintsFindings(t *testing.T) {
	path := write(t, "gateway.yaml", faulty)
	stdout, stderr, exit := check(t, &CheckCmd{Files: []string{path}})
	want := `gateway.yaml:3:12: error: limits.per-client.count: 0 is below 1
  use a whole number from 1 to 2^53-1
      3 |     count: 0
        |            ^
gateway.yaml:7:131: error: routes[0].limit: unknown key "limit"
  did you mean limits?
      7 | api/*, limits: [per-client], upstream: {type: roundrobin, nodes: {"127.0.0.1:8081": 1}}, limit: [x]}
        |                                                                                          ^
gateway.yaml: refused: 2 mistakes, 0 remarks
`
	got := strings.ReplaceAll(stdout, path, "gateway.yaml")
	if d := cmp.Diff(want, got); d != "" || exit != ExitFinding || stderr != "" {
		t.Errorf("exit %d, standard error %q, -want +got\n%s", exit, stderr, d)
	}
}

func TestCheckSummary(t *testing.T) {
	stdout, _, exit := check(t, &CheckCmd{Files: []string{"../../examples/native.yaml"}})
	for _, want := range []string{
		"per-client: rolling_window, 1000 per 10s, by [consumer_name]; at most 1000 in every span of 10s; in the memory of this process",
		"smooth: token_bucket, 40 per 1s, capacity 80, by [remote_addr]; at most 80 at once, and 80 + 40 per 1s after; ",
		"; shadow: refuses nobody\n",
		"native.yaml: fine: 3 limits, 2 routes, 0 remarks\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if exit != ExitFine {
		t.Errorf("exit %d", exit)
	}
}

// TestCheckSync: how instances agree on a limit, and what that costs, in words and numbers.
func TestCheckSync(t *testing.T) {
	path := write(t, "sync.yaml", `stores: {main: {type: redis, url: "redis://127.0.0.1:6379/0", instances: 3}}
limits:
  lent: {algorithm: sliding_window, count: 1000, per: 10s, key: [remote_addr], store: main, sync: {interval: 1s}}
routes:
  - {id: a, uri: /a, limits: [lent], upstream: {nodes: {"127.0.0.1:8081": 1}}}
  - id: b
    uri: /b
    plugins: {limit-count-advanced: {count: 500, time_window: 10, window_type: sliding, policy: redis, redis_host: 127.0.0.1, sync_interval: 1, rejected_code: 429}}
    upstream: {nodes: {"127.0.0.1:8081": 1}}
`)
	stdout, _, exit := check(t, &CheckCmd{Files: []string{path}})
	for _, want := range []string{
		"warning: limits.lent.algorithm: under leases a sliding_window is enforced as a rolling_window",
		"lent: sliding_window enforced as rolling_window, 1000 per 10s, by [remote_addr]; at most 1000 in every span of 10s; nothing above it, whatever the number of instances; " +
			"in the store main (redis 127.0.0.1:6379/0); each instance agrees with it every 1s, lease; ",
		"in the worst case N instances pass N × 500 in one window",
		"the interval is 10 % of the window: expect to admit about 5 % less than the limit",
		"; above it at even demand (N−1) × r × 1s in a window, N instances taking r requests a second each; at worst N × 500 in one; ",
		"each instance agrees with it every 1s, delayed; ",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if exit != ExitFine {
		t.Errorf("exit %d", exit)
	}
}

func TestCheckJSON(t *testing.T) {
	bad := write(t, "gateway.yaml", faulty)
	stdout, _, exit := check(t, &CheckCmd{Files: []string{"../../examples/apisix.yaml", bad}, JSON: true})
	var doc struct {
		Files []struct {
			File     string
			OK       bool
			Routes   int
			Findings []struct {
				File, Path, Severity, Problem, Hint string
				Line, Column                        int
			}
			Limits []struct {
				Name, Algorithm, Per, Key, State, Bound string
				OnFailure                               string `json:"on_failure"`
				Count, Capacity                         int64
				Shadow                                  bool
			}
		}
	}
	d := json.NewDecoder(strings.NewReader(stdout))
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil || d.More() {
		t.Fatal(err, stdout)
	}
	if exit != ExitFinding || len(doc.Files) != 2 || !doc.Files[0].OK || doc.Files[1].OK {
		t.Fatalf("exit %d %+v", exit, doc)
	}
	if f := doc.Files[0]; f.Routes != 2 || len(f.Limits) != 3 || f.Limits[0].Count != 1000 || f.Limits[0].Bound == "" || f.Limits[2].Count != 0 {
		t.Errorf("%+v", f)
	}
	if f := doc.Files[1]; len(f.Findings) != 2 || f.Findings[0].Line != 3 || f.Findings[0].Column != 12 || f.Findings[0].Severity != "error" || f.Findings[0].Path != "limits.per-client.count" || len(f.Limits) != 0 {
		t.Errorf("%+v", f)
	}
}

func TestCheckExitCodes(t *testing.T) {
	warns := write(t, "warns.yaml", "limits: {a: {algorithm: fixed_window, count: 1, per: 1s, key: []}}\n")
	unsupported := write(t, "unsupported.yaml", "routes: [{id: a, uri: /, upstream: {nodes: {\"a:1\": 1}}, plugins: {prometheus: {}}}]\n#END\n")
	for _, c := range []struct {
		name string
		cmd  CheckCmd
		exit int
	}{
		{"warnings only", CheckCmd{Files: []string{warns}}, ExitFine},
		{"unsupported", CheckCmd{Files: []string{unsupported}}, ExitFinding},
		{"unsupported and left out", CheckCmd{Files: []string{unsupported}, IgnoreUnsupported: true}, ExitFine},
		{"no file", CheckCmd{}, ExitUsage},
		{"a file that is not there", CheckCmd{Files: []string{warns + ".none"}}, ExitFailed},
		{"a directory", CheckCmd{Files: []string{t.TempDir()}}, ExitFailed},
		{"the schema", CheckCmd{Schema: true}, ExitFine},
	} {
		if _, stderr, exit := check(t, &c.cmd); exit != c.exit || (exit >= ExitUsage) != strings.Contains(stderr, "\n  ") {
			t.Errorf("%s: exit %d, want %d; %s", c.name, exit, c.exit, stderr)
		}
	}
}

// TestCheckShowsNoSecrets breaks lines that hold secrets: the place is shown, the line is
// not.
func TestCheckShowsNoSecrets(t *testing.T) {
	for _, text := range []string{
		"listen: :1\nconsumers: {keys: {a: s3cret, b: s3cret}}\nroutes: []\n",
		"stores:\n  main:\n    type: redis\n    passwrd: s3cret\n",
		"stores:\n  main:\n    type: redis\n    ulr: redis://:s3cret@127.0.0.1\n",
		"routes:\n  - uri: /\n    plugins: {limit-count: {count: 0, time_window: 1, policy: redis, redis_host: 127.0.0.1, redis_password: s3cret}}\n",
		"routes:\n  - uri: /\n    plugins: {limit-count: {count: 1, time_window: 1, policy: redis, redis_host: 127.0.0.1, redis_pasword: s3cret}}\n",
		"limits:\n  a: {count: 1, per: 1s, key: [remote_addr], bypass: [{var: http_x_probe, value: s3cret, vlue: s3cret}]}\n",
	} {
		stdout, _, exit := check(t, &CheckCmd{Files: []string{write(t, "a.yaml", text)}})
		if exit != ExitFinding || strings.Contains(stdout, "s3cret") {
			t.Errorf("exit %d\n%s", exit, stdout)
		}
	}
}

// TestCheckObeysNothing puts what a terminal would obey into a file by way of C1 control
// characters, which are valid UTF-8.
func TestCheckObeysNothing(t *testing.T) {
	stdout, _, _ := check(t, &CheckCmd{Files: []string{write(t, "a.yaml", "listen: \"\u009b31m\"\nroutes: []\n")}})
	if strings.Contains(stdout, "\u009b") {
		t.Errorf("%q", stdout)
	}
}

func TestExcerptOfLongLine(t *testing.T) {
	var o bytes.Buffer
	printExcerpt(&Output{Out: &o}, strings.Repeat("é", 500)+"x"+strings.Repeat("ü", 500), 7, 501)
	rows := strings.Split(o.String(), "\n")
	if len(rows) != 3 || !strings.ContainsRune(rows[1], '^') || []rune(rows[0])[len([]rune(rows[1]))-1] != 'x' {
		t.Errorf("%s", o.String())
	}
}
