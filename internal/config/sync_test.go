package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/escapement-io/escapement"
)

// synced parses one limit in a store of three instances.
func synced(t *testing.T, limit string) *Limit {
	t.Helper()
	return parsed(t, `
stores: {main: {type: redis, url: "redis://127.0.0.1:6379/0", instances: 3}}
limits: {a: {key: [remote_addr], store: main, `+limit+`}}
routes: [{uri: /*, limits: [a], upstream: {nodes: {"127.0.0.1:8081": 1}}}]
`, nil).Limits[0]
}

func TestSyncOfTheNativeForm(t *testing.T) {
	for text, want := range map[string]struct {
		sync     time.Duration
		mode     escapement.SyncMode
		enforced string
		summary  *SyncSummary
		line     string
	}{
		"algorithm: rolling_window, count: 1000, per: 10s": {0, 0, "", nil, "within 50ms of each request"},
		"algorithm: rolling_window, count: 1000, per: 10s, sync: {interval: 5s}": {5 * time.Second, escapement.SyncLease, "",
			&SyncSummary{"lease", "5s", "0", "1000"}, "at most 1000 in every span of 10s; nothing above it, whatever the number of instances; in the store main (redis 127.0.0.1:6379/0); each instance agrees with it every 5s, lease"},
		"algorithm: sliding_window, count: 1000, per: 10s, sync: {interval: 20ms, mode: lease}": {20 * time.Millisecond, escapement.SyncLease, "rolling_window",
			&SyncSummary{"lease", "20ms", "0", "1000"}, "a: sliding_window enforced as rolling_window, 1000 per 10s"},
		"algorithm: fixed_window, count: 1000, per: 10s, headroom: 20, sync: {interval: 200ms, mode: delayed}": {200 * time.Millisecond, escapement.SyncDelayed, "",
			&SyncSummary{"delayed", "200ms", "2 × r × 200ms", "3 × 800 = 2400"}, "; above it at even demand 2 × r × 200ms in a window, N instances taking r requests a second each; at worst 3 × 800 = 2400 in one"},
		"algorithm: token_bucket, count: 1000, per: 10s, burst: 200, sync: {interval: 1s}": {time.Second, escapement.SyncLease, "",
			&SyncSummary{"lease", "1s", "0", "1200"}, "at most 200 at once, and 200 + 1000 per 10s after; nothing above it, whatever the number of instances"},
		"algorithm: gcra, count: 10, per: 1s, sync: {interval: 500ms}": {500 * time.Millisecond, escapement.SyncLease, "",
			&SyncSummary{"lease", "500ms", "0", "20"}, "nothing above it"},
		"algorithm: fixed_window, count: 9, align: day, sync: {interval: 1h, mode: delayed}": {time.Hour, escapement.SyncDelayed, "",
			&SyncSummary{"delayed", "1h0m0s", "2 × r × 1h0m0s", "3 × 9 = 27"}, "9 per day in UTC"},
	} {
		l := synced(t, text)
		s := l.Summary()
		if l.Sync != want.sync || l.SyncMode != want.mode || s.EnforcedAs != want.enforced || !strings.Contains(s.String(), want.line) {
			t.Errorf("%s: %v %v\n%v", text, l.Sync, l.SyncMode, s)
		}
		if d := cmp.Diff(want.summary, s.Sync); d != "" {
			t.Errorf("%s: -want +got\n%s", text, d)
		}
		shown := fmt.Sprint(l.redacted())
		if has := strings.Contains(shown, fmt.Sprintf("sync:map[interval:%v mode:%v]", l.Sync, l.SyncMode)); has != (l.Sync > 0) {
			t.Errorf("%s is shown as %s", text, shown)
		}
	}
}

// plugged parses one plugin on a route.
func plugged(t *testing.T, plugin string) []*Limit {
	t.Helper()
	return parsed(t, "routes: [{id: r, uri: /*, plugins: {limit-count-advanced: {rejected_code: 429, "+plugin+"}}, upstream: {nodes: {\"127.0.0.1:8081\": 1}}}]\n", nil).Limits
}

func TestSyncOfPlugins(t *testing.T) {
	const server = ", policy: redis, redis_host: hh"
	for text, want := range map[string]escapement.Limit{
		"count: 5, time_window: 10, sync_interval: 0.2" + server:                                                                              {Algorithm: escapement.FixedWindow, Align: escapement.FirstUse, Sync: 200 * time.Millisecond, SyncMode: escapement.SyncDelayed},
		"count: 5, time_window: 10, window_type: sliding, sync_interval: 9.9" + server:                                                        {Algorithm: escapement.SlidingWindow, Sync: 9900 * time.Millisecond, SyncMode: escapement.SyncDelayed},
		"count: 5, time_window: 10, sync_interval: 0.2, sync_mode: lease" + server:                                                            {Algorithm: escapement.FixedWindow, Align: escapement.Epoch, Sync: 200 * time.Millisecond},
		"count: 5, time_window: 10, window_type: sliding, sync_interval: 5, sync_mode: lease" + server:                                        {Algorithm: escapement.SlidingWindow, Sync: 5 * time.Second},
		"count: 5, time_window: 10, sync_interval: -1, sync_mode: lease" + server:                                                             {Algorithm: escapement.FixedWindow, Align: escapement.FirstUse},
		"count: 5, time_window: 10, sync_interval: 0.2":                                                                                       {Algorithm: escapement.FixedWindow, Align: escapement.FirstUse},
		"count: $http_x, time_window: 10, sync_interval: 0.2, sync_mode: lease" + server:                                                      {Algorithm: escapement.FixedWindow, Align: escapement.FirstUse},
		"count: 5, time_window: $http_x, sync_interval: 0.2" + server:                                                                         {Algorithm: escapement.FixedWindow, Align: escapement.FirstUse, Sync: 200 * time.Millisecond, SyncMode: escapement.SyncDelayed},
		"count: 5, time_window: 10, sync_interval: 0.2, " + `policy: redis-cluster, redis_cluster_name: c, redis_cluster_nodes: ["a:1"]`:      {Algorithm: escapement.FixedWindow, Align: escapement.FirstUse, Sync: 200 * time.Millisecond, SyncMode: escapement.SyncDelayed},
		"count: 5, time_window: 10, sync_interval: 0.2, policy: redis-sentinel, redis_master_name: m, redis_sentinels: [{host: ss, port: 1}]": {Algorithm: escapement.FixedWindow, Align: escapement.FirstUse, Sync: 200 * time.Millisecond, SyncMode: escapement.SyncDelayed},
	} {
		l := plugged(t, text)[0]
		if l.Algorithm != want.Algorithm || l.Align != want.Align || l.Sync != want.Sync || l.SyncMode != want.SyncMode {
			t.Errorf("%s: %+v", text, l.Limit)
		}
	}
}

// A window that requests ask for decides whether they are agreed on or asked about.
func TestForWindow(t *testing.T) {
	const plugin = "count: 5, time_window: '${http_x ?? 1}', sync_interval: 2, policy: redis, redis_host: hh, window_type: "
	for text, least := range map[string]time.Duration{
		"fixed":                     3 * time.Second,
		"sliding":                   3 * time.Second,
		"fixed, sync_mode: lease":   3 * time.Second,
		"sliding, sync_mode: lease": 4 * time.Second,
	} {
		l := plugged(t, plugin+text)[0]
		for per := time.Second; per < 10*time.Second; per += time.Second {
			w := l.ForWindow(per)
			_, err := w.Compile()
			if exact := w.Sync == 0; err != nil || exact != (per < least) || w.Rate.Per != per {
				t.Errorf("%s: a window of %v: exact %v, %v", text, per, exact, err)
			}
		}
	}
}

// TestDocumentedPlugin reads the example of limit-count-advanced that its documentation
// of delayed synchronisation ends with.
func TestDocumentedPlugin(t *testing.T) {
	c, findings := Parse("plugin.json", []byte(`{
  "limit-count-advanced": {
    "count": 1000, "time_window": 10, "window_type": "sliding", "key": "consumer_name", "key_type": "var",
    "policy": "redis-cluster", "redis_cluster_name": "my-cluster", "redis_cluster_nodes": ["redis-node-1:6379", "redis-node-2:6379"],
    "sync_interval": 0.2, "rejected_code": 429
  }
}`), Options{})
	if c == nil || len(c.Limits) != 1 {
		t.Fatal(lines(findings))
	}
	l := c.Limits[0]
	if s := l.Summary(); l.Basis() != escapement.Delayed || l.Store.Mode != "cluster" || s.Sync.Above != "(N−1) × r × 200ms" || s.Sync.Worst != "N × 1000" {
		t.Errorf("%v", s)
	}
}

func TestFenceOfLeases(t *testing.T) {
	l := synced(t, "algorithm: fixed_window, count: 1000, per: 10s, sync: {interval: 1s, fence: true}")
	if !l.Fence || !strings.Contains(fmt.Sprint(l.redacted()), "sync:map[fence:true interval:1s mode:lease]") {
		t.Errorf("%+v is shown as %v", l.Limit, l.redacted())
	}
	if l = synced(t, "algorithm: fixed_window, count: 1000, per: 10s, sync: {interval: 1s}"); l.Fence {
		t.Error("a fence that nobody asked for")
	}
	_, findings := Parse("c.yaml", []byte(`
stores: {main: {type: redis, url: "redis://127.0.0.1:6379/0"}}
limits: {a: {algorithm: fixed_window, count: 9, per: 1s, key: [remote_addr], store: main, sync: {interval: 100ms, mode: delayed, fence: true}}}
routes: [{uri: /*, limits: [a], upstream: {nodes: {"127.0.0.1:8081": 1}}}]
`), Options{})
	if text := fmt.Sprint(findings); !strings.Contains(text, "could forget") {
		t.Errorf("a fence without a lease: %s", text)
	}
}
