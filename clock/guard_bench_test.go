package clock

import (
	"testing"

	"github.com/escapement-io/escapement/algo"
)

var sinkWall algo.Wall

func benchGuard(b *testing.B) *Guard {
	b.Helper()
	g, err := NewGuard(Config{})
	if err != nil {
		b.Fatal(err)
	}
	return g
}

// Compare with BenchmarkTimeNow.
func BenchmarkGuardNow(b *testing.B) {
	g := benchGuard(b)
	b.ReportAllocs()
	for b.Loop() {
		sinkWall = g.Now()
	}
}

// The same while guarded time is being slewed, which takes a multiplication more.
func BenchmarkGuardNowSlewing(b *testing.B) {
	g := benchGuard(b)
	g.mu.Lock()
	taken := false
	for range 100_000 { // the offer of the start may still be ahead
		now, m := g.read()
		if _, taken = g.offer(slew, int64(now)-int64(m)+1000*secondNS); taken {
			break
		}
	}
	g.mu.Unlock()
	if !taken {
		b.Fatal("no offer was taken")
	}
	b.ReportAllocs()
	for b.Loop() {
		sinkWall = g.Now()
	}
}

func BenchmarkGuardNowParallel(b *testing.B) {
	g := benchGuard(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		last := g.Now()
		for pb.Next() {
			if now := g.Now(); now < last {
				b.Error("guarded time went back")
			} else {
				last = now
			}
		}
	})
}

func BenchmarkBound(b *testing.B) {
	g := benchGuard(b)
	b.ReportAllocs()
	for b.Loop() {
		sinkWall = g.Bound().Earliest
	}
}

// One check of the watcher; ten a second are a core's 10⁻⁷ for each ns·10.
func BenchmarkCheck(b *testing.B) {
	g := benchGuard(b)
	b.ReportAllocs()
	for b.Loop() {
		g.Check()
	}
}

func BenchmarkLook(b *testing.B) {
	for b.Loop() {
		look(machine{})
	}
}
