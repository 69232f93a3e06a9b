package lease

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/redistest"
	"github.com/escapement-io/escapement/redisstore"
)

func dial(t *testing.T, s *redistest.Server) *redisstore.Store {
	t.Helper()
	r, err := redisstore.Open(redisstore.Config{Addrs: []string{s.Addr()}, Deadline: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// TestRedis has two instances with leases and a caller that asks each time share one key of
// a real server. By the stamps of the decisions no window and no span holds more than the
// limit, and little of it is lost.
func TestRedis(t *testing.T) {
	server := redistest.Start(t, redistest.Options{})
	for _, l := range []escapement.Limit{fixedLimit(100, time.Second, 200*time.Millisecond), rollingLimit(100, time.Second, 200*time.Millisecond)} {
		t.Run(l.Name, func(t *testing.T) {
			p := compile(t, l)
			lent, _ := p.Lease()
			// What a stamp counts in: a window, or a bucket.
			width := lent.Per
			if lent.Width > 0 {
				width = lent.Width
			}
			var mu sync.Mutex
			uses := map[int64]int64{}
			total := int64(0)
			take := func(s escapement.FastStore) {
				d, err := s.DecideOne(t.Context(), escapement.Claim{Plan: p, Key: "k", Cost: 1})
				if err != nil || !d.Allowed {
					return // a busy machine may miss a deadline
				}
				mu.Lock()
				defer mu.Unlock()
				uses[int64(d.At())/int64(width)]++
				total++
			}
			var all []*Store
			for range 2 {
				back := dial(t, server)
				all = append(all, NewStore(back, back, Options{}))
			}
			exact := dial(t, server)
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			var done sync.WaitGroup
			for _, s := range all {
				done.Go(func() { every(ctx, 5*time.Millisecond, func() { take(s) }) })
			}
			done.Go(func() { every(ctx, 20*time.Millisecond, func() { take(exact) }) })
			done.Wait()
			for _, s := range all {
				if err := s.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}
			for k := range uses {
				inside := int64(0)
				for j := k - lent.Buckets; j <= k; j++ {
					inside += uses[j]
				}
				if inside > lent.Count {
					t.Errorf("%d are admitted until window %d, of %d", inside, k, lent.Count)
				}
			}
			if total < 2*lent.Count {
				t.Errorf("%d are admitted in four seconds, of a limit of %d a second", total, lent.Count)
			}
			t.Logf("%d admitted; %+v", total, all[0].Snapshot())
		})
	}
}

// every calls f at a steady pace until ctx is done.
func every(ctx context.Context, pause time.Duration, f func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f()
		case <-ctx.Done():
			return
		}
	}
}
