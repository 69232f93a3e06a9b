package gateway

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/config"
)

// TestStreaming: each piece of a response passes when it is written, not at the end.
func TestStreaming(t *testing.T) {
	w := serve(t, nil, oneRoute())
	next := make(chan struct{})
	h := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(rw, "data: %d\n", i)
			rw.(http.Flusher).Flush()
			<-next
		}
	})
	w.handler.Store(&h)
	res, err := w.client.Get(w.base + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for i := range 3 {
		if line, err := lines.ReadString('\n'); line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("got %q, %v", line, err)
		}
		next <- struct{}{}
	}
	if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
		t.Errorf("got %q, %v", rest, err)
	}
}

// TestBodiesAndTrailers: a chunked request and its trailers arrive, and so do the
// response's.
func TestBodiesAndTrailers(t *testing.T) {
	w := serve(t, nil, oneRoute())
	h := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		rw.Header().Set("Trailer", "X-Sum")
		fmt.Fprintf(rw, "%d %s %s", n, r.Trailer.Get("X-Checksum"), strings.Join(r.TransferEncoding, ","))
		rw.Header().Set("X-Sum", "after")
	})
	w.handler.Store(&h)
	r, _ := http.NewRequest("POST", w.base+"/", io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), strings.NewReader("x")))
	r.Trailer = http.Header{"X-Checksum": {"abc"}}
	res, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	if got, want := string(body), "1048577 abc chunked"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := res.Trailer.Get("X-Sum"); got != "after" {
		t.Errorf("trailer: got %q", got)
	}
}

// TestUpgrade speaks over an upgraded connection, both ways, under a
// limit whose fields are on the handshake.
func TestUpgrade(t *testing.T) {
	l := native(escapement.Limit{Name: "l", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 1, Per: time.Hour}}, key("remote_addr"))
	w := serve(t, newScript(), oneRoute(l))
	h := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" {
			t.Errorf("Upgrade: got %q", r.Header.Get("Upgrade"))
		}
		conn, buf, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(conn, buf)
	})
	w.handler.Store(&h)
	dial := func() (net.Conn, *http.Response, *bufio.Reader) {
		conn, err := net.Dial("tcp", w.g.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n")
		in := bufio.NewReader(conn)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		return conn, res, in
	}
	conn, res, in := dial()
	defer conn.Close()
	if res.StatusCode != 101 || res.Header.Get("RateLimit") == "" {
		t.Fatalf("got %d, RateLimit %q", res.StatusCode, res.Header.Get("RateLimit"))
	}
	for i := range 100 {
		fmt.Fprintf(conn, "message %d\n", i)
		if line, err := in.ReadString('\n'); line != fmt.Sprintf("message %d\n", i) {
			t.Fatalf("got %q, %v", line, err)
		}
	}
	second, res, _ := dial()
	defer second.Close()
	if res.StatusCode != 429 {
		t.Errorf("second handshake: got %d", res.StatusCode)
	}
}

// TestOnlyWebSocket: a change to a protocol in which requests would pass unlimited is not
// passed on, and the request is answered without.
func TestOnlyWebSocket(t *testing.T) {
	w := serve(t, nil, oneRoute())
	w.echo(func(r *http.Request) string {
		return fmt.Sprint(r.Header["Upgrade"], r.Header["Connection"], r.Header["Http2-Settings"])
	})
	for _, fields := range [][]string{
		{"Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"},
		{"Connection: Upgrade", "Upgrade: TLS/1.0, HTTP/1.1"},
		{"Connection: Upgrade", "Upgrade: websocket, h2c"},
		{"Connection: Upgrade", "Upgrade: websocket", "Upgrade: h2c"},
		{"Connection: Upgrade", "Upgrade: h2c", "Upgrade: websocket"},
	} {
		if r := w.get("/", fields...); r.code != 200 || r.body != "[] [] []" {
			t.Errorf("%q: got %d %s", fields, r.code, r.body)
		}
	}
}

// TestUpstreamDown: 502 after the nodes there are, with the limit charged once.
func TestUpstreamDown(t *testing.T) {
	l := native(escapement.Limit{Name: "l", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 100, Per: time.Hour}}, key("remote_addr"))
	c := oneRoute(l)
	c.Routes[0].Upstream = &config.Upstream{Nodes: []config.Node{{Addr: closedPort(t), Weight: 1}, {Addr: closedPort(t), Weight: 1}}, Retries: 5}
	w := serve(t, newScript(), c)
	r := w.get("/")
	if r.code != 502 || !strings.Contains(r.body, "error_msg") || r.header.Get("RateLimit") != `"l";r=99;t=3600` {
		t.Errorf("got %d %s %s", r.code, r.body, r.header.Get("RateLimit"))
	}
}

// closedPort is an address that nobody listens on.
func closedPort(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestRetry: a request goes on to the next node if no connection could be made, its body
// unharmed and whatever its method, and not if a node may have seen it.
func TestRetry(t *testing.T) {
	live := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(rw, "%s %s", r.Method, b)
	}))
	defer live.Close()
	c := oneRoute()
	c.Routes[0].Upstream = toNode(live.URL)
	up := c.Routes[0].Upstream
	up.Nodes = append(up.Nodes, config.Node{Addr: closedPort(t), Weight: 1}, config.Node{Addr: closedPort(t), Weight: 1})
	up.Retries = 2
	w := serve(t, nil, c)
	for range 9 {
		r, _ := http.NewRequest("POST", w.base+"/", strings.NewReader("payload"))
		if got := w.do(r); got.code != 200 || got.body != "POST payload" {
			t.Errorf("got %d %q", got.code, got.body)
		}
	}

	var seen atomic.Int64
	cut := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		conn, _, _ := rw.(http.Hijacker).Hijack()
		conn.Close()
	}))
	defer cut.Close()
	c = oneRoute()
	c.Routes[0].Upstream = toNode(cut.URL)
	c.Routes[0].Upstream.Nodes = append(c.Routes[0].Upstream.Nodes, config.Node{Addr: strings.TrimPrefix(cut.URL, "http://"), Weight: 1})
	c.Routes[0].Upstream.Retries = 1
	w = serve(t, nil, c)
	r, _ := http.NewRequest("POST", w.base+"/", strings.NewReader("payload"))
	if got := w.do(r); got.code != 502 {
		t.Errorf("got %d", got.code)
	}
	if n := seen.Load(); n != 1 {
		t.Errorf("the upstream saw %d requests, want 1", n)
	}
}

// TestStatusThatIsNone: a status that cannot be written is the upstream's mistake.
func TestStatusThatIsNone(t *testing.T) {
	w := serve(t, nil, oneRoute())
	for _, status := range []string{"000", "099"} {
		h := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			conn, _, err := rw.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprintf(conn, "HTTP/1.1 %s Odd\r\nContent-Length: 2\r\n\r\nok", status)
		})
		w.handler.Store(&h)
		if got := w.get("/"); got.code != 502 {
			t.Errorf("%s: got %d", status, got.code)
		}
	}
}

// TestBodyThatIsBroken: a body that cannot be read is the client's mistake.
func TestBodyThatIsBroken(t *testing.T) {
	w := serve(t, nil, oneRoute())
	w.echo(func(r *http.Request) string {
		_, _ = io.Copy(io.Discard, r.Body)
		return "read"
	})
	for _, body := range []string{"x\r\n", "1;" + strings.Repeat("e", 5000) + "\r\na\r\n0\r\n\r\n", "1\r\nab\r\n0\r\n\r\n"} {
		if got := w.raw("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + body); got != 400 {
			t.Errorf("%.20q: got %d", body, got)
		}
	}
}

// TestUpstreamClosesMidway: the client sees a broken response, not a complete short one.
func TestUpstreamClosesMidway(t *testing.T) {
	w := serve(t, nil, oneRoute())
	for _, length := range []string{"100", ""} {
		h := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			if length != "" {
				rw.Header().Set("Content-Length", length)
			}
			fmt.Fprint(rw, "half")
			rw.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		})
		w.handler.Store(&h)
		res, err := w.client.Get(w.base + "/")
		if err != nil {
			continue // broken before the first byte was passed on
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err == nil || !strings.HasPrefix("half", string(b)) {
			t.Errorf("length %q: got %q, %v, want an error", length, b, err)
		}
	}
	w.echo(func(*http.Request) string { return "fine" })
	if r := w.get("/"); r.body != "fine" {
		t.Errorf("afterwards: got %d %s", r.code, r.body)
	}
}

// TestUpstreamSlow: 504 if no header comes, a broken response if the body stalls.
func TestUpstreamSlow(t *testing.T) {
	c := oneRoute()
	release := make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			fmt.Fprint(rw, "half")
			rw.(http.Flusher).Flush()
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer up.Close()
	defer close(release)
	c.Routes[0].Upstream = toNode(up.URL)
	c.Routes[0].Upstream.Read = 50 * time.Millisecond
	w := serve(t, nil, c)
	if r := w.get("/"); r.code != 504 || !strings.Contains(r.body, "error_msg") {
		t.Errorf("got %d %s", r.code, r.body)
	}
	res, err := w.client.Get(w.base + "/body")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err == nil || string(b) != "half" {
		t.Errorf("got %q, %v", b, err)
	}
}

// TestHostAndPath: pass_host, and the path and query exactly as the client sent them, but
// for dot segments, which are resolved.
func TestHostAndPath(t *testing.T) {
	w := serve(t, nil, oneRoute())
	up := w.conf.Routes[0].Upstream
	for _, test := range []struct{ pass, host, want string }{
		{"pass", "", "client.example"}, {"node", "", up.Nodes[0].Addr}, {"rewrite", "inner.example", "inner.example"},
	} {
		next := oneRoute()
		next.Listen, next.Admin = w.conf.Listen, w.conf.Admin
		u := *up
		u.PassHost, u.Host = test.pass, test.host
		next.Routes[0].Upstream = &u
		if err := w.g.Reload(next); err != nil {
			t.Fatal(err)
		}
		w.echo(func(r *http.Request) string { return r.Host + " " + r.RequestURI })
		for sent, want := range map[string]string{
			"/a%2Fb//c.d/..e?x=%20&y&x=2": "/a%2Fb//c.d/..e?x=%20&y&x=2",
			"/q?z=1;y&x=%zz&&a=%":         "/q?z=1;y&x=%zz&&a=%",
			"/a/../b%20c?x=%20/../y":      "/b%20c?x=%20/../y",
			"/a/%2e%2e/b/.":               "/b/",
		} {
			if r := w.get(sent, "Host: client.example"); r.body != test.want+" "+want {
				t.Errorf("%s: %s: got %s", test.pass, sent, r.body)
			}
		}
	}
}

// TestOurFieldsWin: what the upstream says of limits of the same names is replaced.
func TestOurFieldsWin(t *testing.T) {
	l := compat(escapement.Limit{Name: "l", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 5, Per: time.Hour}}, key("remote_addr"))
	w := serve(t, newScript(), oneRoute(l))
	h := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Link", "</a>; rel=preload")
		rw.WriteHeader(http.StatusEarlyHints)
		rw.Header().Set("X-RateLimit-Limit", "999")
		rw.WriteHeader(http.StatusTeapot)
	})
	w.handler.Store(&h)
	r := w.get("/")
	if v := r.header.Values("X-RateLimit-Limit"); r.code != 418 || len(v) != 1 || v[0] != "5" {
		t.Errorf("got %d, X-RateLimit-Limit %q", r.code, v)
	}
}
