package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/config"
)

// next is the configuration of w with other limits.
func (w *world) next(limits ...*config.Limit) *config.Config {
	c := oneRoute(limits...)
	c.Listen, c.Admin = w.conf.Listen, w.conf.Admin
	c.Routes[0].Upstream = w.conf.Routes[0].Upstream
	return c
}

func hourly(name string, count int64) *config.Limit {
	return native(escapement.Limit{Name: name, Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: count, Per: time.Hour}}, key("remote_addr"))
}

// TestReloadKeepsCounters: unchanged limits go on where they were, whatever else changes
// beside them; changed ones take over what was used; removed ones no longer refuse.
func TestReloadKeepsCounters(t *testing.T) {
	w := serve(t, newScript(), oneRoute(hourly("a", 5)))
	if m := w.codes(3, "/"); m[200] != 3 {
		t.Fatalf("got %v", m)
	}
	plan := w.g.current.Load().limits[0].plan
	same := hourly("a", 5)
	same.Rejected.Msg, same.Zone = "other words", time.UTC
	if err := w.g.Reload(w.next(hourly("b", 100), same)); err != nil {
		t.Fatal(err)
	}
	if p := w.g.current.Load().limits[1].plan; p != plan {
		t.Error("an unchanged limit was compiled anew")
	}
	if m := w.codes(4, "/"); m[200] != 2 || m[429] != 2 {
		t.Errorf("unchanged: got %v, want the 2 that were left", m)
	}
	if err := w.g.Reload(w.next(hourly("a", 8))); err != nil {
		t.Fatal(err)
	}
	if m := w.codes(5, "/"); m[200] != 3 || m[429] != 2 {
		t.Errorf("raised from 5 to 8: got %v, want 3 more", m)
	}
	if s := w.g.Status().Limits[0]; s.Decided != 12 || s.Refused != 4 {
		t.Errorf("counts begin anew: %+v", s)
	}
	if err := w.g.Reload(w.next()); err != nil {
		t.Fatal(err)
	}
	if m := w.codes(3, "/"); m[200] != 3 {
		t.Errorf("removed: got %v", m)
	}
	if st := w.g.Status(); st.ReloadsOK != 3 || st.ReloadsFailed != 0 {
		t.Errorf("got %d and %d reloads", st.ReloadsOK, st.ReloadsFailed)
	}
}

// TestFailedReload changes nothing and loses no counter.
func TestFailedReload(t *testing.T) {
	w := serve(t, newScript(), oneRoute(hourly("a", 5)))
	w.codes(3, "/")
	before := w.g.current.Load()
	bad := func(change func(c *config.Config)) *config.Config {
		c := w.next(hourly("a", 1))
		change(c)
		return c
	}
	for what, c := range map[string]*config.Config{
		"count":    bad(func(c *config.Config) { c.Limits[0].Rate.Count = 0 }),
		"style":    bad(func(c *config.Config) { c.Limits[0].Headers.Style = "nope" }),
		"upstream": bad(func(c *config.Config) { c.Routes[0].Upstream = nil }),
		"scheme": bad(func(c *config.Config) {
			c.Routes[0].Upstream = &config.Upstream{Scheme: "ftp", Nodes: []config.Node{{Addr: "x:1", Weight: 1}}}
		}),
		"balance": bad(func(c *config.Config) {
			c.Routes[0].Upstream = &config.Upstream{Balance: "magic", Nodes: []config.Node{{Addr: "x:1", Weight: 1}}}
		}),
		"node":    bad(func(c *config.Config) { c.Routes[0].Upstream = &config.Upstream{Nodes: []config.Node{{Addr: "x:1"}}} }),
		"host":    bad(func(c *config.Config) { c.Routes[0].Hosts = []string{"a.*"} }),
		"limits":  bad(func(c *config.Config) { c.Routes[0].Limits = make([]*config.Limit, 17) }),
		"restart": bad(func(c *config.Config) { c.Listen = "127.0.0.1:1" }),
		"tls":     bad(func(c *config.Config) { c.TLS = &config.TLS{Cert: "none", Key: "none"} }),
	} {
		err := w.g.Reload(c)
		if err == nil {
			t.Errorf("%s: accepted", what)
		} else if what == "restart" && !strings.Contains(err.Error(), "restart") {
			t.Errorf("%s: got %v", what, err)
		}
		if w.g.current.Load() != before {
			t.Fatalf("%s: the snapshot changed", what)
		}
	}
	if m := w.codes(5, "/"); m[200] != 2 || m[429] != 3 {
		t.Errorf("got %v, want the 2 that were left", m)
	}
	two := bad(func(c *config.Config) {
		c.Limits[0].Rate.Count = 0
		c.Routes[0].Upstream = nil
	})
	if err := w.g.Reload(two); err == nil || !strings.Contains(err.Error(), "limit a") || !strings.Contains(err.Error(), "route r1") {
		t.Errorf("got %v, want both problems", err)
	}
}

// TestReloadUnderLoad reloads while requests run: none fails, and exactly the limit passes.
func TestReloadUnderLoad(t *testing.T) {
	w := serve(t, newScript(), oneRoute(hourly("a", 300)))
	var mu sync.Mutex
	got := map[int]int{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			m := w.codes(100, "/")
			mu.Lock()
			defer mu.Unlock()
			for c, n := range m {
				got[c] += n
			}
		})
	}
	for i := range 50 {
		if err := w.g.Reload(w.next(hourly("a", 300), hourly(fmt.Sprintf("b%d", i%3), 1000+int64(i)))); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	if want := map[int]int{200: 300, 429: 500}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestRequestsEndUnderTheirSnapshot: a request that began before a reload ends as it began.
func TestRequestsEndUnderTheirSnapshot(t *testing.T) {
	w := serve(t, newScript(), oneRoute(hourly("a", 5)))
	entered, release := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		fmt.Fprint(rw, "old upstream")
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
		got <- string(b) + " " + res.Header.Get("RateLimit")
	}()
	<-entered
	c := w.next(hourly("other", 1))
	c.Routes[0].URIs = []string{"/elsewhere"}
	if err := w.g.Reload(c); err != nil {
		t.Fatal(err)
	}
	close(release)
	if g := <-got; g != `old upstream "a";r=4;t=3600` {
		t.Errorf("got %s", g)
	}
	if r := w.get("/"); r.code != 404 {
		t.Errorf("got %d, want the new configuration's 404", r.code)
	}
}

// TestWatch: a file that is rewritten, replaced or reached through a switched link is
// loaded again; one with errors changes nothing; SIGHUP always loads.
func TestWatch(t *testing.T) {
	w := serve(t, newScript(), oneRoute(hourly("a", 100)))
	dir := t.TempDir()
	file := filepath.Join(dir, "gateway.yaml")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "first")
	var loads atomic.Int64
	load := func() (*config.Config, []config.Finding) {
		loads.Add(1)
		b, err := os.ReadFile(file)
		if err != nil || string(b) == "bad" {
			return nil, []config.Finding{{File: file, Line: 1, Col: 1, Severity: config.Error, Problem: "it is bad"}}
		}
		return w.next(hourly("limit-"+string(b), 100)), nil
	}
	end := func() {}
	watch := func() {
		end()
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			w.g.Watch(ctx, []string{file}, load)
			close(ended)
		}()
		end = func() {
			cancel()
			<-ended
		}
	}
	watch()
	defer func() { end() }()
	enforced := func(name string) {
		t.Helper()
		eventually(t, func() bool { return w.g.Status().Limits[0].Name == "limit-"+name })
	}
	enforced("first") // what changed before the watch began

	write(file, "second")
	enforced("second")

	write(file+".tmp", "third")
	if err := os.Rename(file+".tmp", file); err != nil {
		t.Fatal(err)
	}
	enforced("third")

	failed := w.g.Status().ReloadsFailed
	write(file, "bad")
	eventually(t, func() bool { return w.g.Status().ReloadsFailed > failed })
	enforced("third")

	// As Kubernetes mounts a ConfigMap: the file is a link through ..data.
	for _, v := range []string{"v1", "v2"} {
		if err := os.Mkdir(filepath.Join(dir, v), 0o700); err != nil {
			t.Fatal(err)
		}
		write(filepath.Join(dir, v, "gateway.yaml"), v)
	}
	link := func(target, name string) {
		t.Helper()
		if err := errors.Join(os.Symlink(target, name+".new"), os.Rename(name+".new", name)); err != nil {
			t.Fatal(err)
		}
	}
	link("v1", filepath.Join(dir, "..data"))
	link(filepath.Join("..data", "gateway.yaml"), file)
	enforced("v1")
	link("v2", filepath.Join(dir, "..data"))
	enforced("v2")

	// As releases are switched: a folder above is the link, and nothing in it changes.
	link("v1", filepath.Join(dir, "current"))
	file = filepath.Join(dir, "current", "gateway.yaml")
	watch()
	enforced("v1")
	link("v2", filepath.Join(dir, "current"))
	enforced("v2")

	// A folder that is gone for a while takes its watch with it.
	failed = w.g.Status().ReloadsFailed
	if err := os.RemoveAll(filepath.Join(dir, "v2")); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return w.g.Status().ReloadsFailed > failed })
	if err := os.Mkdir(filepath.Join(dir, "v2"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(file, "back")
	enforced("back")

	before := loads.Load()
	write(filepath.Join(dir, "unrelated"), "x")
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return loads.Load() > before })
}
