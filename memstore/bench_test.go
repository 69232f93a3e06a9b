package memstore

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/clock"
)

// The floors are what the parts of any limiter cost on the machine at hand; what counts is
// the ratio to them, taken in the same run:
//
//	go test ./memstore -run '^$' -bench . -count 5

const liveKeys = 1_000_000

// keys16 are distinct keys of 16 bytes.
func keys16(n int) []string {
	all := make([]byte, 0, 16*n)
	for i := range n {
		all = fmt.Appendf(all, "key%013d", i)
	}
	text := string(all)
	keys := make([]string, n)
	for i := range keys {
		keys[i] = text[16*i : 16*i+16]
	}
	return keys
}

// draws is a sequence of keys to ask for, a power of two long.
func draws(keys []string, zipf bool) []string {
	r := rand.New(rand.NewPCG(1, 2))
	z := rand.NewZipf(r, 1.1, 1, uint64(len(keys)-1))
	seq := make([]string, 1<<20)
	for i := range seq {
		if zipf {
			seq[i] = keys[z.Uint64()]
		} else {
			seq[i] = keys[r.IntN(len(keys))]
		}
	}
	return seq
}

// mapStore is the least a careful user would write around a limiter of one key.
type mapStore struct {
	seed   maphash.Seed
	shards [256]struct {
		mu sync.Mutex
		m  map[string]int64
	}
}

func newMapStore() *mapStore {
	m := &mapStore{seed: maphash.MakeSeed()}
	for i := range m.shards {
		m.shards[i].m = make(map[string]int64)
	}
	return m
}

func (m *mapStore) take(k string) bool {
	s := &m.shards[maphash.String(m.seed, k)&255]
	s.mu.Lock()
	_, ok := s.m[k]
	if !ok {
		s.m[k] = 1
	}
	s.mu.Unlock()
	return ok
}

func compile(tb testing.TB, l escapement.Limit) *escapement.Plan {
	tb.Helper()
	p, err := l.Compile()
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func newStore(tb testing.TB, opts ...Option) *Store {
	s := New(opts...)
	tb.Cleanup(func() { s.Close() })
	return s
}

func BenchmarkKeyed(b *testing.B) {
	keys := keys16(liveKeys)
	floor := newMapStore()
	for _, k := range keys {
		floor.take(k)
	}
	ctx := context.Background()
	p := compile(b, escapement.Limit{Name: "bench", Rate: escapement.Rate{Count: 1000, Per: time.Hour}, Burst: 1_000_000})
	s := newStore(b)
	for _, k := range keys {
		if _, err := s.DecideOne(ctx, escapement.Claim{Plan: p, Key: k, Cost: 1}); err != nil {
			b.Fatal(err)
		}
	}
	var fast escapement.FastStore = s
	for _, dist := range []string{"uniform", "zipf"} {
		seq := draws(keys, dist == "zipf")
		b.Run(dist+"/floor", func(b *testing.B) {
			i := 0
			for b.Loop() {
				floor.take(seq[i&(1<<20-1)])
				i++
			}
		})
		b.Run(dist+"/store", func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				fast.DecideOne(ctx, escapement.Claim{Plan: p, Key: seq[i&(1<<20-1)], Cost: 1})
				i++
			}
		})
		b.Run(dist+"/floor-parallel", func(b *testing.B) {
			var start atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				for i := start.Add(1 << 19); pb.Next(); i++ {
					floor.take(seq[i&(1<<20-1)])
				}
			})
		})
		b.Run(dist+"/store-parallel", func(b *testing.B) {
			var start atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				for i := start.Add(1 << 19); pb.Next(); i++ {
					fast.DecideOne(ctx, escapement.Claim{Plan: p, Key: seq[i&(1<<20-1)], Cost: 1})
				}
			})
		})
	}
	runtime.KeepAlive(floor)
}

func BenchmarkOneKey(b *testing.B) {
	ctx := context.Background()
	b.Run("floor", func(b *testing.B) {
		var word atomic.Int64
		for b.Loop() {
			now := int64(clock.Mono())
			for {
				if old := word.Load(); word.CompareAndSwap(old, max(old, now)+1) {
					break
				}
			}
		}
	})
	for _, a := range []escapement.Algorithm{escapement.TokenBucket, escapement.FixedWindow, escapement.SlidingWindow, escapement.RollingWindow, escapement.Pacing} {
		for _, full := range []bool{false, true} {
			l := escapement.Limit{Name: "bench", Algorithm: a, Rate: escapement.Rate{Count: 1_000_000_000, Per: time.Second}}
			name := "/admitted"
			if full {
				l.Rate, name = escapement.Rate{Count: 1, Per: time.Hour}, "/refused"
			}
			b.Run("store/"+a.String()+name, func(b *testing.B) {
				s := newStore(b)
				c := escapement.Claim{Plan: compile(b, l), Key: "0123456789abcdef", Cost: 1}
				b.ReportAllocs()
				for b.Loop() {
					s.DecideOne(ctx, c)
				}
			})
		}
	}
}
