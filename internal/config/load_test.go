package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/escapement-io/escapement"
)

// good parses a text that must have no mistakes.
func good(t *testing.T, name, text string) *Config {
	t.Helper()
	c, findings := Parse(name, []byte(text), Options{LookupEnv: environmentOf(nil)})
	if c == nil {
		t.Fatalf("%s:\n%s", text, lines(findings))
	}
	return c
}

func lines(findings []Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%v\n  %s\n", f, f.Hint)
	}
	return b.String()
}

func environmentOf(m map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := m[name]
		return v, ok
	}
}

func TestTenMistakes(t *testing.T) {
	c, findings, err := Load("testdata/ten.yaml", Options{})
	if c != nil || err != nil {
		t.Fatal(c, err)
	}
	want := []string{
		"testdata/ten.yaml:2:9: error: listen: 8080 is not a text",
		`testdata/ten.yaml:5:16: error: limits.per-client.algorithm: "rollng_window" is none of the choices`,
		`testdata/ten.yaml:6:5: error: limits.per-client.cuont: unknown key "cuont"`,
		"testdata/ten.yaml:7:12: error: limits.per-client.count: 0 is below 1",
		"testdata/ten.yaml:8:10: error: limits.per-client.per: 10 has no unit",
		"testdata/ten.yaml:9:11: error: limits.per-client.key[0]: consumer_nam can never resolve: there is no such variable",
		`testdata/ten.yaml:17:10: error: routes[0].uri: "api/*" does not begin with /`,
		`testdata/ten.yaml:18:26: error: routes[0].limits[1]: there is no limit "smoth"`,
		"testdata/ten.yaml:22:103: error: routes[1].plugins.limit-count-advanced.sync_interval: sync_interval should not be smaller than 0.1",
		"testdata/ten.yaml:24:9: error: routes[2].id: the id pay is already on line 20",
	}
	var got []string
	for _, f := range findings {
		got = append(got, f.String())
		if f.Hint == "" {
			t.Errorf("no remedy: %v", f)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestExamples(t *testing.T) {
	files, _ := filepath.Glob("../../examples/*")
	if len(files) < 3 {
		t.Fatal("examples are missing", files)
	}
	for _, name := range files {
		c, findings, err := Load(name, Options{LookupEnv: environmentOf(nil)})
		if c == nil || err != nil || len(c.Limits) == 0 {
			t.Errorf("%s: %v\n%s", name, err, lines(findings))
		}
	}
}

func TestNative(t *testing.T) {
	c, findings, err := Load("../../examples/native.yaml", Options{})
	if err != nil || len(findings) != 0 {
		t.Fatal(err, lines(findings))
	}
	if c.Listen != "127.0.0.1:8080" || c.Admin != "127.0.0.1:9090" || c.Consumers.Header != "X-Consumer" || len(c.Consumers.Trusted) != 1 {
		t.Errorf("%+v", c)
	}
	perClient, smooth := c.Limits[0], c.Limits[1]
	if perClient.Algorithm != escapement.RollingWindow || perClient.Rate.String() != "1000 per 10s" || perClient.Key.String() != "[consumer_name]" ||
		perClient.Rejected.Code != 429 || perClient.Headers.Style != "ietf" || !perClient.Headers.RetryAfter || perClient.Compatible {
		t.Errorf("%+v", perClient)
	}
	if smooth.Burst != 100 || smooth.Headroom != 20 || !smooth.Shadow {
		t.Errorf("%+v", smooth)
	}
	if s := smooth.Summary(); s.Count != 40 || s.Capacity != 80 {
		t.Errorf("%v", s)
	}
	if r := c.Routes[0]; !slices.Equal(r.Limits, []*Limit{perClient, smooth}) || r.Upstream.Nodes[0] != (Node{"127.0.0.1:8081", 1}) {
		t.Errorf("%+v", r)
	}
	pay := c.Routes[1].Limits[0]
	if pay.Algorithm != escapement.SlidingWindow || !pay.Compatible || pay.Rejected.Code != 429 || pay.Headers.Style != "compat" || c.Limits[2] != pay {
		t.Errorf("%+v", pay)
	}
}

func TestStandalone(t *testing.T) {
	c, findings := Parse("apisix.yaml", []byte(`
routes:
  - id: 1
    uris: [/a, /b/*]
    hosts: ["*.Example.com"]
    methods: [GET]
    priority: 3
    plugins:
      key-auth: {header: x-key, hide_credentials: true}
      limit-count: {count: 2, time_window: 60, key: consumer_name, allow_degradation: true, show_limit_quota_header: false, _meta: {disable: false}}
    upstream_id: 1
  - {id: off, uri: /off, status: 0, plugins: {limit-count: {count: 1, time_window: 1}}, upstream_id: 1}
upstreams:
  - id: 1
    type: chash
    hash_on: header
    key: X-Session
    scheme: https
    pass_host: rewrite
    upstream_host: inner.example.com
    retries: 4
    timeout: {connect: 0.5, send: 6, read: "7s"}
    nodes: [{host: 10.0.0.1, port: 8443, weight: 2}, {host: b.example.com}]
consumers:
  - username: alice
    plugins: {key-auth: {key: "${{KEY}}"}}
  - username: bob
    plugins: {key-auth: {key: "$env://KEY2"}}
#END
`), Options{LookupEnv: environmentOf(map[string]string{"KEY": "k1", "KEY2": "k2"})})
	if c == nil {
		t.Fatal(lines(findings))
	}
	if len(c.Routes) != 1 || len(c.Limits) != 1 {
		t.Fatalf("%d routes, %d limits; the one switched off counts", len(c.Routes), len(c.Limits))
	}
	r := c.Routes[0]
	if r.ID != "1" || r.Hosts[0] != "*.example.com" || r.Priority != 3 || *r.KeyAuth != (KeyAuth{"X-Key", "apikey", true}) {
		t.Errorf("%+v", r)
	}
	l := r.Limits[0]
	if l.Name != "1_limit-count" || l.Algorithm != escapement.FixedWindow || l.Align != escapement.FirstUse || l.OnFailure != escapement.Allow ||
		l.Headers.Style != "none" || l.Rejected.Code != 503 {
		t.Errorf("%+v", l)
	}
	u := r.Upstream
	if got := fmt.Sprint(u.Balance, u.HashOn, u.Scheme, u.PassHost, u.Host, u.Retries, u.Connect, u.Send, u.Read, u.Nodes); got !=
		"chash${http_x_session}httpsrewriteinner.example.com4 500ms 6s 7s [{10.0.0.1:8443 2} {b.example.com:443 1}]" {
		t.Error(got)
	}
	if c.Consumers.KeyAuth["k1"] != "alice" || c.Consumers.KeyAuth["k2"] != "bob" || !slices.Equal(c.Consumers.Names, []string{"alice", "bob"}) {
		t.Errorf("%+v", c.Consumers)
	}
}

func TestIgnoreUnsupported(t *testing.T) {
	text := `
routes:
  - id: r
    uri: /*
    vars: [["arg_a", "==", "b"]]
    plugins: {prometheus: {}, limit-count: {count: 1, time_window: 1}}
    upstream: {nodes: {"127.0.0.1:8081": 1}, checks: {active: {}}}
global_rules: [{id: 1}]
#END
`
	if c, findings := Parse("a.yaml", []byte(text), Options{}); c != nil {
		t.Fatal(lines(findings))
	}
	c, findings := Parse("a.yaml", []byte(text), Options{IgnoreUnsupported: true})
	if c == nil {
		t.Fatal(lines(findings))
	}
	var dropped []string
	for _, f := range c.Findings {
		if f.Severity == Dropped {
			dropped = append(dropped, f.Path)
		}
	}
	if want := []string{"routes[0].vars", "routes[0].plugins.prometheus", "routes[0].upstream.checks", "global_rules"}; !slices.Equal(dropped, want) {
		t.Errorf("dropped %v, want %v", dropped, want)
	}
}

// TestNearlyAPlugin writes a plugin nearly right: that is never left out.
func TestNearlyAPlugin(t *testing.T) {
	c, findings := Parse("a.yaml", []byte(`
routes: [{uri: /, plugins: {limit_count: {count: 1, time_window: 1}}, upstream: {nodes: {"a:1": 1}}}]
`), Options{IgnoreUnsupported: true})
	if c != nil || len(findings) != 1 || findings[0].Hint != "did you mean limit-count?" {
		t.Error(lines(findings))
	}
	c, findings = Parse("a.yaml", []byte(`
routes: [{uri: /, plugins: {limit-conn: {conn: 1}}, upstream: {nodes: {"a:1": 1}}}]
`), Options{IgnoreUnsupported: true})
	if c == nil || len(findings) != 1 || findings[0].Severity != Dropped {
		t.Error("limit-conn is a plugin of APISIX of its own", lines(findings))
	}
}

func TestSecretsFromFilesAndEnvironment(t *testing.T) {
	o := Options{
		LookupEnv: environmentOf(map[string]string{"BOB": "b-secret"}),
		ReadFile: func(name string) ([]byte, error) {
			if name == "/run/alice" {
				return []byte("a-secret\n"), nil
			}
			return nil, os.ErrNotExist
		},
	}
	c, findings := Parse("a.yaml", []byte(`
consumers: {keys: {alice: "file:/run/alice", bob: "x-${BOB}", carol: c-secret}}
limits: {a: {count: 1, per: 1s, key: [consumer_name], bypass: [{var: http_x_probe, value: p-secret}]}}
routes: [{uri: /, limits: [a], plugins: {key-auth: {}}, upstream: {nodes: {"127.0.0.1:8081": 1}}}]
`), o)
	if c == nil {
		t.Fatal(lines(findings))
	}
	for key, name := range map[string]string{"a-secret": "alice", "x-b-secret": "bob", "c-secret": "carol"} {
		if c.Consumers.KeyAuth[key] != name {
			t.Errorf("%s is %q", key, c.Consumers.KeyAuth[key])
		}
	}
	shown, err := json.Marshal(c.Redacted())
	if err != nil || strings.Contains(string(shown), "secret") || !strings.Contains(string(shown), `"alice"`) {
		t.Errorf("%s %v", shown, err)
	}
}

// TestMessagesHideSecrets breaks files around a secret in several ways.
func TestMessagesHideSecrets(t *testing.T) {
	o := Options{LookupEnv: environmentOf(map[string]string{"URL": "http://s3cret", "N": "s3cret"})}
	for name, text := range map[string]string{
		"same.yaml":   "listen: :1\nconsumers: {keys: {a: s3cret, b: s3cret}}\n",
		"url.yaml":    "stores: {m: {type: redis, url: \"http://s3cret\"}}\n",
		"env.yaml":    "stores: {m: {type: redis, url: \"${URL}\"}}\n",
		"apisix.yaml": "routes: [{id: r, uri: \"${{N}}\", priority: \"${{N}}\", plugins: {limit-count: {count: \"${{N}}\", time_window: \"${{N}}\"}}, upstream: {nodes: {\"a:1\": 1}, type: \"${{N}}\"}}]\n#END\n",
		"redis.yaml":  "routes: [{uri: /, plugins: {limit-count: {count: 1, time_window: 1, policy: redis, redis_host: a, redis_password: [s3cret]}}, upstream: {nodes: {\"a:1\": 1}}}]\n",
	} {
		_, findings := Parse(name, []byte(text), o)
		if len(findings) == 0 || strings.Contains(lines(findings), "s3cret") {
			t.Errorf("%s:\n%s", name, lines(findings))
		}
	}
}

func TestLargeFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "large.yaml")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(100 << 20); err != nil {
		t.Fatal(err)
	}
	f.Close()
	data, err := ReadFile(name)
	if err != nil || len(data) != MaxBytes+1 {
		t.Errorf("read %d bytes, %v", len(data), err)
	}
	c, findings, err := Load(name, Options{})
	if c != nil || err != nil || len(findings) != 1 || !strings.Contains(findings[0].Problem, "larger than 4 MiB") {
		t.Errorf("%v %s", err, lines(findings))
	}
}

func TestCannotRead(t *testing.T) {
	if _, _, err := Load("testdata/no-such-file.yaml", Options{}); !os.IsNotExist(unwrap(err)) {
		t.Error(err)
	}
	if _, _, err := Load("testdata", Options{}); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Error(err)
	}
}

func unwrap(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p
	}
	for u := errors.Unwrap(err); u != nil; u = errors.Unwrap(u) {
		err = u
	}
	return err
}

// TestMany loads as many routes and limits as are allowed, and one more.
func TestMany(t *testing.T) {
	text := func(n int) string {
		var b strings.Builder
		b.WriteString("limits:\n")
		for i := range n {
			fmt.Fprintf(&b, "  l%d: {count: 5, per: 10s, key: [remote_addr]}\n", i)
		}
		b.WriteString("routes:\n")
		for i := range n {
			fmt.Fprintf(&b, "  - {id: r%d, uri: /a/%d, limits: [l%d], upstream: {nodes: {\"127.0.0.1:80\": 1}}}\n", i, i, i)
		}
		return b.String()
	}
	c := good(t, "a.yaml", text(MaxLimits))
	if len(c.Limits) != MaxLimits || len(c.Routes) != MaxRoutes {
		t.Errorf("%d limits, %d routes", len(c.Limits), len(c.Routes))
	}
	if c, _ := Parse("a.yaml", []byte(text(MaxLimits+1)), Options{}); c != nil {
		t.Error("more than the most were accepted")
	}
}

// TestTruncated cuts the examples at every byte: whatever comes out, nothing panics, and
// a standalone file without its end is refused.
func TestTruncated(t *testing.T) {
	for _, name := range []string{"native.yaml", "apisix.yaml", "limit-count-advanced.json"} {
		f, err := os.Open(filepath.Join("../../examples", name))
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		for i := range data {
			c, findings := Parse(name, data[:i], Options{LookupEnv: environmentOf(nil)})
			if c == nil && len(findings) == 0 {
				t.Fatalf("%s cut at %d: refused without a word", name, i)
			}
			if c != nil && (name == "apisix.yaml" && i < len(data)-2 || strings.HasSuffix(name, ".json") && i < len(data)-2) {
				t.Fatalf("%s cut at %d of %d is accepted", name, i, len(data))
			}
		}
	}
}

// TestLineEndings gives the examples the line ends and the mark that editors on Windows
// write: nothing changes.
func TestLineEndings(t *testing.T) {
	for _, name := range []string{"native.yaml", "apisix.yaml", "limit-count-advanced.json"} {
		data, err := os.ReadFile(filepath.Join("../../examples", name))
		if err != nil {
			t.Fatal(err)
		}
		o := Options{LookupEnv: environmentOf(nil)}
		one, before := Parse(name, data, o)
		two, after := Parse(name, []byte("\uFEFF"+strings.ReplaceAll(string(data), "\n", "\r\n")), o)
		if one == nil || two == nil || lines(before) != lines(after) {
			t.Fatalf("%s:\n%s\n%s", name, lines(before), lines(after))
		}
		a, _ := json.Marshal(one.Redacted())
		b, _ := json.Marshal(two.Redacted())
		if string(a) != string(b) {
			t.Errorf("%s:\n%s\n%s", name, a, b)
		}
	}
}
