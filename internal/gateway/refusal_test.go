package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/config"
	"github.com/escapement-io/escapement/internal/policy"
)

func TestNativeRefusal(t *testing.T) {
	a := native(escapement.Limit{Name: "per-client", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 2, Per: 10 * time.Second}}, key("remote_addr"))
	a.Rejected.Msg = "slow down"
	b := native(escapement.Limit{Name: "smooth", Algorithm: escapement.TokenBucket, Rate: escapement.PerSecond(50), Burst: 100, Headroom: 20}, key("remote_addr"))
	w := serve(t, newScript(), oneRoute(a, b))
	w.clock.advance(3_500 * time.Millisecond)
	r := w.get("/")
	if got, want := r.header.Get("RateLimit-Policy"), `"per-client";q=2;w=10, "smooth";q=80;w=2`; got != want {
		t.Errorf("RateLimit-Policy: got %s, want %s", got, want)
	}
	if got, want := r.header.Get("RateLimit"), `"per-client";r=1;t=7, "smooth";r=79;t=1`; got != want {
		t.Errorf("RateLimit: got %s, want %s", got, want)
	}
	w.get("/")
	r = w.get("/")
	if r.code != 429 || r.header.Get("Retry-After") != "7" || r.header.Get("Content-Type") != problemType {
		t.Errorf("got %d, Retry-After %q, %s", r.code, r.header.Get("Retry-After"), r.header.Get("Content-Type"))
	}
	var p problemBody
	if err := json.Unmarshal([]byte(r.body), &p); err != nil || p.Status != 429 || p.Detail != "slow down" || len(p.Violated) != 1 || p.Violated[0] != "per-client" {
		t.Errorf("got %s (%v)", r.body, err)
	}
	w.clock.advance(7 * time.Second)
	if r := w.get("/"); r.code != 200 {
		t.Errorf("after waiting what it was told: got %d", r.code)
	}
}

// TestCompatRefusal holds the fields and bodies of limit-count.
func TestCompatRefusal(t *testing.T) {
	for _, test := range []struct {
		algorithm escapement.Algorithm
		code      int
		msg, body string
	}{
		{escapement.SlidingWindow, 429, "", "{\"error_msg\":\"Too Many Requests\"}\n"},
		{escapement.FixedWindow, 503, `busy "now"`, "{\"error_msg\":\"busy \\\"now\\\"\"}\n"},
	} {
		l := compat(escapement.Limit{Name: "l", Algorithm: test.algorithm, Rate: escapement.Rate{Count: 2, Per: 10 * time.Second}}, key("remote_addr"))
		l.Rejected = config.Rejected{Code: test.code, Msg: test.msg}
		w := serve(t, newScript(), oneRoute(l))
		w.clock.advance(2_345 * time.Millisecond)
		for i, want := range []struct {
			code            int
			remaining, body string
		}{{200, "1", "ok"}, {200, "0", "ok"}, {test.code, "0", test.body}} {
			r := w.get("/")
			if r.code != want.code || r.body != want.body {
				t.Errorf("request %d: got %d %s, want %d %s", i, r.code, r.body, want.code, want.body)
			}
			for name, v := range map[string]string{
				"X-RateLimit-Limit": "2", "X-RateLimit-Remaining": want.remaining, "X-RateLimit-Reset": "7.66",
				"Retry-After": "", "RateLimit": "",
			} {
				if got := r.header.Get(name); got != v {
					t.Errorf("request %d: %s: got %q, want %q", i, name, got, v)
				}
			}
		}
	}
}

func TestDecimals(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", time.Second: "1", 1500 * time.Millisecond: "1.5", 1501 * time.Millisecond: "1.51",
		50 * time.Millisecond: "0.05", time.Microsecond: "0.01", 3600 * time.Second: "3600",
	} {
		if got := decimals(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

// TestRules is limit-count's rules: two windows, a prefix for each one's fields, and a
// rule that applies only where its variables have a value.
func TestRules(t *testing.T) {
	rule := func(n, count, seconds int, k, countText string) *config.Limit {
		p, err := policy.Parse(k)
		if err != nil {
			t.Fatal(err)
		}
		l := compat(escapement.Limit{
			Name: fmt.Sprintf("rule-%d", n), Algorithm: escapement.FixedWindow,
			Rate: escapement.Rate{Count: int64(count), Per: time.Duration(seconds) * time.Second},
		}, policy.Key{Parts: []policy.Template{p}})
		l.SkipUnresolved, l.RuleSet = true, "r1"
		if countText != "" {
			l.Count = template(t, countText)
		}
		l.Headers.Limit = fmt.Sprintf("X-%d-RateLimit-Limit", n)
		l.Headers.Remaining, l.Headers.Reset = fmt.Sprintf("X-%d-RateLimit-Remaining", n), fmt.Sprintf("X-%d-RateLimit-Reset", n)
		return l
	}
	t.Run("two windows", func(t *testing.T) {
		w := serve(t, newScript(), oneRoute(rule(1, 2, 2, "${remote_addr}_2s", ""), rule(2, 3, 5, "${remote_addr}_5s", "")))
		want := []int{200, 200, 503, 200, 503}
		for i, code := range want {
			if i == 3 {
				w.clock.advance(2 * time.Second)
			}
			r := w.get("/")
			if r.code != code {
				t.Errorf("request %d: got %d, want %d", i, r.code, code)
			}
			if i == 0 && (r.header.Get("X-1-RateLimit-Limit") != "2" || r.header.Get("X-2-RateLimit-Remaining") != "2") {
				t.Errorf("got %v", r.header)
			}
		}
	})
	t.Run("none applies", func(t *testing.T) {
		w := serve(t, newScript(), oneRoute(rule(1, 1, 10, "a", "${http_count}"), rule(2, 1, 10, "${http_tenant}", "")))
		if r := w.get("/"); r.code != 500 {
			t.Errorf("got %d, want 500", r.code)
		}
		if m := w.codes(3, "/", "Count: 2"); m[200] != 2 || m[503] != 1 {
			t.Errorf("got %v, want 2 passed by the rule that applies", m)
		}
		if r := w.get("/", "Count: 0", "Tenant: t"); r.code != 500 {
			t.Errorf("count 0: got %d, want 500", r.code)
		}
	})
	t.Run("default", func(t *testing.T) {
		w := serve(t, newScript(), oneRoute(rule(1, 1, 10, "a", "${http_count ?? 2}")))
		if m := w.codes(3, "/"); m[200] != 2 {
			t.Errorf("got %v, want the default of 2", m)
		}
		if r := w.get("/", "Count: 1"); r.code != 503 || r.header.Get("X-1-RateLimit-Limit") != "1" {
			t.Errorf("a lower count judges the same counter: got %d, limit %s", r.code, r.header.Get("X-1-RateLimit-Limit"))
		}
	})
}

// TestVariableCount: values that are not positive integers are 500, or pass with
// allow_degradation; no choice of a client's gives it a second counter.
func TestVariableCount(t *testing.T) {
	make := func(degrade bool) *config.Limit {
		l := compat(escapement.Limit{Name: "l", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 1, Per: time.Hour}}, key("remote_addr"))
		l.Count, l.AllowDegradation = template(t, "${http_count}"), degrade
		return l
	}
	w := serve(t, newScript(), oneRoute(make(false)))
	for _, bad := range []string{"0", "-1", "1.5", "+2", " ", "1e3", "9007199254740992", "x", ""} {
		if r := w.get("/", "Count: "+bad); r.code != 500 {
			t.Errorf("count %q: got %d, want 500", bad, r.code)
		}
	}
	passed := 0
	for count := 1; count <= 3*maxVariants/2; count++ {
		if w.get("/", "Count: "+strconv.Itoa(count%5+1)).code == 200 {
			passed++
		}
	}
	if passed != 5 {
		t.Errorf("%d passed, want 5: the counts share one counter", passed)
	}
	w = serve(t, newScript(), oneRoute(make(true)))
	if r := w.get("/", "Count: 0"); r.code != 200 {
		t.Errorf("allow_degradation: got %d", r.code)
	}
}

// TestVariableWindow: a window length has counters of its own, and there is a last one.
func TestVariableWindow(t *testing.T) {
	l := compat(escapement.Limit{Name: "l", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 1, Per: time.Second}}, key("remote_addr"))
	l.Window = template(t, "${http_window}")
	l.AllowDegradation = true // must not open a way past the last window
	w := serve(t, newScript(), oneRoute(l))
	for seconds := 1; seconds <= maxWindows+50; seconds++ {
		want := map[int]int{200: 1, 503: 1}
		if seconds > maxWindows {
			want = map[int]int{503: 2}
		}
		if m := w.codes(2, "/", "Window: "+strconv.Itoa(seconds)); !maps.Equal(m, want) {
			t.Fatalf("window %d: got %v, want %v", seconds, m, want)
		}
	}
	w.clock.advance(time.Second)
	if m := w.codes(2, "/", "Window: 1"); m[200] != 1 {
		t.Errorf("got %v: a known window still counts", m)
	}
}

// TestUnresolvedKey: compatible limits fall back to the client's address, and nobody can
// name that address as a value; native ones count such requests together.
func TestUnresolvedKey(t *testing.T) {
	hour := escapement.Rate{Count: 1, Per: time.Hour}
	w := serve(t, newScript(), oneRoute(compat(escapement.Limit{Name: "l", Algorithm: escapement.FixedWindow, Rate: hour}, key("http_tenant"))))
	if m := w.codes(2, "/", "Tenant: 127.0.0.1"); m[200] != 1 {
		t.Errorf("got %v", m)
	}
	if m := w.codes(2, "/"); m[200] != 1 || m[503] != 1 {
		t.Errorf("by address: got %v, want its own counter", m)
	}
	w = serve(t, newScript(), oneRoute(native(escapement.Limit{Name: "l", Algorithm: escapement.FixedWindow, Rate: hour}, key("http_tenant"))))
	if m := w.codes(2, "/"); m[200] != 1 || m[429] != 1 {
		t.Errorf("native: got %v", m)
	}
}

func TestBypass(t *testing.T) {
	l := native(escapement.Limit{Name: "l", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 1, Per: time.Hour}}, key("host"))
	l.Bypass = []policy.Bypass{{Prefix: netip.MustParsePrefix("10.0.0.0/8")}, {Var: "consumer_name", Value: "probe"}}
	c := oneRoute(l)
	c.TrustedProxies = loopback
	w := serve(t, newScript(), c)
	w.get("/", "X-Forwarded-For: 192.0.2.1")
	for fields, want := range map[string]int{
		"X-Forwarded-For: 10.1.2.3": 200, "X-Consumer: probe": 200, "X-Consumer: other": 429, "X-Forwarded-For: 192.0.2.1": 429,
	} {
		if r := w.get("/", fields); r.code != want {
			t.Errorf("%s: got %d, want %d", fields, r.code, want)
		}
	}
}

// lost is a store that cannot answer, or not for some keys.
type lost struct {
	escapement.Store
	outcome escapement.Outcome
	unknown func(key string) bool
}

func (s *lost) Decide(ctx context.Context, rs []escapement.Request, as []escapement.Answer) {
	for i := range rs {
		ran := true
		for _, c := range rs[i].Claims {
			if s.unknown == nil || s.unknown(c.Key) {
				ran = false
			}
		}
		if ran {
			s.Store.Decide(ctx, rs[i:i+1], as[i:i+1])
			continue
		}
		as[i] = escapement.Answer{Outcome: s.outcome, Err: escapement.ErrFull}
	}
}

func (s *lost) Close() error { return s.Store.(io.Closer).Close() }

// TestOnFailure: what a request gets when the store has no answer is the limits' own
// policy, and a shadow has none.
func TestOnFailure(t *testing.T) {
	make := func(name string, f escapement.OnFailure) *config.Limit {
		return native(escapement.Limit{Name: name, Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 2, Per: time.Hour}, OnFailure: f}, key("http_"+name))
	}
	shadow := make("s", escapement.Deny)
	shadow.Shadow = true
	comp := compat(make("c", escapement.Deny).Limit, key("http_c"))
	degraded := compat(make("d", escapement.Deny).Limit, key("http_d"))
	degraded.AllowDegradation = true
	for _, test := range []struct {
		limits []*config.Limit
		want   int
	}{
		{[]*config.Limit{make("a", escapement.Deny)}, 503},
		{[]*config.Limit{make("a", escapement.LocalShare)}, 503},
		{[]*config.Limit{make("a", escapement.Allow)}, 200},
		{[]*config.Limit{make("a", escapement.Allow), make("b", escapement.Deny)}, 503},
		{[]*config.Limit{shadow}, 200},
		{[]*config.Limit{comp}, 500},
		{[]*config.Limit{degraded}, 200},
	} {
		for _, outcome := range []escapement.Outcome{escapement.NotRun, escapement.Unknown} {
			w := serve(t, newScript(), oneRoute(test.limits...))
			w.g.store, w.g.fast = &lost{Store: w.g.store, outcome: outcome}, nil
			r := w.get("/")
			if r.code != test.want || r.code == 503 && r.header.Get("Retry-After") != "1" {
				t.Errorf("%s, outcome %d: got %d, want %d", test.limits[0].Name, outcome, r.code, test.want)
			}
		}
	}
}

// TestFullStoreHidesNobody: a client that makes the store refuse one key under a limit
// that allows is still held by the limit whose key the store knows.
func TestFullStoreHidesNobody(t *testing.T) {
	open := native(escapement.Limit{Name: "open", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 9, Per: time.Hour}, OnFailure: escapement.Allow}, key("http_x"))
	held := native(escapement.Limit{Name: "held", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 2, Per: time.Hour}, OnFailure: escapement.Allow}, key("remote_addr"))
	w := serve(t, newScript(), oneRoute(open, held))
	w.g.store, w.g.fast = &lost{Store: w.g.store, unknown: func(k string) bool { return strings.HasPrefix(k, "new") }}, nil
	got := map[int]int{}
	for i := range 5 {
		got[w.get("/", fmt.Sprintf("X: new%d", i)).code]++
	}
	if got[200] != 2 || got[429] != 3 {
		t.Errorf("got %v, want 2 passed", got)
	}
	if m := w.codes(10, "/", "X: old"); m[429] != 10 {
		t.Errorf("got %v", m)
	}
	w.g.store.(*lost).unknown = func(string) bool { return false }
	if s := w.g.Status(); s.Limits[0].Fallback != 5 {
		t.Errorf("got %d fallbacks, want 5", s.Limits[0].Fallback)
	}
}

// TestPacing: requests are held until their turn; who gives up gives the turn back.
func TestPacing(t *testing.T) {
	l := native(escapement.Limit{
		Name: "l", Algorithm: escapement.Pacing, Rate: escapement.Rate{Count: 1, Per: time.Hour}, MaxDelay: time.Hour,
	}, key("remote_addr"))
	w := serve(t, newScript(), oneRoute(l))
	if r := w.get("/"); r.code != 200 {
		t.Fatalf("got %d", r.code)
	}
	// The second one's turn is an hour away. It gives up, and so does the third, which
	// finds the same turn free.
	for range 2 {
		conn, err := net.Dial("tcp", w.g.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		eventually(t, func() bool { return w.g.Status().Held == 1 })
		conn.Close()
		eventually(t, func() bool { return w.g.Status().Held == 0 })
	}
	if s := w.g.Status().Limits[0]; s.Delayed != 2 || s.Cancelled != 2 || s.Refused != 0 {
		t.Errorf("got %+v", s)
	}
	if n := w.passed.Load(); n != 1 {
		t.Errorf("the upstream saw %d requests, want 1", n)
	}
	// Half an hour on the next turn is 30 minutes away; 30 more and it is there.
	w.clock.advance(time.Hour)
	if r := w.get("/"); r.code != 200 {
		t.Errorf("after an hour: got %d", r.code)
	}
}

// TestPacingDelays lets three requests through one after the other in real time.
func TestPacingDelays(t *testing.T) {
	l := native(escapement.Limit{
		Name: "l", Algorithm: escapement.Pacing, Rate: escapement.Every(20 * time.Millisecond), MaxDelay: time.Minute,
	}, key("remote_addr"))
	w := serve(t, nil, oneRoute(l))
	codes := make(chan int, 5)
	for range 5 {
		go func() {
			res, err := w.client.Get(w.base + "/")
			if err != nil {
				codes <- 0
				return
			}
			res.Body.Close()
			codes <- res.StatusCode
		}()
	}
	for range 5 {
		if c := <-codes; c != http.StatusOK {
			t.Errorf("got %d", c)
		}
	}
	if s := w.g.Status(); s.Limits[0].Delayed < 1 || s.Held != 0 {
		t.Errorf("got %+v", s)
	}
}

// eventually waits for something that another goroutine is about to do.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for range 2000 {
		if ok() {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Fatal("it did not happen within 10 s")
}
