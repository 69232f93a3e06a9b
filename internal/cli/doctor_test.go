package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/escapement-io/escapement/internal/doctor"
)

// root is a fake machine with one file.
func root(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDoctorJSON(t *testing.T) {
	conf := write(t, "gateway.yaml", `limits: {login: {count: 100, per: 1s, key: [remote_addr]}}
routes: [{id: all, uri: /*, limits: [login], upstream: {type: roundrobin, nodes: {"127.0.0.1:8081": 1}}}]
`)
	stdout, stderr, exit := command(t, "doctor", "--json", "--watch", "0", "-c", conf,
		"--root", root(t, "etc/chrony/chrony.conf", "pool a iburst\nmakestep 0.1 -1\n"))
	if exit != ExitFinding || stderr != "" {
		t.Errorf("exit %d, %s", exit, stderr)
	}
	var r struct {
		Checks []map[string]string
		Limits []struct {
			Name string
			Need float64 `json:"need_ms"`
		}
	}
	d := json.NewDecoder(strings.NewReader(stdout))
	if err := d.Decode(&r); err != nil || d.More() {
		t.Fatalf("%v in\n%s", err, stdout)
	}
	if len(r.Checks) != len(doctor.Names()) || len(r.Limits) != 1 || r.Limits[0].Name != "login" || r.Limits[0].Need != 1 {
		t.Errorf("%s", stdout)
	}
	for _, c := range r.Checks {
		if len(c) != 4 {
			t.Errorf("%v", c)
		}
		if c["name"] == "daemon-may-step" && (c["status"] != "fail" || !strings.Contains(c["detail"], "at any time") || !strings.Contains(c["fix"], "makestep 1 3")) {
			t.Errorf("%v", c)
		}
	}
}

func TestDoctorText(t *testing.T) {
	stdout, _, exit := command(t, "doctor", "--watch", "0", "--root", root(t, "etc/chrony.conf", "makestep 0.1 -1\nserver \x1b[31mred\n"))
	if exit != ExitFinding || strings.Contains(stdout, "\x1b") {
		t.Errorf("exit %d\n%s", exit, stdout)
	}
	for _, s := range []string{"fail     daemon-may-step\n         /etc/chrony.conf:1: makestep 0.1 -1 lets chronyd step the clock at any time", "\n           > makestep 1 3", " unknown, "} {
		if !strings.Contains(stdout, s) {
			t.Errorf("no %q in\n%s", s, stdout)
		}
	}
	for _, line := range strings.Split(stdout, "\n") {
		if len(line) > 110 && !strings.HasPrefix(line, "           >") {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
}

func TestDoctorUsage(t *testing.T) {
	for _, tt := range []struct {
		args []string
		exit int
		says string
	}{
		{[]string{"--watch", "-1s"}, ExitUsage, "--watch"},
		{[]string{"--redis", "http://x:s3cret@y"}, ExitUsage, "redis://"},
		{[]string{"--fleet", "10.0.0.1:9090"}, ExitUsage, "http://"},
		{[]string{"-c", write(t, "bad.yaml", "limits: 3\n")}, ExitFinding, "bad.yaml:1"},
	} {
		_, stderr, exit := command(t, append([]string{"doctor", "--watch", "0"}, tt.args...)...)
		if exit != tt.exit || !strings.Contains(stderr, tt.says) || strings.Contains(stderr, "s3cret") {
			t.Errorf("%v: exit %d, %s", tt.args, exit, stderr)
		}
	}
}

// lines is a buffer that two goroutines may use.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestDoctorAsksAGateway runs the demo gateway, its metrics, and the doctor against it.
func TestDoctorAsksAGateway(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var stderr lines
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"gateway", "--demo", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, &Output{Out: io.Discard, Err: &stderr})
	}()
	defer func() {
		cancel()
		if exit := <-ended; exit != ExitFine {
			t.Errorf("the gateway ended with %d\n%s", exit, &stderr)
		}
	}()
	var front, admin string
	for range 500 {
		if m := regexp.MustCompile(`gateway on (\S+)\nadmin on (\S+)\n`).FindStringSubmatch(stderr.String()); m != nil {
			front, admin = m[1], m[2]
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if admin == "" {
		t.Fatalf("the gateway does not listen\n%s", &stderr)
	}
	for range 7 { // five pass
		fetch(t, front+"/hello")
	}
	metrics := fetch(t, admin+"/metrics")
	for _, s := range []string{
		`escapement_limit_decisions_total{basis="exact",limit="demo",verdict="admitted"} 5`,
		`escapement_limit_decisions_total{basis="exact",limit="demo",verdict="refused"} 2`,
		"escapement_store_keys 1\n", "escapement_clock_epoch 0\n", `escapement_clock_followed{reference="system"} `,
	} {
		if !strings.Contains(metrics, s) {
			t.Errorf("no %s in\n%s", s, metrics)
		}
	}
	stdout, problem, _ := command(t, "doctor", "--json", "--watch", "0", "--fleet", admin)
	var r doctor.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || len(r.Fleet) != 1 {
		t.Fatalf("%v: %s%s", err, stdout, problem)
	}
	if i := r.Fleet[0]; i.Problem != "" || i.State == "" || i.OffsetMS == nil || *i.OffsetMS > 100 || *i.OffsetMS < -100 || i.Sources == nil {
		t.Errorf("%+v", i)
	}
	stdout, _, _ = command(t, "doctor", "--watch", "0", "--fleet", admin, "--fleet", "http://127.0.0.1:1")
	if !regexp.MustCompile(`(?m)^instance +offset ms.*\n` + regexp.QuoteMeta(admin) + ` +-?\d+\.\d{3} .*\nhttp://127.0.0.1:1 +- +- +no answer`).MatchString(stdout) {
		t.Errorf("no table in\n%s", stdout)
	}
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestNamesOfServersAreChecked(t *testing.T) {
	for _, name := range []string{"a b", "a\nb", "a\xff", "\x1b[2J", strings.Repeat("a", 301)} {
		for _, args := range [][]string{{"doctor", "--watch", "0"}, {"gateway", "--demo"}} {
			if _, stderr, exit := command(t, append(args, "--ntp", name)...); exit != ExitUsage || !strings.Contains(stderr, "--ntp") {
				t.Errorf("%q --ntp %q: exit %d\n%s", args, name, exit, stderr)
			}
		}
	}
}
