package httplimit

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement-io/escapement"
)

func body(t *testing.T, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	if ct := w.Header().Get("Content-Type"); ct != "application/problem+json" {
		t.Errorf("content type %q", ct)
	}
	if n := w.Header().Get("Content-Length"); n != strconv.Itoa(w.Body.Len()) {
		t.Errorf("content length %s of %d", n, w.Body.Len())
	}
	var m map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	return m
}

func expect(t *testing.T, w *httptest.ResponseRecorder, status int, headers ...string) {
	t.Helper()
	if w.Code != status {
		t.Errorf("status %d, want %d", w.Code, status)
	}
	for i := 0; i < len(headers); i += 2 {
		if got := w.Header().Get(headers[i]); got != headers[i+1] {
			t.Errorf("%s: %q, want %q", headers[i], got, headers[i+1])
		}
	}
}

func TestOneLimit(t *testing.T) {
	store := newLineStore(t)
	lim := limiter(t, store, escapement.Limit{Rate: escapement.PerMinute(2), Algorithm: escapement.FixedWindow})
	store.line.Store(2 * 1_000_000_000_000_000 / 60_000_000 * 60_000_000)
	h := New(lim, RemoteAddr(Clients{}))(ok)
	expect(t, serve(h, request("192.0.2.1:1")), 200, "RateLimit", `"test";r=1;t=60`, "RateLimit-Policy", `"test";q=2;w=60`, "Retry-After", "")
	expect(t, serve(h, request("192.0.2.1:2")), 200, "RateLimit", `"test";r=0;t=60`)
	store.advance(1500 * time.Millisecond)
	w := serve(h, request("192.0.2.1:3"))
	expect(t, w, 429, "RateLimit", `"test";r=0;t=59`, "Retry-After", "59")
	want := map[string]any{
		"type":   "https://iana.org/assignments/http-problem-types#quota-exceeded",
		"title":  "The quota of this client is used up",
		"status": 429., "violated-policies": []any{"test"},
	}
	if got := body(t, w); !reflect.DeepEqual(got, want) {
		t.Errorf("body %v, want %v", got, want)
	}
	expect(t, serve(h, request("192.0.2.2:1")), 200)
}

// A client that waits exactly what it was told is admitted.
func TestToldWaitIsEnough(t *testing.T) {
	for _, a := range []escapement.Algorithm{escapement.TokenBucket, escapement.GCRA, escapement.FixedWindow, escapement.SlidingWindow, escapement.RollingWindow, escapement.Pacing} {
		store := newLineStore(t)
		lim := limiter(t, store, escapement.Limit{Algorithm: a, Rate: escapement.Rate{Count: 7, Per: 10 * time.Second}})
		h := New(lim, Everyone)(ok)
		refused := 0
		for range 40 {
			w := serve(h, request("192.0.2.1:1"))
			if w.Code == 200 {
				store.advance(130 * time.Millisecond)
				continue
			}
			refused++
			s, err := strconv.Atoi(w.Header().Get("Retry-After"))
			if err != nil {
				t.Fatal(err)
			}
			store.advance(time.Duration(s) * time.Second)
			expect(t, serve(h, request("192.0.2.1:1")), 200)
		}
		if refused == 0 {
			t.Errorf("%v: nobody was refused", a)
		}
	}
}

func TestAllOrNone(t *testing.T) {
	store := newLineStore(t)
	user := limiter(t, store, escapement.Limit{Name: "user", Rate: escapement.PerHour(10)})
	global := limiter(t, store, escapement.Limit{Name: "global", Rate: escapement.PerHour(2)})
	h := All([]Keyed{{Limiter: user, Key: Header("X-User")}, {Limiter: global, Key: Everyone}})(ok)
	for range 2 {
		expect(t, serve(h, request("192.0.2.1:1", "X-User", "ann")), 200)
	}
	for range 3 {
		w := serve(h, request("192.0.2.1:1", "X-User", "ann"))
		expect(t, w, 429, "Retry-After", "1800")
		if got := body(t, w)["violated-policies"]; !reflect.DeepEqual(got, []any{"global"}) {
			t.Errorf("violated %v", got)
		}
	}
	d, err := user.Peek(context.Background(), "ann")
	if err != nil || d.Remaining() != 8 {
		t.Errorf("user has %d left, %v", d.Remaining(), err)
	}
}

func TestCosts(t *testing.T) {
	lim := limiter(t, newLineStore(t), escapement.Limit{Rate: escapement.PerHour(10)})
	h := New(lim, Everyone, WithCost(func(r *http.Request) int64 {
		n, _ := strconv.ParseInt(r.Header.Get("Cost"), 10, 64)
		return n
	}))(ok)
	cost := func(n string) *http.Request { return request("192.0.2.1:1", "Cost", n) }
	expect(t, serve(h, cost("0")), 200, "RateLimit", `"test";r=10;t=0`)
	expect(t, serve(h, cost("4")), 200, "RateLimit", `"test";r=6;t=1440`)
	w := serve(h, cost("11"))
	expect(t, w, 429, "RateLimit", `"test";r=6`, "Retry-After", "")
	for _, n := range []string{"-1", "9007199254740992"} {
		w := serve(h, cost(n))
		expect(t, w, 400, "Retry-After", "", "RateLimit", "")
		if got := body(t, w); !reflect.DeepEqual(got, map[string]any{"type": "about:blank", "title": "Bad Request", "status": 400.}) {
			t.Errorf("body %v", got)
		}
	}
	two := All([]Keyed{{Limiter: lim, Key: Everyone, Cost: func(*http.Request) int64 { return -1 }}, {Limiter: lim, Key: Everyone}})(ok)
	expect(t, serve(two, cost("1")), 400)
}

func TestRequestsWithoutKey(t *testing.T) {
	store := newLineStore(t)
	user := limiter(t, store, escapement.Limit{Name: "user", Rate: escapement.PerHour(10)})
	global := limiter(t, store, escapement.Limit{Name: "global", Rate: escapement.PerHour(1)})
	limits := []Keyed{{Limiter: user, Key: Header("X-User")}, {Limiter: global, Key: Everyone}}
	var got error
	strict := All(limits, WithRefusal(func(w http.ResponseWriter, _ *http.Request, f *Refusal) {
		got = f.Err
		w.WriteHeader(f.Status)
	}))(ok)
	expect(t, serve(strict, request("192.0.2.1:1")), 400, "Retry-After", "")
	if !errors.Is(got, ErrNoKey) || !strings.Contains(got.Error(), "limit user") {
		t.Errorf("error %v", got)
	}
	lax := All(limits, PassWithoutKey())(ok)
	expect(t, serve(lax, request("192.0.2.1:1")), 200, "RateLimit", `"global";r=0;t=3600`)
	expect(t, serve(lax, request("192.0.2.1:1")), 429)
	expect(t, serve(New(user, Header("X-User"), PassWithoutKey())(ok), request("192.0.2.1:1")), 200, "RateLimit", "")
}

func TestStoreFailures(t *testing.T) {
	store := newLineStore(t)
	deny := limiter(t, store, escapement.Limit{Name: "deny", Rate: escapement.PerHour(10)})
	allow := limiter(t, store, escapement.Limit{Name: "allow", Rate: escapement.PerHour(10), OnFailure: escapement.Allow})
	both := All([]Keyed{{Limiter: allow, Key: Everyone}, {Limiter: deny, Key: Everyone}})(ok)
	store.err = errAway
	w := serve(New(deny, Everyone)(ok), request("192.0.2.1:1"))
	expect(t, w, 503, "Retry-After", "5", "RateLimit", "")
	want := map[string]any{
		"type":   "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
		"title":  "Quotas cannot be checked at the moment",
		"status": 503., "violated-policies": []any{"deny"},
	}
	if got := body(t, w); !reflect.DeepEqual(got, want) {
		t.Errorf("body %v, want %v", got, want)
	}
	expect(t, serve(New(deny, Everyone, WithOutageWait(time.Minute))(ok), request("192.0.2.1:1")), 503, "Retry-After", "60")
	expect(t, serve(New(allow, Everyone)(ok), request("192.0.2.1:1")), 200, "RateLimit", "", "RateLimit-Policy", `"allow";q=10;w=3600`)
	expect(t, serve(both, request("192.0.2.1:1")), 503)

	// A limit that is used up is told as such although another store is away.
	other := newLineStore(t)
	used := limiter(t, other, escapement.Limit{Name: "used", Rate: escapement.PerHour(1)})
	h := All([]Keyed{{Limiter: allow, Key: Everyone}, {Limiter: used, Key: Everyone}})(ok)
	expect(t, serve(h, request("192.0.2.1:1")), 200)
	expect(t, serve(h, request("192.0.2.1:1")), 429, "Retry-After", "3600")
}

func TestShadows(t *testing.T) {
	store := newLineStore(t)
	lim := limiter(t, store, escapement.Limit{Name: "hard", Rate: escapement.PerHour(1)})
	shadow := limiter(t, store, escapement.Limit{Name: "shadow", Rate: escapement.PerHour(1), Shadow: true})
	pacing := limiter(t, store, escapement.Limit{Name: "pacing", Algorithm: escapement.Pacing, Rate: escapement.PerHour(1), MaxDelay: 9 * time.Hour, Shadow: true})
	for name, h := range map[string]http.Handler{
		"middleware": All([]Keyed{{Limiter: lim, Key: Everyone}}, WithShadow())(ok),
		"no key":     All([]Keyed{{Limiter: lim, Key: Header("X-User")}}, WithShadow())(ok),
		"limit":      New(shadow, Everyone)(ok),
		"held":       New(pacing, Everyone)(ok), // a shadow that held a request would hang here
	} {
		for range 3 {
			w := serve(h, request("192.0.2.1:1"))
			if expect(t, w, 200); len(w.Header()) != 1 { // net/http's recorder adds a content type
				t.Errorf("%s: headers %v", name, w.Header())
			}
		}
	}
	if d, _ := lim.Peek(context.Background(), ""); d.Allowed {
		t.Error("a shadow middleware charges nothing")
	}
}

func TestOwnRefusal(t *testing.T) {
	lim := limiter(t, newLineStore(t), escapement.Limit{Rate: escapement.PerMinute(1)})
	h := New(lim, Everyone,
		WithTriple(XTriple("Api")),
		WithJitter(Jitter{Percent: 10, Random: func(n int64) int64 { return n - 1 }}),
		WithRefusal(func(w http.ResponseWriter, r *http.Request, f *Refusal) {
			if f.Wait != 66*time.Second || f.Err != nil || !reflect.DeepEqual(f.Violated(), []string{"test"}) {
				t.Errorf("refusal %+v", f)
			}
			http.Error(w, "slow down, "+r.RemoteAddr, f.Status)
		}))(ok)
	serve(h, request("192.0.2.1:1"))
	w := serve(h, request("192.0.2.1:1"))
	expect(t, w, 429, "Retry-After", "66", "X-Api-RateLimit-Limit", "1", "X-Api-RateLimit-Remaining", "0", "X-Api-RateLimit-Reset", "60")
	if w.Body.String() != "slow down, 192.0.2.1:1\n" {
		t.Errorf("body %q", w.Body)
	}
}

func TestStyleOfTheMiddleware(t *testing.T) {
	lim := limiter(t, newLineStore(t), escapement.Limit{Rate: escapement.PerMinute(2)})
	expect(t, serve(New(lim, Everyone, WithStyle(Draft03))(ok), request("192.0.2.1:1")), 200,
		"RateLimit-Limit", "2", "RateLimit-Remaining", "1", "RateLimit-Reset", "30", "RateLimit", "", "RateLimit-Policy", "")
	expect(t, serve(New(lim, Everyone, WithStyle(None))(ok), request("192.0.2.1:1")), 200, "RateLimit", "", "RateLimit-Limit", "")
}

func TestLongKeysAreHashed(t *testing.T) {
	store := newLineStore(t)
	h := New(limiter(t, store, escapement.Limit{Rate: escapement.PerHour(9)}), Header("X-User"))(ok)
	serve(h, request("192.0.2.1:1", "X-User", strings.Repeat("x", 10_000)))
	if len(store.asked) != 1 || len(store.asked[0]) > escapement.MaxKey {
		t.Errorf("the store was asked for %q", store.asked)
	}
}

func TestPacingHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newLineStore(t)
		lim := limiter(t, store, escapement.Limit{Algorithm: escapement.Pacing, Rate: escapement.PerSecond(1), MaxDelay: 2 * time.Second})
		h := New(lim, Everyone)(ok)
		expect(t, serve(h, request("192.0.2.1:1")), 200)
		codes := make(chan int)
		go func() { codes <- serve(h, request("192.0.2.1:1")).Code }()
		synctest.Wait()
		time.Sleep(time.Second - 1)
		synctest.Wait()
		select {
		case c := <-codes:
			t.Fatalf("answered %d before its turn", c)
		default:
		}
		time.Sleep(time.Nanosecond)
		if c := <-codes; c != 200 {
			t.Errorf("answered %d in its turn", c)
		}
	})
}

func TestHeldRequestGivesItsTurnBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newLineStore(t)
		lim := limiter(t, store, escapement.Limit{Algorithm: escapement.Pacing, Rate: escapement.PerSecond(1), MaxDelay: time.Second})
		hits := 0
		h := New(lim, Everyone)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits++ }))
		serve(h, request("192.0.2.1:1"))
		ctx, leave := context.WithCancel(context.Background())
		done := make(chan int)
		go func() { done <- serve(h, request("192.0.2.1:1").WithContext(ctx)).Code }()
		synctest.Wait()
		if d, _ := lim.Peek(context.Background(), ""); d.Allowed {
			t.Error("the turn is not taken")
		}
		leave()
		if code := <-done; code != 503 || hits != 1 {
			t.Errorf("answered %d after %d requests reached the handler", code, hits)
		}
		if d, _ := lim.Peek(context.Background(), ""); !d.Allowed {
			t.Error("the turn was not given back")
		}
	})
}

func TestContextThatEnded(t *testing.T) {
	store := newLineStore(t)
	lim := limiter(t, store, escapement.Limit{Rate: escapement.PerHour(1)})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, limits := range [][]Keyed{{{Limiter: lim, Key: Everyone}}, {{Limiter: lim, Key: Everyone}, {Limiter: lim, Key: Everyone}}} {
		expect(t, serve(All(limits)(ok), request("192.0.2.1:1").WithContext(ctx)), 503)
	}
	if d, _ := lim.Peek(context.Background(), ""); !d.Allowed {
		t.Error("something was charged")
	}
}

func TestMistakesPanic(t *testing.T) {
	lim := limiter(t, newLineStore(t), escapement.Limit{Rate: escapement.PerHour(1)})
	for name, limits := range map[string][]Keyed{
		"none": nil, "17": make([]Keyed, 17), "no limiter": {{Key: Everyone}}, "no key": {{Limiter: lim}},
	} {
		func() {
			defer func() {
				if s, _ := recover().(string); !strings.HasPrefix(s, "httplimit: ") {
					t.Errorf("%s: %q", name, s)
				}
			}()
			All(limits)
		}()
	}
}
