package batch

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/redistest"
	"github.com/escapement-io/escapement/redisstore"
)

// TestRedis has two instances report one key to a real server. What a third one is told
// afterwards is exactly what was admitted.
func TestRedis(t *testing.T) {
	server := redistest.Start(t, redistest.Options{})
	for _, l := range limits() {
		if l.Name == "sliding" {
			continue // what is told of it is weighed
		}
		t.Run(l.Name, func(t *testing.T) {
			if l.Rate.Per > 0 {
				l.Rate.Per = time.Hour
			}
			l.Rate.Count = 10_000
			p := compile(t, l)
			admitted := map[algo.Store]int64{}
			var mu sync.Mutex
			var all []*Store
			for range 3 {
				back, err := redisstore.Open(redisstore.Config{Addrs: []string{server.Addr()}, Deadline: 2 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { back.Close() })
				all = append(all, NewStore(back, back, Options{Deadline: 5 * time.Second}))
			}
			var done sync.WaitGroup
			for _, s := range all[:2] {
				done.Go(func() {
					for range 300 {
						d, err := s.TakeOne(t.Context(), p, "k", 1)
						if err == nil && d.Allowed {
							mu.Lock()
							admitted[d.Receipt().At]++
							mu.Unlock()
						}
						time.Sleep(3 * time.Millisecond)
					}
				})
			}
			done.Wait()
			for _, s := range all[:2] {
				if err := s.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}
			d, err := all[2].DecideOne(t.Context(), escapement.Claim{Plan: p, Key: "k", Mode: escapement.Peek, Cost: 1})
			if err != nil {
				t.Fatal(err)
			}
			latest, total := algo.Store(0), int64(0)
			for window, n := range admitted {
				latest = max(latest, window)
				total += n
			}
			used := 10_000 - d.Remaining()
			if len(admitted) == 1 && used != total || used < admitted[latest] || used > total || total < 300 {
				t.Errorf("%d used, admitted were %v", used, admitted)
			}
			if err := all[2].Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}
