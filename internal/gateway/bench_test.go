//go:build unix

package gateway

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/config"
	"github.com/escapement-io/escapement/memstore"
)

// BenchmarkHTTP compares the gateway with what it is made of, over real sockets and in
// one run: a bare ReverseProxy with the same buffer pool and transport, and for refusals a
// net/http handler that answers 429. Read it as ratios:
//
//	go test ./internal/gateway -run '^$' -bench HTTP -count 6 -benchtime 20000x
func BenchmarkHTTP(b *testing.B) {
	body := strings.Repeat("x", 128)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
	b.Cleanup(up.Close)
	target, _ := url.Parse(up.URL)
	bare := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.SetXForwarded()
		},
		Transport:  newTransport(link{scheme: "http", connect: time.Minute, send: time.Minute, read: time.Minute}),
		BufferPool: &buffers,
	}
	limit := func(count int64) *config.Limit {
		return native(escapement.Limit{Name: "l", Algorithm: escapement.TokenBucket, Rate: escapement.Rate{Count: count, Per: time.Hour}}, key("remote_addr"))
	}
	refused := newRefusal(limit(1)).body
	mute := limit(1)
	mute.Headers = config.Headers{Style: "none"}
	deny := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) })
	same := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", problemType)
		h.Set("Retry-After", "3600")
		h.Set("Ratelimit-Policy", `"l";q=1;w=3600`)
		h.Set("Ratelimit", `"l";r=0;t=3600`)
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write(refused)
	})
	for _, c := range []struct {
		name    string
		handler func(b *testing.B) http.Handler
		code    int
	}{
		{"pass/bare", func(*testing.B) http.Handler { return bare }, 200},
		{"pass/gateway/nolimit", func(b *testing.B) http.Handler { return benchGateway(b, up.URL) }, 200},
		{"pass/gateway/limit", func(b *testing.B) http.Handler { return benchGateway(b, up.URL, limit(1_000_000_000)) }, 200},
		{"refuse/nethttp/fields", func(*testing.B) http.Handler { return same }, 429},
		{"refuse/nethttp/bare", func(*testing.B) http.Handler { return deny }, 429},
		{"refuse/gateway/fields", func(b *testing.B) http.Handler { return benchGateway(b, up.URL, limit(1)) }, 429},
		{"refuse/gateway/bare", func(b *testing.B) http.Handler { return benchGateway(b, up.URL, mute) }, 429},
	} {
		b.Run(c.name, func(b *testing.B) { load(b, c.handler(b), c.code) })
	}
}

// benchGateway is a gateway that listens nowhere.
func benchGateway(b *testing.B, up string, limits ...*config.Limit) *Gateway {
	c := oneRoute(limits...)
	c.Routes[0].Limits = limits[:min(1, len(limits))]
	c.Routes[0].Upstream = toNode(up)
	c.Listen = "127.0.0.1:0"
	store := memstore.New()
	g, err := New(c, store, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	g.listener.Close()
	b.Cleanup(func() {
		g.current.Load().retire(nil)
		store.Close()
	})
	return g
}

// load sends b.N requests over a few kept connections with as little client as there is.
func load(b *testing.B, h http.Handler, code int) {
	s := httptest.NewServer(h)
	defer s.Close()
	want := fmt.Appendf(nil, "HTTP/1.1 %d ", code)
	const conns = 16
	var left atomic.Int64
	left.Store(1)
	if err := requests(s.Listener.Addr().String(), &left, []byte("HTTP/1.1 ")); err != nil { // a limit of 1 admits it
		b.Fatal(err)
	}
	left.Store(int64(b.N))
	done := make(chan error, conns)
	b.ReportAllocs()
	b.ResetTimer()
	before := cpu()
	for range conns {
		go func() { done <- requests(s.Listener.Addr().String(), &left, want) }()
	}
	for range conns {
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
	b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
}

// cpu is the processor time of this process. Unlike elapsed time it hardly depends on
// what else the machine does.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func requests(addr string, left *atomic.Int64, want []byte) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	request := []byte("GET /a/b HTTP/1.1\r\nHost: gateway.example\r\nUser-Agent: bench\r\n\r\n")
	buf := make([]byte, 4096)
	for left.Add(-1) >= 0 {
		if _, err := conn.Write(request); err != nil {
			return err
		}
		if err := answer(conn, buf, want); err != nil {
			return err
		}
	}
	return nil
}

// answer reads one response whose length the header says.
func answer(conn net.Conn, buf, want []byte) error {
	n := 0
	for {
		m, err := conn.Read(buf[n:])
		if err != nil {
			return err
		}
		n += m
		head, body, ok := strings.Cut(string(buf[:n]), "\r\n\r\n")
		if !ok {
			continue
		}
		_, after, ok := strings.Cut(head, "Content-Length: ")
		length := 0
		for i := 0; ok && i < len(after) && after[i] >= '0' && after[i] <= '9'; i++ {
			length = length*10 + int(after[i]-'0')
		}
		if len(body) >= length {
			if !bytes.HasPrefix(buf, want) {
				return fmt.Errorf("want %s, got %.40s", want, buf)
			}
			return nil
		}
	}
}

// BenchmarkRouter looks up paths among 10,000 routes.
func BenchmarkRouter(b *testing.B) {
	r, paths := manyRoutes(b, 10_000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if r.match("gateway.example", paths[i%len(paths)], "GET") == nil {
			b.Fatal("no route")
		}
	}
}

// BenchmarkDecide is what the gateway itself does for a request that it refuses: all of
// it but net/http's part.
func BenchmarkDecide(b *testing.B) {
	for name, style := range map[string]string{"fields": "ietf", "bare": "none"} {
		b.Run(name, func(b *testing.B) {
			l := native(escapement.Limit{Name: "l", Algorithm: escapement.TokenBucket, Rate: escapement.Rate{Count: 1, Per: time.Hour}}, key("remote_addr"))
			l.Headers.Style = style
			h := benchGateway(b, "http://127.0.0.1:1", l)
			r := httptest.NewRequest("GET", "/a/b", nil)
			w := &nowhere{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				h.ServeHTTP(w, r)
			}
		})
	}
}

// nowhere takes an answer and forgets it.
type nowhere struct{ header http.Header }

func (w *nowhere) Header() http.Header         { return w.header }
func (w *nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (w *nowhere) WriteHeader(int)             {}
