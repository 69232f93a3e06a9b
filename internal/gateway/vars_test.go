package gateway

import (
	"net/http"
	"net/http/httputil"
	"strings"
	"testing"

	"github.com/escapement-io/escapement/internal/policy"
)

// TestVariables asks for every variable in the middle of a request.
func TestVariables(t *testing.T) {
	c := oneRoute()
	c.Routes[0].URIs = []string{"/shop/*"}
	c.TrustedProxies = loopback
	w := serve(t, nil, c)
	got := map[string]string{}
	names := []string{"arg_a", "arg_b", "arg_c", "arg_d", "arg_none", "cookie_sid", "cookie_none", "http_x_tenant", "http_none", "http_host", "http_twice", "unknown", "arg_", "http_"}
	for _, n := range policy.Names() {
		if !strings.HasSuffix(n, "*") {
			names = append(names, n)
		}
	}
	w.g.exchanges.New = func() any {
		x := w.g.newExchange().(*exchange)
		rewrite := x.proxy.Rewrite
		x.proxy.Rewrite = func(p *httputil.ProxyRequest) {
			for _, n := range names {
				if v, ok := x.vars.Var(n); ok {
					got[n] = v
				}
			}
			rewrite(p)
		}
		return x
	}
	r := w.get("/shop//a%20b/./c?a=1&a=2&%62=x+y%21&c=%zz&d=", "Host: Shop.Example:8080", "X-Tenant: t1", "Twice: 1", "Twice: 2",
		"Cookie: sid=s1; other=2", "Content-Type: text/plain", "X-Forwarded-For: 2001:db8::7", "X-Consumer: alice")
	if r.code != 200 {
		t.Fatalf("got %d", r.code)
	}
	addr := w.g.Addr().String()
	host, port, _ := strings.Cut(addr, ":")
	want := map[string]string{
		"arg_a": "1", "arg_b": "x y!", "arg_c": "%zz", "cookie_sid": "s1", "http_x_tenant": "t1", "http_twice": "1, 2",
		"http_host": "Shop.Example:8080", "host": "shop.example", "uri": "/shop/a b/c",
		"request_uri": "/shop//a%20b/./c?a=1&a=2&%62=x+y%21&c=%zz&d=", "args": "a=1&a=2&%62=x+y%21&c=%zz&d=",
		"query_string": "a=1&a=2&%62=x+y%21&c=%zz&d=", "is_args": "?", "request_method": "GET", "scheme": "http",
		"server_protocol": "HTTP/1.1", "server_addr": host, "server_port": port, "remote_addr": "2001:db8::/64",
		"realip_remote_addr": "127.0.0.1", "consumer_name": "alice", "route_id": "r1", "route_name": "r1",
		"content_type": "text/plain", "hostname": w.g.hostname,
	}
	for n, v := range want {
		if got[n] != v {
			t.Errorf("%s: got %q, want %q", n, got[n], v)
		}
	}
	for n, v := range got {
		if want[n] != v {
			t.Errorf("%s resolves to %q", n, v)
		}
	}
}

// TestEveryKnownVariableResolves: what check lets a key be made of has a value for some
// request.
func TestEveryKnownVariableResolves(t *testing.T) {
	c := oneRoute()
	w := serve(t, nil, c)
	missing := map[string]bool{}
	for _, n := range policy.Names() {
		missing[strings.Replace(n, "*", "x", 1)] = true
	}
	w.g.exchanges.New = func() any {
		x := w.g.newExchange().(*exchange)
		rewrite := x.proxy.Rewrite
		x.proxy.Rewrite = func(p *httputil.ProxyRequest) {
			for n := range missing {
				if _, ok := x.vars.Var(n); ok {
					delete(missing, n)
				}
			}
			rewrite(p)
		}
		return x
	}
	r, err := http.NewRequest("POST", w.base+"/?x=1", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	w.do(r, "X: 1", "Cookie: x=1", "X-Consumer: alice", "Content-Type: text/plain")
	if len(missing) > 0 {
		t.Errorf("these have no value: %v", missing)
	}
}

func FuzzQuery(f *testing.F) {
	f.Add("a=1&b=2", "a")
	f.Add("%61=%zz;&=&&", "a")
	f.Fuzz(func(t *testing.T, query, name string) {
		dropped := dropArg(query, name)
		if v, ok := queryArg(dropped, name); ok && name != "" {
			t.Errorf("%q without %q still has %q", query, name, v)
		}
	})
}

func FuzzPath(f *testing.F) {
	f.Add("/a/../b//c/.")
	f.Add("")
	f.Fuzz(func(t *testing.T, p string) {
		c := policy.CleanPath(p)
		if c != policy.CleanPath(c) {
			t.Errorf("%q: %q is not clean", p, c)
		}
		if strings.Contains(c, "//") || strings.Contains(c, "/../") || strings.Contains(c, "/./") || c[0] != '/' {
			t.Errorf("%q became %q", p, c)
		}
	})
}
