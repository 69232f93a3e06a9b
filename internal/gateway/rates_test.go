package gateway

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/memstore"
)

// steady offers requests at an even rate on the scripted clock, beginning on a window
// boundary, and returns how many the upstream saw in each window.
func (w *world) steady(perSecond int, window time.Duration, windows int) []int {
	w.t.Helper()
	each := int(window/time.Second) * perSecond
	got := make([]int, windows)
	for i := range got {
		before := w.passed.Load()
		for range each {
			w.get("/", "X-Consumer: alice")
			w.clock.advance(time.Second / time.Duration(perSecond))
		}
		got[i] = int(w.passed.Load() - before)
	}
	return got
}

// TestSource004Steady offers the configuration of source 004 200 requests a second for a
// minute: sliding passes 1000 ± 1 % in each complete window after the first, fixed exactly
// 1000 in every one.
func TestSource004Steady(t *testing.T) {
	windows := 6
	if testing.Short() {
		windows = 3
	}
	for _, a := range []escapement.Algorithm{escapement.FixedWindow, escapement.SlidingWindow} {
		l := compat(escapement.Limit{Name: "api", Algorithm: a, Rate: escapement.Rate{Count: 1000, Per: 10 * time.Second}}, key("consumer_name"))
		w := serve(t, newScript(), oneRoute(l))
		for i, n := range w.steady(200, 10*time.Second, windows) {
			exact := a == escapement.FixedWindow || i == 0
			if n != 1000 && (exact || n < 990 || n > 1010) {
				t.Errorf("%v, window %d: %d passed, want 1000", a, i, n)
			}
		}
	}
}

// TestHeadroom offers 2000 a second to a limit of 2000 with a headroom of 20 %.
func TestHeadroom(t *testing.T) {
	second, seconds := escapement.PerSecond(2000), 3
	if testing.Short() {
		seconds = 1
	}
	for _, l := range []escapement.Limit{
		{Algorithm: escapement.FixedWindow, Rate: second},
		{Algorithm: escapement.SlidingWindow, Rate: second},
		{Algorithm: escapement.RollingWindow, Rate: second},
		{Algorithm: escapement.TokenBucket, Rate: second, Burst: 10},
		{Algorithm: escapement.GCRA, Rate: second, Burst: 10},
	} {
		l.Name, l.Headroom = "l", 20
		w := serve(t, newScript(), oneRoute(native(l, key("remote_addr"))))
		for i, n := range w.steady(2000, time.Second, seconds) {
			if n < 1584 || n > 1616 {
				t.Errorf("%v, second %d: %d passed, want 1600 ± 1 %%", l.Algorithm, i, n)
			}
		}
	}
}

// TestRateInRealTime offers twice the limit for a while on the real clock and compares
// what the upstream saw with the time that passed on the store's own line. If the machine
// could not offer that much, only the upper bound says something.
func TestRateInRealTime(t *testing.T) {
	const perSecond, headroom, enforced = 2000, 20, 1600
	burst := int64(100)
	line := clock.NewLine()
	l := native(escapement.Limit{Name: "l", Rate: escapement.PerSecond(perSecond), Burst: burst * 100 / (100 - headroom), Headroom: headroom}, key("host"))
	store := memstore.New(memstore.WithClock(line))
	w := serveWith(t, store, oneRoute(l))
	var lag atomic.Int64
	start := line.Now()
	done := make(chan struct{})
	const workers, each = 8, 500
	for i := range workers {
		go func() {
			defer func() { done <- struct{}{} }()
			for j := range each {
				due := start + algo.Store((j*workers+i)*1_000_000/perSecond)
				if wait := due - line.Now(); wait > 0 {
					<-time.After(time.Duration(wait) * time.Microsecond)
				} else if late := int64(-wait); late > lag.Load() {
					lag.Store(late)
				}
				res, err := w.client.Get(w.base + "/")
				if err != nil {
					t.Error(err)
					return
				}
				res.Body.Close()
				if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusTooManyRequests {
					t.Errorf("got %d", res.StatusCode)
				}
			}
		}()
	}
	for range workers {
		<-done
	}
	passed := w.passed.Load()
	most := burst + 1 + int64(line.Now()-start)*enforced/1_000_000
	if passed > most {
		t.Errorf("%d passed, want at most %d", passed, most)
	}
	least := int64(each*workers) * enforced / perSecond * 99 / 100
	if late := time.Duration(lag.Load()) * time.Microsecond; late > 50*time.Millisecond {
		t.Logf("the machine offered the load up to %v late: %d passed", late, passed)
	} else if passed < least {
		t.Errorf("%d passed, want at least %d", passed, least)
	}
}

// TestFlood: a flood of keys fills the store, and the client that was limited before it
// still is.
func TestFlood(t *testing.T) {
	script := newScript()
	l := native(escapement.Limit{Name: "l", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 1, Per: time.Hour}}, key("http_user"))
	c := oneRoute(l)
	w := serveWith(t, memstore.New(memstore.WithClock(script), memstore.WithMaxKeys(500)), c)
	if m := w.codes(2, "/", "User: victim"); m[200] != 1 || m[429] != 1 {
		t.Fatalf("got %v", m)
	}
	got := map[int]int{}
	for i := range 2000 {
		got[w.get("/", "User: flood-"+time.Duration(i).String()).code]++
	}
	if got[503] < 1400 || got[200] > 500 || got[429] != 0 {
		t.Errorf("the flood got %v, want 503 once the store is full", got)
	}
	if r := w.get("/", "User: victim"); r.code != 429 {
		t.Errorf("the limited client got %d after the flood", r.code)
	}
}
