package endtoend

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement/internal/redistest"
)

// server is a Prometheus of its own that scrapes one gateway every second.
type server struct{ url string }

const rulesFile = "../../monitoring/prometheus/escapement.rules.yaml"

// quick is how many times shorter than in the file every duration of the rules is here, so
// that windows of a minute pass in seconds. The expressions are those of the file.
const quick = 10

var durations = regexp.MustCompile(`(\[|for: )(\d+)([smhd])\b`)

func quickRules(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	unit := map[string]int{"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
	n := 0
	out := durations.ReplaceAllStringFunc(string(text), func(s string) string {
		m := durations.FindStringSubmatch(s)
		length, _ := strconv.Atoi(m[2])
		n++
		return fmt.Sprintf("%s%dms", m[1], length*unit[m[3]]/quick)
	})
	if n < 10 {
		t.Fatalf("%d durations in the rules, want many more", n)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// startPrometheus runs Prometheus on loopback until the test ends.
func startPrometheus(t *testing.T, target string) *server {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yaml")
	configuration := fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: escapement
    static_configs: [{targets: [%q]}]
`, quickRules(t), target)
	if err := os.WriteFile(file, []byte(configuration), 0o644); err != nil {
		t.Fatal(err)
	}
	listen := fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))
	cmd := exec.CommandContext(context.Background(), "prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+listen, "--log.level=warn")
	said, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v (make need installs it)", err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		err := cmd.Wait()
		said.Close()
		if text, _ := os.ReadFile(said.Name()); err != nil || t.Failed() {
			t.Logf("prometheus ended: %v\n%s", err, text)
		}
	})
	return &server{url: "http://" + listen}
}

// result is what Prometheus answers, an alarm or a series.
type result struct {
	Metric, Labels, Annotations map[string]string
	State                       string
}

// get asks the API. An error of the query is the API's words.
func (s *server) get(ctx context.Context, path string, args url.Values) ([]result, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/"+path+"?"+args.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Status != "success" {
		return nil, fmt.Errorf("%s: %w %s", resp.Status, err, answer.Error)
	}
	var data struct{ Result, Alerts []result }
	if err := json.Unmarshal(answer.Data, &data); err != nil {
		var values []string // of a label
		if json.Unmarshal(answer.Data, &values) != nil {
			return nil, err
		}
		return make([]result, len(values)), nil
	}
	return append(data.Result, data.Alerts...), nil
}

// firing are the annotations of an alarm that fires; nil if it does not.
func (s *server) firing(ctx context.Context, name string) map[string]string {
	alerts, err := s.get(ctx, "alerts", nil)
	if err != nil {
		return nil
	}
	for _, a := range alerts {
		if a.Labels["alertname"] == name && a.State == "firing" {
			return a.Annotations
		}
	}
	return nil
}

// has reports whether a query has an answer.
func (s *server) has(ctx context.Context, query string) bool {
	got, err := s.get(ctx, "query", url.Values{"query": {query}})
	return err == nil && len(got) > 0
}

// until waits for something to become true.
func until(ctx context.Context, t *testing.T, what string, is func() bool) {
	t.Helper()
	for !is() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: it did not come to that", what)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

var adminLine = regexp.MustCompile(`(?m)^admin on (http\S+)$`)

// admin is the address of the gateway's admin listener.
func (g *gateway) admin(ctx context.Context, t *testing.T) string {
	t.Helper()
	var m []string
	until(ctx, t, "the gateway says where its admin listener is", func() bool {
		m = adminLine.FindStringSubmatch(g.log())
		return m != nil
	})
	return m[1]
}

// A real Prometheus scrapes a real gateway under load. When the gateway's wall clock is
// stepped, the alarm for it fires, and clears; the alarm for refusals tells of the step;
// and every query of the dashboard is answered. When the store goes away and comes back, so
// do its alarms.
func TestPrometheusTellsOfAStep(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	clk := newSkewed(ctx, t)
	redis := redistest.Start(t, redistest.Options{})
	g := start(t, newUpstream(t), fmt.Sprintf(`
listen: 127.0.0.1:0
stores: {main: {type: redis, url: "redis://%s/0", instances: 1}}
limits:
  login: {algorithm: token_bucket, count: 20, per: 1s, key: []}
  shared: {algorithm: token_bucket, count: 100, per: 1s, key: [], store: main}
  leased: {algorithm: rolling_window, count: 1000, per: 10s, key: [], store: main, sync: {interval: 1s}}
  delayed: {algorithm: fixed_window, count: 1000, per: 10s, key: [], store: main, sync: {interval: 500ms, mode: delayed}}
routes: [{uri: "/*", limits: [login, shared, leased, delayed], upstream: {nodes: {"UPSTREAM": 1}}}]
`, redis.Addr()), clk)
	prometheus := startPrometheus(t, strings.TrimPrefix(g.admin(ctx, t), "http://"))
	loading, done := context.WithCancel(ctx)
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		for loading.Err() == nil {
			offer(t, g.url, 40, time.Second, "alice")
		}
	}()
	t.Cleanup(func() { done(); <-loaded })

	until(ctx, t, "rules are evaluated on scrapes", func() bool {
		return prometheus.has(ctx, "count_over_time(instance:escapement_clock_steps:1m[1m]) >= 4") &&
			prometheus.has(ctx, "sum(instance_limit:escapement_limit_refused:rate1m) > 0")
	})
	until(ctx, t, "the refusals are an alarm", func() bool { return prometheus.firing(ctx, "EscapementRefusedShare") != nil })
	if a := prometheus.firing(ctx, "EscapementClockStepped"); a != nil {
		t.Errorf("no clock was stepped, and there is an alarm: %v", a)
	}

	if err := clk.step(ctx, -320*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	var stepped, refused map[string]string
	until(ctx, t, "the step is an alarm", func() bool {
		stepped = prometheus.firing(ctx, "EscapementClockStepped")
		return stepped != nil
	})
	until(ctx, t, "the alarm for refusals tells of the step", func() bool {
		refused = prometheus.firing(ctx, "EscapementRefusedShare")
		return strings.Contains(refused["description"], "last step -3") && strings.Contains(refused["description"], "10 minutes: 1.")
	})
	t.Logf("%s\n%s\n%s", stepped["summary"], stepped["description"], refused["description"])
	if !regexp.MustCompile(`^Steps within a minute: 1, the last by -3(19|20)(\.\d+)?ms\. `).MatchString(stepped["description"]) {
		t.Errorf("it says %q of a step of -320 ms", stepped["description"])
	}
	tryDashboard(ctx, t, prometheus)
	until(ctx, t, "the alarm for the step clears", func() bool { return prometheus.firing(ctx, "EscapementClockStepped") == nil })
	storeGoesAway(ctx, t, prometheus, redis)
	fired, err := prometheus.get(ctx, "query", url.Values{"query": {`count by (alertname) (last_over_time(ALERTS{alertstate="firing"}[5m]))`}})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range fired {
		name := a.Metric["alertname"]
		t.Logf("%s fired", name)
		if slices.Contains(withoutReason, name) {
			t.Errorf("%s fired, and there was no reason", name)
		}
	}
}

// withoutReason are the alarms for which nothing is a reason in that test. Others may come
// of a store that is silent, of the load, and of a machine that nobody synchronises.
var withoutReason = []string{"EscapementFleetClockStepped", "EscapementOvershoot", "EscapementRecordsAtCap", "EscapementReloadRefused",
	"EscapementStoreClockStepped", "EscapementClockSuspended"}

// storeGoesAway halts the store for as long as it takes to be an alarm.
func storeGoesAway(ctx context.Context, t *testing.T, prometheus *server, redis *redistest.Server) {
	t.Helper()
	away := []string{"EscapementStoreAway", "EscapementDecidedWithoutStore"}
	for _, name := range away {
		if a := prometheus.firing(ctx, name); a != nil {
			t.Errorf("the store is there, and there is %s: %v", name, a)
		}
	}
	redis.Stop()
	for _, name := range away {
		until(ctx, t, "a silent store is "+name, func() bool { return prometheus.firing(ctx, name) != nil })
	}
	redis.Continue()
	for _, name := range away {
		until(ctx, t, "after the store is back there is no "+name, func() bool { return prometheus.firing(ctx, name) == nil })
	}
}
