package gateway

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/escapement-io/escapement/internal/config"
)

func routes(rs ...*config.Route) []*route {
	var out []*route
	for _, r := range rs {
		out = append(out, &route{Route: r})
	}
	return out
}

func TestRouter(t *testing.T) {
	r, err := newRouter(routes(
		&config.Route{ID: "all", URIs: []string{"/*"}},
		&config.Route{ID: "api", URIs: []string{"/api/*", "/v2*"}},
		&config.Route{ID: "api-exact", URIs: []string{"/api/users"}},
		&config.Route{ID: "api-users", URIs: []string{"/api/users/*"}},
		&config.Route{ID: "post", URIs: []string{"/api/users/*"}, Methods: []string{"POST", "PUT"}, Priority: 1},
		&config.Route{ID: "host", URIs: []string{"/*"}, Hosts: []string{"A.example.com"}},
		&config.Route{ID: "suffix", URIs: []string{"/only"}, Hosts: []string{"*.example.com"}},
		&config.Route{ID: "longer", URIs: []string{"/only"}, Hosts: []string{"*.b.example.com"}},
		&config.Route{ID: "second", URIs: []string{"/api/users"}, Priority: 0},
		&config.Route{ID: "high", URIs: []string{"/high", "/low"}, Priority: 5},
		&config.Route{ID: "low", URIs: []string{"/high", "/low"}, Priority: 9, Methods: []string{"GET"}},
	))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ method, host, path, want string }{
		{"GET", "x", "/", "all"},
		{"GET", "x", "/apix", "all"},
		{"GET", "x", "/api", "all"},
		{"GET", "x", "/api/", "api"},
		{"GET", "x", "/api/users", "api-exact"},
		{"GET", "x", "/api/users/", "api-users"},
		{"GET", "x", "/api/users/1/2", "api-users"},
		{"POST", "x", "/api/users/1", "post"},
		{"GET", "x", "/v2beta", "api"},
		{"GET", "a.example.com", "/api/users", "host"},
		{"GET", "b.example.com", "/only", "suffix"},
		{"GET", "b.example.com", "/api/users", "api-exact"},
		{"GET", "c.b.example.com", "/only", "longer"},
		{"GET", "example.com", "/only", "all"},
		{"GET", "x", "/high", "low"},
		{"POST", "x", "/high", "high"},
	} {
		got := "none"
		if rt := r.match(test.host, test.path, test.method); rt != nil {
			got = rt.ID
		}
		if got != test.want {
			t.Errorf("%s %s%s: got %s, want %s", test.method, test.host, test.path, got, test.want)
		}
	}
	for _, bad := range []string{"*.", "a.*.com", "*a", ""} {
		if _, err := newRouter(routes(&config.Route{ID: "r", URIs: []string{"/"}, Hosts: []string{bad}})); err == nil {
			t.Errorf("host %q was accepted", bad)
		}
	}
}

// TestRouterAgainstSearch compares with a search through all routes.
func TestRouterAgainstSearch(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	word := func() string {
		var b strings.Builder
		for range rnd.IntN(5) {
			b.WriteByte("/ab-\xff"[rnd.IntN(5)])
		}
		return "/" + b.String()
	}
	for range 300 {
		var rs []*config.Route
		for i := range rnd.IntN(30) {
			uri := word()
			if rnd.IntN(2) == 0 {
				uri += "*"
			}
			rs = append(rs, &config.Route{ID: fmt.Sprint(i), URIs: []string{uri}, Priority: rnd.IntN(2)})
		}
		r, err := newRouter(routes(rs...))
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			path := word()
			got, want := "none", search(rs, path)
			if rt := r.match("h", path, "GET"); rt != nil {
				got = rt.ID
			}
			if got != want {
				t.Fatalf("seed %d: path %q: got %s, want %s", seed, path, got, want)
			}
		}
	}
}

func search(rs []*config.Route, path string) string {
	best, rank := "none", [3]int{-1}
	for _, r := range rs {
		uri := r.URIs[0]
		now := [3]int{1 << 20, r.Priority}
		if prefix, ok := strings.CutSuffix(uri, "*"); ok {
			now[0] = len(prefix)
			if !strings.HasPrefix(path, prefix) {
				continue
			}
		} else if uri != path {
			continue
		}
		if now[0] > rank[0] || now[0] == rank[0] && now[1] > rank[1] {
			best, rank = r.ID, now
		}
	}
	return best
}

// manyRoutes is a router of n routes and a path for each.
func manyRoutes(t testing.TB, n int) (*router, []string) {
	var rs []*config.Route
	var paths []string
	for i := range n {
		r := &config.Route{ID: fmt.Sprint(i), URIs: []string{fmt.Sprintf("/team-%d/service-%d/v1/*", i%100, i)}}
		paths = append(paths, fmt.Sprintf("/team-%d/service-%d/v1/items/42", i%100, i))
		if i%3 == 0 {
			r.URIs[0] = paths[i]
		}
		if i%5 == 0 {
			r.Hosts = []string{"gateway.example"}
		}
		rs = append(rs, r)
	}
	r, err := newRouter(routes(rs...))
	if err != nil {
		t.Fatal(err)
	}
	return r, paths
}

func TestManyRoutes(t *testing.T) {
	r, paths := manyRoutes(t, 10_000)
	for i, p := range paths {
		if rt := r.match("gateway.example", p, "GET"); rt == nil || rt.ID != fmt.Sprint(i) {
			t.Fatalf("%s: got %v, want route %d", p, rt, i)
		}
	}
	if n := testing.AllocsPerRun(100, func() { r.match("gateway.example", paths[7], "GET") }); n != 0 {
		t.Errorf("%v allocations a look-up", n)
	}
}

// TestNoSpellingEscapesALimit: another spelling of a limited path is the limited route's.
func TestNoSpellingEscapesALimit(t *testing.T) {
	c := oneRoute()
	c.Routes[0].URIs = []string{"/api/*"}
	c.Routes[0].KeyAuth = &config.KeyAuth{Header: "apikey"}
	c.Routes = append(c.Routes, &config.Route{ID: "open", URIs: []string{"/*"}})
	w := serve(t, newScript(), c)
	for _, path := range []string{"/api/x", "//api/x", "/./api/x", "/a/../api/x", "/%61pi/x", "/a/..%2fapi/x", "/api%2Fx"} {
		if r := w.get(path); r.code != 401 {
			t.Errorf("%s: got %d, want the protected route's 401", path, r.code)
		}
	}
	if r := w.get("/other"); r.code != 200 {
		t.Errorf("got %d", r.code)
	}
}

// TestTargetsWithoutPath: a target that has no path of its own is refused, for what it
// holds would be forwarded and read as another one.
func TestTargetsWithoutPath(t *testing.T) {
	w := serve(t, nil, oneRoute())
	for line, want := range map[string]int{
		"GET a:http://h/api/x": 400, "GET http:api": 400, "GET javascript:alert(1)": 400, "GET *": 400,
		"OPTIONS *": 200, "GET http://h": 200, "GET http://h/api/x?a:b": 200,
	} {
		if got := w.raw(line + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"); got != want {
			t.Errorf("%s: got %d, want %d", line, got, want)
		}
	}
	if got := w.passed.Load(); got != 2 { // net/http answers OPTIONS * at the upstream itself
		t.Errorf("%d requests passed, want 2", got)
	}
}
