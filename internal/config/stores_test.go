package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/escapement-io/escapement"
)

func parsed(t *testing.T, text string, env map[string]string) *Config {
	t.Helper()
	c, findings := Parse("a.yaml", []byte(text), Options{
		LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		ReadFile:  func(name string) ([]byte, error) { return []byte("of " + name + "\n"), nil },
	})
	if c == nil {
		t.Fatalf("%v", findings)
	}
	return c
}

func TestStoresOfTheNativeForm(t *testing.T) {
	c := parsed(t, `
stores:
  url: {type: redis, url: "rediss://u:${PW}@h/3", deadline: 20ms, prefix: "p:", expiry_margin: 2h, connections: 4, instances: 3, tls: {ca: ca.pem, server_name: s}}
  cluster: {type: redis, cluster: ["a:1", "b:2"], password: "file:pw"}
  sentinel: {type: redis, sentinel: {master: m, addresses: ["s:1"], username: x, password: y}, database: 2, username: u, password: p}
  idle: {type: redis, url: "redis://idle"}
limits:
  a: {count: 7, per: 1s, key: [], store: url}
  b: {count: 7, per: 1s, key: [], store: cluster, on_failure: allow}
  c: {count: 7, per: 1s, key: [], store: sentinel, on_failure: deny}
  d: {count: 7, per: 1s, key: [], store: url}
  e: {count: 7, per: 1s, key: []}
routes: [{uri: /*, limits: [a, b, c, d, e], upstream: {nodes: {"127.0.0.1:8081": 1}}}]
`, map[string]string{"PW": "secret"})
	want := []*Store{
		{Name: "url", Mode: "single", Addrs: []string{"h:6379"}, Username: "u", Password: "secret", DB: 3, Deadline: 20 * time.Millisecond, Prefix: "p:",
			ExpiryMargin: 2 * time.Hour, Connections: 4, Instances: 3, TLS: &StoreTLS{Verify: true, CA: "ca.pem", ServerName: "s"}},
		{Name: "cluster", Mode: "cluster", Addrs: []string{"a:1", "b:2"}, Password: "of pw", Deadline: StoreDeadline},
		{Name: "sentinel", Mode: "sentinel", Addrs: []string{"s:1"}, Primary: "m", SentinelUsername: "x", SentinelPassword: "y", DB: 2,
			Username: "u", Password: "p", Deadline: StoreDeadline},
	}
	if d := cmp.Diff(want, c.Stores); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	l := c.Limits
	if l[0].Store != c.Stores[0] || l[3].Store != c.Stores[0] || l[1].Store != c.Stores[1] || l[4].Store != nil {
		t.Error("limits are not in the stores they name")
	}
	if l[0].OnFailure != escapement.LocalShare || l[1].OnFailure != escapement.Allow || l[2].OnFailure != escapement.Deny || l[4].OnFailure != escapement.Deny {
		t.Error("on_failure is not as written, or as the default")
	}
	if s := l[0].Summary(); !strings.Contains(s.State, "redis h:6379/3 over TLS") || !strings.Contains(s.State, "20ms") || s.OnFailure != "local_share of 1/3, which is 2" {
		t.Errorf("%+v", s)
	}
	if text := fmt.Sprint(c.Redacted()); strings.Contains(text, "secret") || strings.Contains(text, "of pw") || !strings.Contains(text, "h:6379") {
		t.Errorf("what the admin listener shows: %s", text)
	}
}

// Plugins that name one server in the same way share a store; any difference makes two.
func TestStoresOfPlugins(t *testing.T) {
	plugin := func(id, rest string) string {
		return fmt.Sprintf("  - {id: %s, uri: /%s, plugins: {limit-count: {count: 1, time_window: 10, rejected_code: 429, %s}}, upstream: {nodes: {\"127.0.0.1:8081\": 1}}}\n", id, id, rest)
	}
	c := parsed(t, "routes:\n"+
		plugin("a", "policy: redis, redis_host: hh, redis_password: '${PW}'")+
		plugin("b", "policy: redis, redis_host: hh, redis_port: 6379, redis_password: secret, sync_interval: -1")+
		plugin("c", "policy: redis, redis_host: hh, redis_password: secret, redis_timeout: 250, allow_degradation: true")+
		plugin("d", "policy: redis-cluster, redis_cluster_nodes: ['n1:1', 'n2:1'], redis_cluster_name: x, redis_cluster_ssl: true")+
		plugin("e", "policy: redis-sentinel, redis_sentinels: [{host: ss, port: 9}], redis_master_name: m, redis_database: 1, redis_read_timeout: 70, sentinel_password: q"),
		map[string]string{"PW": "secret"})
	want := []*Store{
		{Name: "redis:hh:6379", Mode: "single", Addrs: []string{"hh:6379"}, Password: "secret", Deadline: StoreDeadline},
		{Name: "redis:hh:6379#2", Mode: "single", Addrs: []string{"hh:6379"}, Password: "secret", Deadline: 250 * time.Millisecond},
		{Name: "redis:n1:1", Mode: "cluster", Addrs: []string{"n1:1", "n2:1"}, Deadline: StoreDeadline, TLS: &StoreTLS{}},
		{Name: "redis:m/1", Mode: "sentinel", Addrs: []string{"ss:9"}, Primary: "m", DB: 1, SentinelPassword: "q", Deadline: 70 * time.Millisecond},
	}
	if d := cmp.Diff(want, c.Stores); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if c.Limits[0].Store != c.Limits[1].Store || c.Limits[0].Store == c.Limits[2].Store {
		t.Error("the first two share a store, the third has its own")
	}
	if c.Limits[0].OnFailure != escapement.Deny || c.Limits[2].OnFailure != escapement.Allow {
		t.Error("allow_degradation is what decides while a store is away")
	}
}
