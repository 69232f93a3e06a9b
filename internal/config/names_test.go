package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/escapement-io/escapement"
)

// TestNamesStay moves routes and adds others: the limits of the rest keep their names.
func TestNamesStay(t *testing.T) {
	const up = ", upstream: {nodes: {\"127.0.0.1:8081\": 1}}}\n"
	plugin := func(kind string) string { return "plugins: {" + kind + ": {count: 1, time_window: 1}}" }
	one := "  - {id: Orders.v2, uri: /orders, " + plugin("limit-count") + up
	two := "  - {uri: /a, methods: [GET, POST], " + plugin("limit-count-advanced") + up
	two2 := "  - {uri: /a, methods: [POST, GET], " + plugin("limit-count-advanced") + up
	three := "  - {id: c, uri: /c, plugins: {limit-count: {rules: [{count: 1, time_window: 1, key: $uri}, {count: 2, time_window: 2, key: $host}]}}" + up
	names := func(routes ...string) []string {
		var out []string
		for _, l := range good(t, "a.yaml", "routes:\n"+strings.Join(routes, "")).Limits {
			out = append(out, l.Name)
		}
		slices.Sort(out)
		return out
	}
	before, after := names(one, two, three), names(three, two2, "  - {uri: /new, "+plugin("limit-count")+up, one)
	for _, n := range before {
		if !slices.Contains(after, n) {
			t.Errorf("%s is gone: %v", n, after)
		}
	}
	if len(before) != 4 || len(after) != 5 {
		t.Errorf("%v %v", before, after)
	}
}

func TestLimitNames(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"a", "A", "a.b", "a-b", "a_limit-count", "a_limit-count_1", strings.Repeat("x", 64), strings.Repeat("x", 63) + "y", "limit-count", "1"} {
		for _, kind := range []string{"limit-count", "limit-count-advanced", "limit-count-group", "limit-count-advanced-group"} {
			for _, suffix := range []string{"", "_1", "_16"} {
				name := limitName(id, kind) + suffix
				l := escapement.Limit{Name: name, Rate: escapement.PerSecond(1)}
				if _, err := l.Compile(); err != nil {
					t.Errorf("%q: %v", name, err)
				}
				if other, ok := seen[name]; ok {
					t.Errorf("%s names %s and %s %s%s", name, other, id, kind, suffix)
				}
				seen[name] = id + " " + kind + suffix
			}
		}
	}
}

func TestNameIsTaken(t *testing.T) {
	_, findings := Parse("a.yaml", []byte(`
limits:
  r_limit-count: {count: 1, per: 1s, key: []}
routes:
  - id: r
    uri: /
    limits: [r_limit-count]
    plugins: {limit-count: {count: 1, time_window: 1, window_type: sliding, rejected_code: 429}}
    upstream: {nodes: {"127.0.0.1:8081": 1}}
`), Options{})
	if len(findings) != 1 || findings[0].Problem != "the limit of this plugin would be named r_limit-count, as limits.r_limit-count is" {
		t.Error(lines(findings))
	}
}

func TestGroupsShare(t *testing.T) {
	const route = "  - {uri: /%s, plugins: {limit-count: {%s}}, upstream: {nodes: {\"127.0.0.1:8081\": 1}}}\n"
	c := good(t, "a.yaml", "routes:\n"+
		fmt.Sprintf(route, "a", "count: 1, time_window: 60, group: g")+
		fmt.Sprintf(route, "b", "group: g, time_window: 60, policy: local, count: 1, rejected_code: 503, key: remote_addr, _meta: {disable: false}"))
	if len(c.Limits) != 1 || c.Routes[0].Limits[0] != c.Routes[1].Limits[0] || c.Limits[0].Name != "g_limit-count-group" {
		t.Errorf("%d limits, %v", len(c.Limits), c.Limits[0].Name)
	}
}

// TestHostNames: hosts are kept as those of requests are compared, whatever their
// spelling.
func TestHostNames(t *testing.T) {
	for in, want := range map[string]string{
		"A.Example": "a.example", "a.example.": "a.example", "*.A.example.": "*.a.example", "[::1]": "::1", "::1": "::1",
	} {
		c, findings := Parse("x.yaml", fmt.Appendf(nil, "routes:\n  - {uri: /, host: %q, upstream: {nodes: {\"127.0.0.1:1\": 1}}}\n", in), Options{})
		if c == nil || c.Routes[0].Hosts[0] != want {
			t.Errorf("%q: got %v", in, findings)
		}
	}
	for _, in := range []string{"a:80", "[::1]:80", "[::1", "*.::1", "a:b:c", "http://a", "*", "*.", ".", "[a]", "a@b"} {
		if c, _ := Parse("x.yaml", fmt.Appendf(nil, "routes:\n  - {uri: /, host: %q, upstream: {nodes: {\"127.0.0.1:1\": 1}}}\n", in), Options{}); c != nil {
			t.Errorf("%q is taken as the host %q", in, c.Routes[0].Hosts)
		}
	}
}
