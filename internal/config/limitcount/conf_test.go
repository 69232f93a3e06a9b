package limitcount

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement/internal/config/tree"
)

func read(t *testing.T, text string) (*Conf, []tree.Finding) {
	t.Helper()
	r := &tree.Report{File: "plugin.json"}
	o, ok := tree.Root(r, tree.Parse(r, []byte(text))).Object()
	if !ok {
		t.Fatalf("%s: %v", text, r.Findings())
	}
	c := Read(o)
	return c, r.Findings()
}

func TestDefaults(t *testing.T) {
	c, findings := read(t, `{"count": 2, "time_window": 5}`)
	if c == nil || len(findings) != 0 {
		t.Fatal(findings)
	}
	r := c.Rules[0]
	if r.Count.N != 2 || r.Window.N != 5 || r.Count.Template != nil || r.Window.Template != nil || r.Key.String() != "[remote_addr]" {
		t.Errorf("rule %+v, key %v", r, r.Key)
	}
	if c.InRules || c.Sliding || c.Group != "" || c.RejectedCode != 503 || c.RejectedMsg != "" || c.Policy != "local" ||
		c.AllowDegradation || !c.ShowHeader || c.SyncInterval != 0 {
		t.Errorf("defaults %+v", c)
	}
}

func TestEveryOption(t *testing.T) {
	c, findings := read(t, `{"count": "${http_x_count ?? 7}", "time_window": "$arg_window", "window_type": "sliding",
		"key": "$remote_addr $http_x", "key_type": "var_combination", "group": "g", "rejected_code": 429, "rejected_msg": "no",
		"policy": "local", "allow_degradation": true, "show_limit_quota_header": false, "sync_interval": -1}`)
	if c == nil || len(findings) != 0 {
		t.Fatal(findings)
	}
	r := c.Rules[0]
	if r.Count.N != 7 || r.Count.Template.String() != "${http_x_count ?? 7}" || r.Window.N != 1 || r.Window.Template.String() != "${arg_window}" ||
		r.Key.String() != `["${remote_addr} ${http_x}"]` {
		t.Errorf("rule %+v, key %v", r, r.Key)
	}
	if !c.Sliding || c.Group != "g" || c.RejectedCode != 429 || c.RejectedMsg != "no" || !c.AllowDegradation || c.ShowHeader {
		t.Errorf("%+v", c)
	}
}

func TestRules(t *testing.T) {
	c, findings := read(t, `{"rules": [{"count": 2, "time_window": 2, "key": "${remote_addr}_2s", "header_prefix": "Jack"},
		{"count": "3", "time_window": 5, "key": "${remote_addr}_5s"}]}`)
	if c == nil || len(findings) != 0 {
		t.Fatal(findings)
	}
	if !c.InRules || len(c.Rules) != 2 || c.Rules[0].HeaderPrefix != "Jack" || c.Rules[1].HeaderPrefix != "" || c.Rules[1].Count.N != 3 {
		t.Errorf("%+v", c.Rules)
	}
}

func TestKeyTypes(t *testing.T) {
	for text, want := range map[string]string{
		`"key": "http_X-Tenant"`:                                "[http_x_tenant]",
		`"key": "all", "key_type": "constant"`:                  `["all"]`,
		`"key": "$all", "key_type": "constant"`:                 `["\\$all"]`,
		`"key": "a$uri", "key_type": "var_combination"`:         `["a${uri}"]`,
		`"key": "consumer_name", "key_type": "var"`:             "[consumer_name]",
		`"key": "${arg_a ?? b}", "key_type": "var_combination"`: `["${arg_a ?? b}"]`,
	} {
		c, findings := read(t, `{"count": 1, "time_window": 1, `+text+`}`)
		if c == nil || len(findings) != 0 || c.Rules[0].Key.String() != want {
			t.Errorf("%s: %v", text, findings)
		}
	}
}

// TestMessages holds the plugins' own wording, which scripts and people search for.
func TestMessages(t *testing.T) {
	for body, want := range map[string]string{
		`"count": 1, "time_window": 1, "rules": [{"count": 1, "time_window": 1, "key": "$uri"}]`:                                                                       "count/time_window and rules cannot be specified at the same time",
		`"group": "g", "rules": [{"count": 1, "time_window": 1, "key": "$uri"}]`:                                                                                       "group and rules cannot be specified at the same time",
		`"rules": [{"count": 1, "time_window": 1, "key": "$uri"}, {"count": 2, "time_window": 9, "key": "$uri"}]`:                                                      "duplicate key '$uri' in rules",
		`"count": 1, "time_window": 10, "policy": "redis", "redis_host": "127.0.0.1", "sync_interval": 0.09`:                                                           "sync_interval should not be smaller than 0.1",
		`"count": 1, "time_window": 10, "policy": "redis", "redis_host": "127.0.0.1", "sync_interval": 0`:                                                              "sync_interval should not be smaller than 0.1",
		`"count": 1, "time_window": 10, "policy": "redis", "redis_host": "127.0.0.1", "sync_interval": 10`:                                                             "sync_interval should be smaller than time_window",
		`"count": 1, "time_window": 10, "policy": "redis-sentinel", "redis_sentinels": [{"host": "s1", "port": 26379}], "redis_master_name": "m", "sync_interval": 11`: "sync_interval should be smaller than time_window",
		`"count": 1, "time_window": 1, "policy": "redis", "redis_host": "127.0.0.1", "sync_interval": 0.9999`:                                                          "sync_interval should be smaller than time_window",
		`"count": 1, "time_window": 1, "policy": "redis", "redis_host": "127.0.0.1", "sync_interval": 0.6, "sync_mode": "lease", "window_type": "sliding"`:             "sync_interval is above half of time_window",
	} {
		c, findings := read(t, "{"+body+"}")
		if c != nil || !slices.ContainsFunc(findings, func(f tree.Finding) bool { return strings.Contains(f.Problem, want) }) {
			t.Errorf("%s: %v\nwant %q", body, findings, want)
		}
	}
}

// TestRanges tries the edges of every numeric option.
func TestRanges(t *testing.T) {
	server := `"policy": "redis", "redis_host": "127.0.0.1", `
	cluster := `"policy": "redis-cluster", "redis_cluster_nodes": ["a:1"], "redis_cluster_name": "c", `
	sentinel := `"policy": "redis-sentinel", "redis_sentinels": [{"host": "s1", "port": 1}], "redis_master_name": "m", `
	for _, c := range []struct {
		policy, key string
		good, bad   []any
	}{
		{"", "rejected_code", []any{200, 599}, []any{199, 600, 429.5, `"429"`, "null"}},
		{"", "allow_degradation", []any{true, false}, []any{0, `"true"`}},
		{"", "show_limit_quota_header", []any{true}, []any{1}},
		{"", "rejected_msg", []any{`"x"`}, []any{`""`, 5}},
		{"", "sync_interval", []any{-1}, []any{-0.5, 0, `"-1"`}},
		{server, "sync_interval", []any{-1, 0.1, 9.9}, []any{0.0999, 10, 1e300}},
		{server, "sync_mode", []any{`"delayed"`, `"lease"`}, []any{`"exact"`, true}},
		{server, "redis_port", []any{1, 65535}, []any{0, 65536}},
		{server, "redis_database", []any{0, 15}, []any{-1, 0.5}},
		{server, "redis_timeout", []any{1, 1000}, []any{0, -1}},
		{server, "redis_ssl", []any{true}, []any{`"true"`}},
		{server, "redis_ssl_verify", []any{true}, []any{1}},
		{server, "redis_keepalive_timeout", []any{1000}, []any{999}},
		{server, "redis_keepalive_pool", []any{1}, []any{0}},
		{server, "redis_username", []any{`"u"`}, []any{1}},
		{cluster, "redis_timeout", []any{1}, []any{0}},
		{cluster, "redis_cluster_ssl", []any{false}, []any{`"no"`}},
		{cluster, "redis_cluster_ssl_verify", []any{false}, []any{0}},
		{cluster, "redis_keepalive_timeout", []any{1000}, []any{999}},
		{sentinel, "redis_role", []any{`"master"`}, []any{`"slave"`, `"leader"`}},
		{sentinel, "redis_connect_timeout", []any{1}, []any{0}},
		{sentinel, "redis_read_timeout", []any{1}, []any{0}},
		{sentinel, "redis_keepalive_timeout", []any{60000}, []any{0}},
		{sentinel, "redis_database", []any{0}, []any{-1}},
		{sentinel, "sentinel_password", []any{`"p"`}, []any{0}},
	} {
		try := func(v any, wantGood bool) {
			_, findings := read(t, fmt.Sprintf(`{"count": 1, "time_window": 10, %s%q: %v}`, c.policy, c.key, v))
			good := true
			for _, f := range findings {
				good = good && f.Severity != tree.Error
			}
			if good != wantGood {
				t.Errorf("%s%s: %v: accepted: %v; %v", c.policy, c.key, v, good, findings)
			}
		}
		for _, v := range c.good {
			try(v, true)
		}
		for _, v := range c.bad {
			try(v, false)
		}
	}
}

func TestSync(t *testing.T) {
	for body, want := range map[string]struct {
		interval time.Duration
		lease    bool
		warnings int
	}{
		`"policy": "redis", "redis_host": "hh", "sync_interval": 0.2`:                                                                    {200 * time.Millisecond, false, 0},
		`"policy": "redis", "redis_host": "hh", "sync_interval": 0.3, "sync_mode": "delayed"`:                                            {300 * time.Millisecond, false, 0},
		`"policy": "redis-cluster", "redis_cluster_nodes": ["a:1"], "redis_cluster_name": "c", "sync_interval": 5, "sync_mode": "lease"`: {5 * time.Second, true, 0},
		`"policy": "redis", "redis_host": "hh", "sync_interval": -1, "sync_mode": "lease"`:                                               {0, false, 1},
		`"policy": "redis", "redis_host": "hh", "sync_mode": "lease"`:                                                                    {0, false, 1},
		`"sync_interval": 0.2`:                         {0, false, 1},
		`"sync_interval": 0.2, "sync_mode": "delayed"`: {0, false, 2},
	} {
		c, findings := read(t, `{"count": 1, "time_window": 10, "window_type": "sliding", `+body+"}")
		if c == nil || c.SyncInterval != want.interval || c.Lease != want.lease || len(findings) != want.warnings {
			t.Errorf("%s: %+v %v", body, c, findings)
		}
	}
}

func TestMetadata(t *testing.T) {
	r := &tree.Report{File: "metadata.json"}
	o, _ := tree.Root(r, tree.Parse(r, []byte(`{"limit_header": "x-limit", "reset_header": "Reset In"}`))).Object()
	m := ReadMetadata(o)
	if m.Limit != "X-Limit" || m.Remaining != "X-RateLimit-Remaining" || len(r.Findings()) != 1 {
		t.Errorf("%+v %v", m, r.Findings())
	}
}
