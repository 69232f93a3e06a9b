package gateway

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/config"
	"github.com/escapement-io/escapement/internal/redistest"
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
