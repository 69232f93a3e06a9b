package lease

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/memstore"
)

// threadTime is the processor time of the calling thread in nanoseconds. Other work on the
// machine does not count towards it.
func threadTime(tb testing.TB) int64 {
	const thread = 1
	var u syscall.Rusage
	if err := syscall.Getrusage(thread, &u); err != nil {
		tb.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// draws are a million keys of so many, a few of them most of the time.
func draws(keys int) []string {
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("key%013d", i)
	}
	r := rand.New(rand.NewPCG(1, 2))
	z := rand.NewZipf(r, 1.1, 1, uint64(keys-1))
	seq := make([]string, 1<<20)
	for i := range seq {
		seq[i] = names[z.Uint64()]
	}
	return seq
}

// BenchmarkRatio is the goal: while quota is held a decision costs at most 1.2 times one
// in memory, of the same limit on the same keys, by processor time in the same run.
func BenchmarkRatio(b *testing.B) {
	ctx := context.Background()
	for _, keys := range []int{1000, 10_000, 100_000} {
		seq := draws(keys)
		for _, algorithm := range []escapement.Algorithm{escapement.FixedWindow, escapement.RollingWindow} {
			b.Run(fmt.Sprintf("%v/%d", algorithm, keys), func(b *testing.B) {
				l := escapement.Limit{Name: "ratio", Algorithm: algorithm, Rate: escapement.Rate{Count: 1 << 30, Per: time.Hour}}
				local := compile(b, l)
				l.Sync = 10 * time.Minute // nothing but decisions while it runs
				leased := compile(b, l)
				m := memstore.New()
				defer m.Close()
				s := NewStore(generous{newBank(1)}, m, Options{MaxWait: time.Second, Deadline: time.Minute})
				defer s.Close(ctx)
				for _, k := range seq {
					m.TakeOne(ctx, local, k, 1)
				}
				for _, k := range seq {
					if d, err := s.TakeOne(ctx, leased, k, 1); err != nil || !d.Allowed {
						b.Fatalf("%v, allowed %v", err, d.Allowed)
					}
				}
				contest(b, seq, func(k string) { m.TakeOne(ctx, local, k, 1) }, func(k string) { s.TakeOne(ctx, leased, k, 1) })
				if v := s.Snapshot(); v.Refused > 0 {
					b.Errorf("%d were refused", v.Refused)
				}
			})
		}
	}
}

// contest runs both in turn and reports what they cost, and the ratio, by their medians.
func contest(b *testing.B, seq []string, floor, run func(key string)) {
	const rounds, calls = 11, 400_000
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var times [2][]float64
	var rel []float64
	at := 0
	for b.Loop() {
		for range rounds {
			for i, f := range []func(string){floor, run} {
				from := threadTime(b)
				for range calls {
					f(seq[at&(1<<20-1)])
					at++
				}
				times[i] = append(times[i], float64(threadTime(b)-from)/calls)
			}
			n := len(times[0]) - 1
			rel = append(rel, times[1][n]/times[0][n])
		}
	}
	median := func(v []float64) float64 {
		slices.Sort(v)
		return v[len(v)/2]
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(times[0]), "memory-ns")
	b.ReportMetric(median(times[1]), "leased-ns")
	b.ReportMetric(median(rel), "leased/memory")
}
