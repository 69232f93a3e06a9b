package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/batch"
	"github.com/escapement-io/escapement/internal/config"
	"github.com/escapement-io/escapement/internal/redistest"
	"github.com/escapement-io/escapement/lease"
)

// slow is a way to addr on which every answer takes longer by so many nanoseconds.
func slow(t *testing.T, addr string, by *atomic.Int64) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", addr)
			if err != nil {
				from.Close()
				continue
			}
			go func() {
				defer to.Close()
				_, _ = io.Copy(to, from) // the end of a connection ends the other
			}()
			go func() {
				defer from.Close()
				buf := make([]byte, 1<<16)
				for {
					n, err := to.Read(buf)
					if err != nil {
						return
					}
					time.Sleep(time.Duration(by.Load()))
					if _, err := from.Write(buf[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

func agreed(l escapement.SyncMode, name string, count int64) escapement.Limit {
	return escapement.Limit{Name: name, Algorithm: escapement.FixedWindow, Rate: escapement.PerHour(count), Sync: time.Second, SyncMode: l}
}

// TestASlowStoreIsWaitedFor: a request of a key that is new waits for a store as long as one
// that asks it about every request.
func TestASlowStoreIsWaitedFor(t *testing.T) {
	var by atomic.Int64
	s := redisAt(slow(t, redistest.Start(t, redistest.Options{}).Addr(), &by), 1)
	s.Deadline = 5 * time.Second
	modes := []escapement.SyncMode{escapement.SyncLease, escapement.SyncDelayed}
	var limits []*config.Limit
	for _, mode := range modes {
		limits = append(limits, in(s, native(agreed(mode, mode.String(), 10), key("http_x")), escapement.Deny))
	}
	w := serve(t, nil, withStores(limits...))
	by.Store(int64(60 * time.Millisecond))
	for _, k := range []string{"a", "b"} {
		if r := w.get("/", "X: "+k); r.code != 200 {
			t.Errorf("the first request of a key: %d", r.code)
		}
	}
	by.Store(0)
}

// TestClientsThatGiveUp: who leaves before the store has answered is no case for on_failure,
// and what was charged elsewhere is given back.
func TestClientsThatGiveUp(t *testing.T) {
	var by atomic.Int64
	s := redisAt(slow(t, redistest.Start(t, redistest.Options{}).Addr(), &by), 1)
	s.Deadline = 5 * time.Second
	for _, l := range []escapement.Limit{agreed(escapement.SyncLease, "l", 10), agreed(escapement.SyncDelayed, "l", 10), {Name: "l", Rate: escapement.PerHour(10)}} {
		w := serve(t, nil, withStores(in(s, native(l, key("http_x")), escapement.Allow), hourly("own", 5)))
		by.Store(int64(150 * time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
		r, err := http.NewRequestWithContext(ctx, "GET", w.base+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X", l.SyncMode.String())
		if res, err := w.client.Do(r); err == nil {
			res.Body.Close()
			t.Errorf("%v: answered with %d", l.Basis(), res.StatusCode)
		}
		cancel()
		by.Store(0)
		w.stop() // ends when the request has
		st := w.g.Status()
		if n := st.Limits[0].Fallback; n != 0 || w.passed.Load() != 0 {
			t.Errorf("%v: on_failure answered %d times, and %d passed", l.Basis(), n, w.passed.Load())
		}
		if n := st.Limits[1].AdmittedUnits; n != 0 {
			t.Errorf("%v: %d units of another limit were admitted", l.Basis(), n)
		}
	}
}

// TestLimitsThatWereNotAsked: of a refused request nothing is said of a limit that was not
// asked, and nothing counted.
func TestLimitsThatWereNotAsked(t *testing.T) {
	s := redisAt(redistest.Start(t, redistest.Options{}).Addr(), 1)
	exact := escapement.Limit{Name: "exact", Rate: escapement.PerHour(50)}
	w := serve(t, nil, withStores(in(s, native(agreed(escapement.SyncLease, "leased", 2), key("http_x")), escapement.Deny), in(s, native(exact, key("http_x")), escapement.Deny)))
	for range 2 {
		if r := w.get("/", "X: a"); r.code != 200 || !strings.Contains(r.header.Get("Ratelimit"), `"exact";r=`) {
			t.Fatalf("%d %v", r.code, r.header)
		}
	}
	if r := w.get("/", "X: a"); r.code != 429 || strings.Contains(r.header.Get("Ratelimit"), "exact") || strings.Contains(r.header.Get("Ratelimit-Policy"), "exact") {
		t.Errorf("%d %v", r.code, r.header)
	}
	if st := w.g.Status(); st.Limits[0].Decided != 3 || st.Limits[1].Decided != 2 {
		t.Errorf("%d and %d decisions, want 3 and 2", st.Limits[0].Decided, st.Limits[1].Decided)
	}
}

// TestWhoFillsUpTheLedgers gains nothing from other limits of the store: they are asked.
func TestWhoFillsUpTheLedgers(t *testing.T) {
	s := redisAt(redistest.Start(t, redistest.Options{}).Addr(), 1)
	w := serve(t, nil, withStores(in(s, native(agreed(escapement.SyncLease, "each", 10), key("http_x")), escapement.Allow),
		in(s, native(escapement.Limit{Name: "all", Rate: escapement.PerHour(3)}, key()), escapement.Allow)))
	sh := w.g.current.Load().stores[0]
	old := sh.store.Load()
	small := &tiers{old.redis, lease.NewStore(old.redis, old.redis, lease.Options{MaxKeys: 1, MaxWait: time.Second}), old.reports}
	small.reports = batch.NewStore(old.redis, small.leases, batch.Options{})
	sh.store.Store(small)
	codes := map[int]int{}
	for i := range 8 {
		codes[w.get("/", fmt.Sprint("X: ", i)).code]++
	}
	if codes[200] != 3 || codes[429] != 5 {
		t.Errorf("got %v, want the 3 of all", codes)
	}
	if err := errors.Join(old.reports.Close(t.Context()), old.leases.Close(t.Context())); err != nil {
		t.Error(err)
	}
}
