package gateway

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/config"
	"github.com/escapement-io/escapement/memstore"
)

// TestNoScrapeMissesABurst: for three seconds every fourth decision is refused. The share
// rises and falls within ten seconds of it, and the highest stays for a minute.
func TestNoScrapeMissesABurst(t *testing.T) {
	var r recent
	var c tally
	const begin, end = 1000, 1003
	for s := int64(990); s < end+keptSeconds+2*spanSeconds; s++ {
		c.decided += 100
		if s >= begin && s < end {
			c.refused += 25
		}
		r.add(s, c)
		now, highest := r.now(), r.highest()
		if within := s >= begin && s < end+spanSeconds-1; within != (now > 0) {
			t.Errorf("second %d: the share refused is %v", s, now)
		}
		if s == end-1 && math.Abs(now-0.075) > 1e-6 {
			t.Errorf("at the end of the burst the share is %v, want 75 of 1000", now)
		}
		switch last := int64(end + spanSeconds - 2); { // the last span that saw all of it ended there
		case s >= end-1 && s < last+keptSeconds-2 && math.Abs(highest-0.075) > 1e-6:
			t.Errorf("second %d: the highest share is %v, want 0.075", s, highest)
		case s >= last+keptSeconds && highest != 0:
			t.Errorf("second %d: the highest share is %v, more than a minute after the burst", s, highest)
		}
	}
}

func TestFewDecisionsHaveNoShare(t *testing.T) {
	var r recent
	r.add(5, tally{decided: fewest - 1, refused: fewest - 1})
	if r.now() != 0 || r.highest() != 0 {
		t.Errorf("%d decisions give a share of %v", fewest-1, r.now())
	}
	r.add(6, tally{decided: fewest, refused: fewest})
	if r.now() != 1 || r.highest() != 1 {
		t.Errorf("%d refusals of %d decisions give a share of %v", fewest, fewest, r.now())
	}
}

// TestRecentByDefinition compares shares with their definition, over seconds of which some
// are missed and some come twice.
func TestRecentByDefinition(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d; to replay, put it in place of rand.Uint64()", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range 50 {
		var r recent
		var c tally
		history := []tally{{}} // by second; second 0 is before everything
		at := func(s int) tally { return history[max(0, s)] }
		for range 200 {
			n := rnd.Int64N(20)
			c.decided += n
			c.refused += rnd.Int64N(n + 1)
			c.fallback += max(0, rnd.Int64N(12)-10)
			gap := 1
			switch rnd.IntN(20) {
			case 0:
				gap = 0
			case 1:
				gap = 1 + rnd.IntN(150)
			}
			if gap > 0 {
				for range gap - 1 {
					history = append(history, at(len(history)-1))
				}
				history = append(history, c)
			}
			second := len(history) - 1
			r.add(int64(second), c)
			wanted := func(s int) float64 {
				n := at(s).decided - at(s-spanSeconds).decided
				if n < fewest {
					return 0
				}
				return float64(at(s).refused-at(s-spanSeconds).refused) / float64(n)
			}
			highest := 0.0
			for s := max(0, second-keptSeconds+1); s <= second; s++ {
				highest = max(highest, wanted(s))
			}
			fell := at(second).fallback > at(second-spanSeconds).fallback
			if math.Abs(r.now()-wanted(second)) > 1e-6 || math.Abs(r.highest()-highest) > 1e-6 || r.fellBack() != fell {
				t.Fatalf("second %d: share %v highest %v fell back %v, want %v %v %v", second, r.now(), r.highest(), r.fellBack(), wanted(second), highest, fell)
			}
		}
	}
}

// still is a gateway that listens nowhere and samples when it is told to.
func still(t *testing.T, store *memstore.Store, limits ...*config.Limit) *Gateway {
	t.Helper()
	c := oneRoute(limits...)
	c.Routes[0].Upstream = toNode("http://127.0.0.1:1")
	c.Listen = "127.0.0.1:0"
	g, err := New(c, store, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	g.listener.Close()
	t.Cleanup(func() {
		g.current.Load().retire(nil)
		store.Close()
	})
	return g
}

// ask sends n requests of a client.
func ask(g *Gateway, n int, client string) {
	for range n {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = client + ":1"
		g.ServeHTTP(&nowhere{header: map[string][]string{}}, r)
	}
}

// TestStatusSaysWhatWasRefusedOfLate: 5 of 20 pass, and one more client than fit in memory
// follows on_failure.
func TestStatusSaysWhatWasRefusedOfLate(t *testing.T) {
	limit := func(name string, f escapement.OnFailure) *config.Limit {
		return native(escapement.Limit{Name: name, Algorithm: escapement.FixedWindow, Rate: escapement.PerHour(5), OnFailure: f}, key("remote_addr"))
	}
	for _, f := range []escapement.OnFailure{escapement.Deny, escapement.Allow} {
		g := still(t, memstore.New(memstore.WithClock(newScript()), memstore.WithMaxKeys(1)), limit("l", f))
		status := func(second int64) LimitStatus {
			g.sample(second)
			return g.Status().Limits[0]
		}
		ask(g, 20, "127.0.0.1")
		if s := status(100); s.RefusedRatio != 0.75 || s.RefusedRatioMax != 0.75 || s.Basis != "exact" || s.Bound == nil || *s.Bound != 0 || s.AdmittedUnits != 5 {
			t.Errorf("%v: 15 of 20 were refused: %+v", f, s)
		}
		if s := status(110); s.RefusedRatio != 0 || s.RefusedRatioMax != 0.75 {
			t.Errorf("%v: 10 s later: %+v", f, s)
		}
		ask(g, 10, "127.0.0.2")
		s := status(180)
		want := map[escapement.OnFailure]float64{escapement.Deny: 1, escapement.Allow: 0}[f]
		if s.RefusedRatio != want || s.RefusedRatioMax != want || s.Basis != "fallback" || (s.Bound == nil) != (f == escapement.Allow) {
			t.Errorf("%v: without an answer of the store: %+v", f, s)
		}
		if s := status(191); s.Basis != "exact" {
			t.Errorf("%v: decisions are said to rest on %s, 11 s after the last that did", f, s.Basis)
		}
	}
}

// TestSampledOncePerSecond runs the sampler in the time of a bubble.
func TestSampledOncePerSecond(t *testing.T) {
	store := memstore.New(memstore.WithClock(newScript()))
	g := still(t, store, native(escapement.Limit{Name: "l", Rate: escapement.PerHour(5)}, key("remote_addr")))
	c := g.current.Load().limits[0].counts
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go g.sampleAlways(ctx)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		newest := func() int64 {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.recent.last
		}
		before := newest()
		for i := range int64(120) {
			time.Sleep(time.Second)
			synctest.Wait()
			if got := newest() - before; got != i+1 {
				t.Fatalf("%d seconds later the sampler is %d on", i+1, got)
			}
		}
	})
}

// TestBound is what docs/reference/metrics.md says of each basis.
func TestBound(t *testing.T) {
	const no = -1
	for _, c := range []struct {
		name      string
		limit     escapement.Limit
		basis     escapement.Basis
		instances int
		want      int64
	}{
		{"exact", escapement.Limit{}, escapement.Exact, 0, 0},
		{"leased", escapement.Limit{}, escapement.Leased, 0, 0},
		{"delayed", escapement.Limit{Headroom: 20}, escapement.Delayed, 12, 11 * 1600},
		{"delayed, alone", escapement.Limit{}, escapement.Delayed, 1, 0},
		{"delayed, not known how many", escapement.Limit{}, escapement.Delayed, 0, no},
		{"deny", escapement.Limit{}, escapement.Fallback, 12, 0},
		{"local share", escapement.Limit{OnFailure: escapement.LocalShare}, escapement.Fallback, 12, 0},
		{"allow", escapement.Limit{OnFailure: escapement.Allow}, escapement.Fallback, 12, no},
		{"shadow", escapement.Limit{Shadow: true}, escapement.Exact, 12, no},
	} {
		c.limit.Name, c.limit.Algorithm, c.limit.Rate = "l", escapement.SlidingWindow, escapement.PerMinute(2000)
		l, err := compileLimit(native(c.limit, key("remote_addr")), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := l.bound(c.basis, c.instances)
		if !ok {
			got = no
		}
		if got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestOvershootIsWhatTheStoreTold: it is shown at its limit, and nothing where nothing is known.
func TestOvershootIsWhatTheStoreTold(t *testing.T) {
	l, err := compileLimit(native(escapement.Limit{Name: "l", Algorithm: escapement.SlidingWindow, Rate: escapement.PerMinute(2000),
		Sync: 100 * time.Millisecond, SyncMode: escapement.SyncDelayed}, key("remote_addr")), nil)
	if err != nil {
		t.Fatal(err)
	}
	store := &StoreStatus{Name: "main", Reached: true, Instances: 3, Sync: []SyncStatus{{Mode: "lease"}, {Mode: "delayed", Overshoot: map[string]int64{"l": 42}}}}
	if s := l.status(store); s.Overshoot == nil || *s.Overshoot != 42 || s.Bound == nil || *s.Bound != 4000 || s.Basis != "delayed" || s.Store != "main" {
		t.Errorf("%+v", s)
	}
	store.Sync, store.Reached = nil, false
	if s := l.status(store); s.Overshoot != nil || s.Basis != "fallback" {
		t.Errorf("%+v", s)
	}
}
