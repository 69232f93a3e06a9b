package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/memstore"
)

func TestAdmin(t *testing.T) {
	l := native(escapement.Limit{Name: "l", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 1000, Per: 10 * time.Second}, Headroom: 20}, key("consumer_name", "uri"))
	extra := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { text(w, 200, "metrics") })
	w := serve(t, newScript(), oneRoute(l), WithAdmin("GET /metrics", extra))
	w.codes(3, "/")
	if r := w.admin("/healthz"); r.code != 200 {
		t.Errorf("healthz: got %d", r.code)
	}
	if r := w.admin("/readyz"); r.code != 200 {
		t.Errorf("readyz: got %d", r.code)
	}
	if r := w.admin("/metrics"); r.body != "metrics" {
		t.Errorf("metrics: got %d %s", r.code, r.body)
	}
	if r := w.admin("/nothing"); r.code != 404 {
		t.Errorf("got %d", r.code)
	}
	var st Status
	if err := json.Unmarshal([]byte(w.admin("/v1/limits").body), &st); err != nil {
		t.Fatal(err)
	}
	want := LimitStatus{Name: "l", Algorithm: "fixed_window", Count: 1000, PerMs: 10_000, Align: "epoch", Enforced: 800, Key: "[consumer_name, uri]", OnFailure: "deny", Decided: 3,
		Basis: "exact", PerSecond: 80, Bound: new(int64), Bases: []BasisStatus{{Basis: "exact", Decided: 3}}, AdmittedUnits: 3}
	if diff := cmp.Diff([]LimitStatus{want}, st.Limits); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	if st.Memory == nil || st.Memory.Keys != 1 || st.Memory.MaxKeys != memstore.DefaultMaxKeys {
		t.Errorf("got %+v", st.Memory)
	}
	if r := w.admin("/config"); r.code != 200 || !strings.Contains(r.body, `"headroom": 20`) {
		t.Errorf("config: got %d %s", r.code, r.body)
	}
	res, err := w.client.Post("http://"+w.g.AdminAddr().String()+"/limits", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("the admin listener takes a POST: got %d", res.StatusCode)
	}
}

// TestShutdown: a request in flight ends, new ones are not accepted, what outlasts the
// grace period is cut off, the store is closed last.
func TestShutdown(t *testing.T) {
	w := serve(t, nil, oneRoute())
	entered, release := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		fmt.Fprint(rw, "finished")
	})
	w.handler.Store(&h)
	got := make(chan string)
	go func() {
		res, err := w.client.Get(w.base + "/")
		if err != nil {
			got <- err.Error()
			return
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		got <- string(b)
	}()
	<-entered
	w.cancel()
	eventually(t, func() bool {
		conn, err := net.Dial("tcp", w.g.Addr().String())
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	close(release)
	if g := <-got; g != "finished" {
		t.Errorf("got %s", g)
	}
	w.stop()
}

func TestShutdownCutsOff(t *testing.T) {
	w := serve(t, nil, oneRoute(), WithGrace(50*time.Millisecond))
	entered := make(chan struct{}, 2)
	h := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ws" {
			conn, buf, err := rw.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			entered <- struct{}{}
			_, _ = io.Copy(conn, buf)
			return
		}
		entered <- struct{}{}
		<-r.Context().Done()
	})
	w.handler.Store(&h)
	var conns []net.Conn
	for _, request := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"} {
		conn, err := net.Dial("tcp", w.g.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, request)
		conns = append(conns, conn)
		<-entered
	}
	w.stop()
	for i, conn := range conns {
		if b, _ := io.ReadAll(conn); strings.Contains(string(b), "200 OK") {
			t.Errorf("connection %d: got %q", i, b)
		}
	}
}

// TestNewErrors: what is wrong is said at once, and nothing stays open.
func TestNewErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	store := memstore.New()
	defer store.Close()
	c := oneRoute()
	c.Routes[0].Upstream = toNode("http://127.0.0.1:1")
	c.Listen = taken.Addr().String()
	if _, err := New(c, store, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "listen") {
		t.Errorf("got %v", err)
	}
	c.Listen, c.Admin = "127.0.0.1:0", taken.Addr().String()
	if _, err := New(c, store, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "admin") {
		t.Errorf("got %v", err)
	}
}

// TestDemo goes through a gateway to the demo upstream.
func TestDemo(t *testing.T) {
	w := serve(t, nil, oneRoute())
	h := Demo().ServeHTTP
	f := http.HandlerFunc(h)
	w.handler.Store(&f)
	w.get("/one")
	r := w.get("/two?x", "X-Consumer: alice")
	if want := `{"method":"GET","path":"/two","consumer":"alice","for":"127.0.0.1","count":2}` + "\n"; r.body != want {
		t.Errorf("got %s, want %s", r.body, want)
	}
}

// TestMaxConns: one connection more than there may be waits until another ends.
func TestMaxConns(t *testing.T) {
	w := serve(t, nil, oneRoute(), WithMaxConns(1))
	first, err := net.Dial("tcp", w.g.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(conn net.Conn) chan string {
		got := make(chan string, 1)
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		go func() {
			b, _ := io.ReadAll(conn)
			got <- string(b)
		}()
		return got
	}
	fmt.Fprint(first, "GET /")
	second, err := net.Dial("tcp", w.g.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	waiting := ask(second)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	select {
	case got := <-waiting:
		t.Errorf("the second connection was served beside the first: %q", got)
	case <-ctx.Done():
	}
	first.Close()
	if got := <-waiting; !strings.Contains(got, "200 OK") {
		t.Errorf("got %q", got)
	}
}
