package gateway

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/config"
	"github.com/escapement-io/escapement/internal/policy"
	"github.com/escapement-io/escapement/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// boundary is an instant at which windows of every whole number of seconds up to a day
// begin.
const boundary = algo.Store(20_000 * 24 * 3600 * 1_000_000)

// script is a store's clock that moves when the test says so.
type script struct{ now atomic.Int64 }

func newScript() *script {
	s := &script{}
	s.now.Store(int64(boundary))
	return s
}

func (s *script) Now() algo.Store         { return algo.Store(s.now.Load()) }
func (s *script) advance(d time.Duration) { s.now.Add(int64(d / time.Microsecond)) }

// loopback is every address a test's client can have.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func key(names ...string) policy.Key {
	var k policy.Key
	for _, n := range names {
		k.Parts = append(k.Parts, policy.Variable(n))
	}
	return k
}

func template(t testing.TB, text string) *policy.Template {
	t.Helper()
	p, err := policy.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

// native is a limit of the native form.
func native(l escapement.Limit, k policy.Key) *config.Limit {
	return &config.Limit{
		Limit: l, Key: k, Rejected: config.Rejected{Code: 429},
		Headers: config.Headers{Style: "ietf", RetryAfter: true},
	}
}

// compat is a limit as limit-count would have it.
func compat(l escapement.Limit, k policy.Key) *config.Limit {
	return &config.Limit{
		Limit: l, Key: k, Rejected: config.Rejected{Code: 503}, Compatible: true,
		Headers: config.Headers{
			Style: "compat", Limit: "X-RateLimit-Limit", Remaining: "X-RateLimit-Remaining", Reset: "X-RateLimit-Reset",
		},
	}
}

// world is a gateway with an upstream that counts.
type world struct {
	t       testing.TB
	g       *Gateway
	conf    *config.Config
	base    string // http://host:port of the gateway
	passed  atomic.Int64
	handler atomic.Pointer[http.HandlerFunc]
	clock   *script
	client  *http.Client
	cancel  context.CancelFunc
	ended   chan error
}

// serve starts a gateway whose routes lead to one counting upstream, unless they have
// their own. A nil clock is the real one.
func serve(t testing.TB, clock *script, c *config.Config, opts ...Option) *world {
	t.Helper()
	var o []memstore.Option
	if clock != nil {
		o = append(o, memstore.WithClock(clock))
	}
	w := serveWith(t, memstore.New(o...), c, opts...)
	w.clock = clock
	return w
}

// serveWith is serve on a store that the gateway will close.
func serveWith(t testing.TB, store *memstore.Store, c *config.Config, opts ...Option) *world {
	t.Helper()
	w := &world{t: t, conf: c}
	ok := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "ok") })
	w.handler.Store(&ok)
	up := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.passed.Add(1)
		(*w.handler.Load())(rw, r)
	}))
	t.Cleanup(up.Close)
	for _, rt := range c.Routes {
		if rt.Upstream == nil {
			rt.Upstream = toNode(up.URL)
		}
	}
	w.start(store, opts)
	return w
}

func toNode(url string) *config.Upstream {
	return &config.Upstream{Nodes: []config.Node{{Addr: strings.TrimPrefix(url, "http://"), Weight: 1}}}
}

func (w *world) start(store *memstore.Store, opts []Option) {
	w.t.Helper()
	if w.conf.Listen == "" {
		w.conf.Listen, w.conf.Admin = "127.0.0.1:0", "127.0.0.1:0"
	}
	g, err := New(w.conf, store, slog.New(slog.NewTextHandler(w.t.Output(), nil)), opts...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.g, w.base = g, "http://"+g.Addr().String()
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	w.client = &http.Client{Transport: transport, Timeout: 30 * time.Second}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel, w.ended = cancel, make(chan error, 1)
	go func() { w.ended <- g.Run(ctx) }()
	w.t.Cleanup(func() {
		transport.CloseIdleConnections()
		w.stop()
	})
}

func (w *world) stop() {
	w.t.Helper()
	w.cancel()
	select {
	case err := <-w.ended:
		w.ended <- nil
		if err != nil {
			w.t.Errorf("run: %v", err)
		}
	case <-time.After(30 * time.Second):
		w.t.Error("the gateway did not stop")
	}
}

// reply is a response, read.
type reply struct {
	code   int
	header http.Header
	body   string
}

// get sends a request with header fields given as "Name: value".
func (w *world) get(path string, fields ...string) reply {
	w.t.Helper()
	r, err := http.NewRequest("GET", w.base+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.do(r, fields...)
}

func (w *world) do(r *http.Request, fields ...string) reply {
	w.t.Helper()
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	res, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, string(body)}
}

// raw sends bytes and gives the status of the answer to them.
func (w *world) raw(request string) int {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.g.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, request) // the answer may come before the end
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

func (w *world) admin(path string) reply {
	w.t.Helper()
	res, err := w.client.Get("http://" + w.g.AdminAddr().String() + path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, string(body)}
}

// codes counts the answers to n requests.
func (w *world) codes(n int, path string, fields ...string) map[int]int {
	w.t.Helper()
	m := map[int]int{}
	for range n {
		m[w.get(path, fields...).code]++
	}
	return m
}

// oneRoute is a configuration of one route with limits.
func oneRoute(limits ...*config.Limit) *config.Config {
	return &config.Config{
		Limits: limits, Consumers: config.Consumers{Header: "X-Consumer", Trusted: loopback},
		Routes: []*config.Route{{ID: "r1", URIs: []string{"/*"}, Limits: limits}},
	}
}
