package algo

import (
	"testing"

	"pgregory.net/rapid"
)

// The bounds hold the store's line at every instant, whatever the round trips and within
// the drift they allow for.
func TestMappingHoldsTheStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offset := rapid.Int64Range(-1e15, 1e15).Draw(t, "offset") + 2e15
		ppm := rapid.Int64Range(-400, 400).Draw(t, "ppm")
		line := func(m int64) int64 { return offset + m + m/1_000_000*ppm }
		var l Mapping
		now := rapid.Int64Range(0, 1e12).Draw(t, "start")
		for range rapid.IntRange(1, 30).Draw(t, "trips") {
			now += rapid.Int64Range(0, 20e9).Draw(t, "gap")
			sent := now
			now += rapid.Int64Range(0, 50e6).Draw(t, "there")
			at := Store(line(now) / 1000)
			now += rapid.Int64Range(0, 50e6).Draw(t, "back")
			if l.Observe(Mono(sent), Mono(now), at) {
				t.Fatalf("a steady store is said to have moved, at %d", now)
			}
			later := now + rapid.Int64Range(0, 60e9).Draw(t, "later")
			lo, hi, ok := l.Bounds(Mono(later))
			if truth := Store(line(later) / 1000); !ok || lo > truth || hi < truth {
				t.Fatalf("at %d the store is at %d, bounds %d to %d, %v", later, truth, lo, hi, ok)
			}
			now = later
		}
	})
}

func TestMappingNoticesAMove(t *testing.T) {
	var l Mapping
	if _, _, ok := l.Bounds(0); ok {
		t.Fatal("bounds before the first round trip")
	}
	for i, tt := range []struct {
		sent, received Mono
		at             Store
		moved          bool
		lo, hi         Store // right after
	}{
		{0, 1_000_000, 5_000_000, false, 4_999_999, 5_001_000},
		{1_000_000_000, 1_000_400_000, 6_000_300, false, 6_000_299, 6_000_701},   // both bounds from the second trip
		{2_000_000_000, 2_900_000_000, 7_300_000, false, 7_898_948, 7_901_252},   // a slow one says nothing new
		{3_000_000_000, 3_000_400_000, 38_000_000, true, 37_999_999, 38_000_401}, // 30 s ahead
		{4_000_000_000, 4_000_400_000, 38_000_000, true, 37_999_999, 38_000_401}, // and a second behind
	} {
		if moved := l.Observe(tt.sent, tt.received, tt.at); moved != tt.moved {
			t.Errorf("trip %d: moved %v", i, moved)
		}
		lo, hi, _ := l.Bounds(tt.received)
		if lo < tt.lo-2 || lo > tt.lo+2 || hi < tt.hi-2 || hi > tt.hi+2 {
			t.Errorf("trip %d: %d to %d, want about %d to %d", i, lo, hi, tt.lo, tt.hi)
		}
	}
}

// Phases lie within the interval and spread evenly over instances and over keys.
func TestPhasesSpread(t *testing.T) {
	const interval, cells, n = 200_000, 10, 2000
	for name, phase := range map[string]func(i int) Mono{
		"instances": func(i int) Mono { return Phase(string(rune('a'+i)), "key", interval) },
		"keys":      func(i int) Mono { return Phase("gateway-1", string(rune('a'+i)), interval) },
	} {
		var count [cells]int
		for i := range n {
			p := phase(i)
			if p < 0 || p >= interval*1000 {
				t.Fatalf("%s: a phase of %d", name, p)
			}
			count[int(p)*cells/(interval*1000)]++
		}
		for c, got := range count {
			if got < n/cells*3/4 || got > n/cells*5/4 {
				t.Errorf("%s: %d of %d phases in tenth %d", name, got, n, c)
			}
		}
	}
	if Phase("a", "bc", interval) == Phase("ab", "c", interval) {
		t.Error("an instance and a key are run together")
	}
}
