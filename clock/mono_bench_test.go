package clock

import (
	"testing"
	"time"

	"github.com/escapement-io/escapement/algo"
)

var (
	sinkMono  algo.Mono
	sinkStore algo.Store
	sinkTime  time.Time
	sinkSpan  time.Duration
)

// The reference for BenchmarkMono: time.Since is runtime.nanotime and a subtraction.
func BenchmarkNanotime(b *testing.B) {
	t := time.Now()
	for b.Loop() {
		sinkSpan = time.Since(t)
	}
}

func BenchmarkMono(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		sinkMono = Mono()
	}
}

func BenchmarkTimeNow(b *testing.B) {
	for b.Loop() {
		sinkTime = time.Now()
	}
}

func BenchmarkLineNow(b *testing.B) {
	b.ReportAllocs()
	l := NewLine()
	for b.Loop() {
		sinkStore = l.Now()
	}
}
