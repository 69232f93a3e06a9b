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

// BenchmarkParallel asks from all processors at once. Compare the two on a quiet machine.
func BenchmarkParallel(b *testing.B) {
	keys := keys16(liveKeys)
	p := compile(b, escapement.Limit{Name: "parallel", Rate: escapement.PerHour(1000), Burst: 1_000_000})
	floor, s := newMapStore(), newStore(b)
	for _, k := range keys {
		floor.take(k)
		if _, err := s.DecideOne(context.Background(), escapement.Claim{Plan: p, Key: k, Cost: 1}); err != nil {
			b.Fatal(err)
		}
	}
	for _, dist := range []string{"uniform", "zipf"} {
		seq := draws(keys, dist == "zipf")
		for name, ask := range map[string]func(key string){
			"floor": func(key string) { floor.take(key) },
			"store": func(key string) {
				s.DecideOne(context.Background(), escapement.Claim{Plan: p, Key: key, Cost: 1})
			},
		} {
			b.Run(dist+"/"+name, func(b *testing.B) {
				var start atomic.Int64
				b.RunParallel(func(pb *testing.PB) {
					for i := start.Add(1 << 19); pb.Next(); i++ {
						ask(seq[i&(1<<20-1)])
					}
				})
			})
		}
	}
}

// heap is what the garbage collector keeps.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkMemory reports the heap of a live key at several loads of the tables, and what
// is left of the heap 10 seconds after a flood of keys that were seen once, over that of a
// million live keys. Run it with -benchtime 1x.
func BenchmarkMemory(b *testing.B) {
	for name, opts := range map[string][]Option{"hashed": nil, "kept": {WithKeys()}} {
		b.Run(name, func(b *testing.B) {
			before := heap()
			p := compile(b, escapement.Limit{Name: "memory", Rate: escapement.PerHour(10)})
			s := newStore(b, opts...)
			worst, last := 0.0, 0.0
			for b.Loop() {
				for i := range 1_500_000 {
					s.DecideOne(context.Background(), escapement.Claim{Plan: p, Key: fmt.Sprintf("live%012d", i), Cost: 1})
					if n := i + 1; n >= liveKeys && n%50_000 == 0 {
						last = (heap() - before) / float64(n)
						worst = max(worst, last)
					}
					if i+1 == liveKeys {
						b.ReportMetric(last, "B/key-at-1e6")
					}
				}
			}
			b.ReportMetric(worst, "B/key-at-worst")
			runtime.KeepAlive(s)
		})
	}
	b.Run("flood", func(b *testing.B) {
		before := heap()
		p := compile(b, escapement.Limit{Name: "memory", Rate: escapement.PerSecond(10)})
		s := newStore(b, WithMaxKeys(20_000_000))
		peak := int64(0)
		for b.Loop() {
			for i := range 10_000_000 {
				s.DecideOne(context.Background(), escapement.Claim{Plan: p, Key: fmt.Sprintf("once%012d", i), Cost: 1})
				if i%100_000 == 0 {
					peak = max(peak, s.Stats().Bytes)
				}
			}
			time.Sleep(10 * time.Second)
		}
		b.ReportMetric(float64(peak), "B-at-peak")
		b.ReportMetric(heap()-before, "B-kept")
		runtime.KeepAlive(s)
	})
}

func BenchmarkOneKey(b *testing.B) {
	ctx := context.Background()
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
