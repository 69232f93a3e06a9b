package gateway

import (
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/config"
)

// TestSource004 is the configuration of source 004 with policy local: two consumers
// behind one address send 1100 requests at once each; each gets its 1000 and no more.
func TestSource004(t *testing.T) {
	l := compat(escapement.Limit{
		Name: "api", Algorithm: escapement.SlidingWindow, Rate: escapement.Rate{Count: 1000, Per: 10 * time.Second},
	}, key("consumer_name"))
	l.Rejected.Code = 429
	w := serve(t, newScript(), oneRoute(l))
	const each, workers = 1100, 20
	var mu sync.Mutex
	got := map[string]map[int]int{"alice": {}, "bob": {}}
	var wg sync.WaitGroup
	for name := range got {
		for range workers {
			wg.Go(func() {
				m := w.codes(each/workers, "/", "X-Consumer: "+name)
				mu.Lock()
				defer mu.Unlock()
				for code, n := range m {
					got[name][code] += n
				}
			})
		}
	}
	wg.Wait()
	want := map[int]int{200: 1000, 429: 100}
	for name, m := range got {
		if !maps.Equal(m, want) {
			t.Errorf("%s got %v, want %v", name, m, want)
		}
	}
	if n := w.passed.Load(); n != 2000 {
		t.Errorf("the upstream saw %d requests, want 2000", n)
	}
}

// TestAlgorithms drives each algorithm through the gateway on a scripted clock: what
// passes at once, what passes after a quarter and after a whole period.
func TestAlgorithms(t *testing.T) {
	rate := escapement.Rate{Count: 8, Per: 4 * time.Second}
	tests := []struct {
		limit escapement.Limit
		want  [3]int // of 12 requests each: at once, a second later, another 4 s later
	}{
		{escapement.Limit{Algorithm: escapement.TokenBucket, Rate: rate, Burst: 10}, [3]int{10, 2, 8}},
		{escapement.Limit{Algorithm: escapement.GCRA, Rate: rate, Burst: 4}, [3]int{4, 2, 4}},
		{escapement.Limit{Algorithm: escapement.FixedWindow, Rate: rate}, [3]int{8, 0, 8}},
		{escapement.Limit{Algorithm: escapement.SlidingWindow, Rate: rate}, [3]int{8, 0, 2}},
		{escapement.Limit{Algorithm: escapement.RollingWindow, Rate: rate}, [3]int{8, 0, 8}},
		{escapement.Limit{Algorithm: escapement.Pacing, Rate: rate}, [3]int{1, 1, 1}},
		{escapement.Limit{Algorithm: escapement.FixedWindow, Align: escapement.Day, Rate: escapement.Rate{Count: 9}}, [3]int{9, 0, 0}},
		{escapement.Limit{Algorithm: escapement.TokenBucket, Rate: rate, Headroom: 50}, [3]int{4, 1, 4}},
	}
	for _, test := range tests {
		t.Run(test.limit.Algorithm.String()+"/"+test.limit.Align.String(), func(t *testing.T) {
			t.Parallel()
			test.limit.Name = "l"
			w := serve(t, newScript(), oneRoute(native(test.limit, key("remote_addr"))))
			for i, wait := range []time.Duration{0, time.Second, 4 * time.Second} {
				w.clock.advance(wait)
				before := w.passed.Load()
				m := w.codes(12, "/")
				if m[200] != test.want[i] || m[200]+m[429] != 12 {
					t.Errorf("step %d: got %v, want %d passed", i, m, test.want[i])
				}
				if n := w.passed.Load() - before; n != int64(test.want[i]) {
					t.Errorf("step %d: the upstream saw %d, want %d", i, n, test.want[i])
				}
			}
		})
	}
}

// TestAllOrNothing shows that a request which one limit refuses is charged to none.
func TestAllOrNothing(t *testing.T) {
	day := escapement.Rate{Count: 3, Per: 24 * time.Hour}
	wide := native(escapement.Limit{Name: "wide", Algorithm: escapement.FixedWindow, Rate: day}, key("remote_addr"))
	narrow := native(escapement.Limit{Name: "narrow", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 1, Per: time.Second}}, key("remote_addr"))
	w := serve(t, newScript(), oneRoute(wide, narrow))
	for i := range 4 {
		m := w.codes(5, "/")
		want := map[int]int{200: 1, 429: 4}
		if i == 3 {
			want = map[int]int{429: 5}
		}
		if !maps.Equal(m, want) {
			t.Errorf("second %d: got %v, want %v", i, m, want)
		}
		w.clock.advance(time.Second)
	}
}

// TestShadow shows that a shadow limit refuses nobody, is counted, and hides from clients.
func TestShadow(t *testing.T) {
	l := native(escapement.Limit{
		Name: "dry", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 2, Per: time.Hour}, Shadow: true,
	}, key("remote_addr"))
	w := serve(t, newScript(), oneRoute(l))
	for range 5 {
		if r := w.get("/"); r.code != 200 || r.header.Get("RateLimit") != "" {
			t.Fatalf("got %d, RateLimit %q", r.code, r.header.Get("RateLimit"))
		}
	}
	if s := w.g.Status().Limits[0]; s.ShadowRefused != 3 || s.Refused != 0 || s.Decided != 5 {
		t.Errorf("got %+v, want 3 shadow refusals of 5 decisions", s)
	}
}

// TestNothingIsChargedForOtherRefusals: 401 and 404 leave the quota alone.
func TestNothingIsChargedForOtherRefusals(t *testing.T) {
	l := native(escapement.Limit{Name: "l", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 2, Per: time.Hour}}, key("remote_addr"))
	c := oneRoute(l)
	c.Routes[0].URIs = []string{"/a/*"}
	c.Routes[0].KeyAuth = &config.KeyAuth{Header: "apikey"}
	c.Consumers.KeyAuth = map[string]string{"secret": "alice"}
	w := serve(t, newScript(), c)
	for range 5 {
		if r := w.get("/b"); r.code != 404 || r.body != "{\"error_msg\":\"404 Route Not Found\"}\n" {
			t.Errorf("got %d %s", r.code, r.body)
		}
		if r := w.get("/a/", "apikey: wrong"); r.code != http.StatusUnauthorized {
			t.Errorf("got %d", r.code)
		}
	}
	if m := w.codes(3, "/a/", "apikey: secret"); m[200] != 2 || m[429] != 1 {
		t.Errorf("got %v, want 2 passed and 1 refused", m)
	}
}
