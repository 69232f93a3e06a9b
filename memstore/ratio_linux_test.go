package memstore

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/clock"
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

// ratios runs the contestants in turn for some rounds and reports the processor time of
// each, and its ratio to that of the first within the same round, by their medians.
func ratios(b *testing.B, names []string, run []func(n int)) {
	const rounds, calls = 11, 500_000
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	times := make([][]float64, len(run))
	rel := make([][]float64, len(run))
	for b.Loop() {
		for range rounds {
			floor := 0.0
			for i, f := range run {
				f(calls / 10)
				from := threadTime(b)
				f(calls)
				ns := float64(threadTime(b)-from) / calls
				if i == 0 {
					floor = ns
				}
				times[i] = append(times[i], ns)
				rel[i] = append(rel[i], ns/floor)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, name := range names {
		b.ReportMetric(median(times[i]), name+"-ns")
		if i > 0 {
			b.ReportMetric(median(rel[i]), name+"/floor")
		}
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// takeClaim is take for a question in the form that a store is asked in. That alone, and
// the reading of a clock alone, keep the processor from fetching the next key ahead.
//
//go:noinline
func (m *mapStore) takeClaim(c escapement.Claim) bool { return m.take(c.Key) }

// BenchmarkRatio is the goal: at most 1.3 times the floor, on many keys and on one.
func BenchmarkRatio(b *testing.B) {
	ctx := context.Background()
	wide := compile(b, escapement.Limit{Name: "wide", Rate: escapement.PerSecond(1_000_000_000)})
	shut := compile(b, escapement.Limit{Name: "shut", Rate: escapement.PerHour(1)})
	b.Run("keyed", func(b *testing.B) {
		keys := keys16(liveKeys)
		floor, s := newMapStore(), newStore(b)
		live := compile(b, escapement.Limit{Name: "live", Rate: escapement.PerHour(1000), Burst: 1_000_000})
		for _, k := range keys {
			floor.take(k)
			if _, err := s.DecideOne(ctx, escapement.Claim{Plan: live, Key: k, Cost: 1}); err != nil {
				b.Fatal(err)
			}
		}
		limiter := escapement.NewLimiter(s, live)
		tick := NewCoarse()
		defer tick.Close()
		coarse := escapement.NewLimiter(newStore(b, WithClock(tick)), live)
		for _, k := range keys {
			if _, err := coarse.Take(ctx, k, 1); err != nil {
				b.Fatal(err)
			}
		}
		for _, dist := range []string{"uniform", "zipf"} {
			seq := draws(keys, dist == "zipf")
			b.Run(dist, func(b *testing.B) {
				at := 0
				ratios(b, []string{"map", "limiter", "coarse", "store", "map-by-claim", "map-and-clock"}, []func(n int){
					func(n int) {
						for range n {
							floor.take(seq[at&(1<<20-1)])
							at++
						}
					},
					func(n int) {
						for range n {
							limiter.Take(ctx, seq[at&(1<<20-1)], 1)
							at++
						}
					},
					func(n int) {
						for range n {
							coarse.Take(ctx, seq[at&(1<<20-1)], 1)
							at++
						}
					},
					func(n int) {
						for range n {
							s.DecideOne(ctx, escapement.Claim{Plan: live, Key: seq[at&(1<<20-1)], Cost: 1})
							at++
						}
					},
					func(n int) {
						for range n {
							floor.takeClaim(escapement.Claim{Plan: live, Key: seq[at&(1<<20-1)], Cost: 1})
							at++
						}
					},
					func(n int) {
						for range n {
							clock.Mono()
							floor.take(seq[at&(1<<20-1)])
							at++
						}
					},
				})
			})
		}
	})
	b.Run("one", func(b *testing.B) {
		s := newStore(b)
		free, closed := NewSingle(wide), NewSingle(shut)
		coarse := NewCoarse()
		defer coarse.Close()
		rough := NewSingle(wide, WithClock(coarse))
		var word atomic.Int64
		ratios(b, []string{"word", "admitted", "refused", "single-admitted", "single-refused", "single-coarse", "take", "take-refused", "take-coarse"}, []func(n int){
			func(n int) {
				for range n {
					now := int64(clock.Mono())
					for {
						if old := word.Load(); word.CompareAndSwap(old, max(old, now)+1) {
							break
						}
					}
				}
			},
			func(n int) {
				for range n {
					s.DecideOne(ctx, escapement.Claim{Plan: wide, Key: "0123456789abcdef", Cost: 1})
				}
			},
			func(n int) {
				for range n {
					s.DecideOne(ctx, escapement.Claim{Plan: shut, Key: "0123456789abcdef", Cost: 1})
				}
			},
			func(n int) {
				for range n {
					free.DecideOne(ctx, escapement.Claim{Plan: wide, Cost: 1})
				}
			},
			func(n int) {
				for range n {
					closed.DecideOne(ctx, escapement.Claim{Plan: shut, Cost: 1})
				}
			},
			func(n int) {
				for range n {
					rough.DecideOne(ctx, escapement.Claim{Plan: wide, Cost: 1})
				}
			},
			func(n int) {
				for range n {
					free.Take(1)
				}
			},
			func(n int) {
				for range n {
					closed.Take(1)
				}
			},
			func(n int) {
				for range n {
					rough.Take(1)
				}
			},
		})
	})
}
