package trace

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestTimesAgree compares with package time over days, zones and fractions.
func TestTimesAgree(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, 0))
	layouts := []string{
		"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05.999999999Z07:00", "2006-01-02 15:04:05.000Z07:00",
		"02/Jan/2006:15:04:05 -0700",
	}
	for range 20_000 {
		at := time.UnixMicro(r.Int64N(maxMicros)).In(time.FixedZone("", (r.IntN(28*60)-14*60)*60))
		layout := layouts[r.IntN(len(layouts))]
		text := at.Format(layout)
		want, err := time.Parse(layout, text)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := parseTime([]byte(text), AutoUnit)
		if !ok || got != want.UnixMicro() {
			t.Fatalf("seed %d: %s: %d, %v; want %d", seed, text, got, ok, want.UnixMicro())
		}
	}
}

func TestTimes(t *testing.T) {
	for _, x := range []struct {
		text string
		unit Unit
		want int64 // -1: not a time
	}{
		{"0", AutoUnit, 0},
		{"1.5", AutoUnit, 1_500_000},
		{"1700000000", AutoUnit, 1_700_000_000_000_000},
		{"1700000000.123456789", AutoUnit, 1_700_000_000_123_456},
		{"1700000000123", AutoUnit, 1_700_000_000_123_000},
		{"1700000000123456", AutoUnit, 1_700_000_000_123_456},
		{"1700000000123456789", AutoUnit, 1_700_000_000_123_456},
		{"1700000000123.5", AutoUnit, 1_700_000_000_123_500},
		{"12", Millis, 12_000},
		{"12", Nanos, 0},
		{"12345", Nanos, 12},
		{"12", Micros, 12},
		{"2024-02-29T00:00:00Z", AutoUnit, 1_709_164_800_000_000},
		{"2023-02-29T00:00:00Z", AutoUnit, -1},
		{"2024-12-31T23:59:60Z", AutoUnit, 1_735_689_600_000_000},
		{"2026-11-30T00:00:00", AutoUnit, 1_795_996_800_000_000},
		{"2026-13-30T00:00:00Z", AutoUnit, -1},
		{"2026-11-30T24:00:00Z", AutoUnit, -1},
		{"2026-11-30T00:00:00.Z", AutoUnit, -1},
		{"2026-11-30T00:00:00+0530", AutoUnit, -1},
		{"2200-01-01T00:00:00Z", AutoUnit, -1},
		{"1969-12-31T23:59:59Z", AutoUnit, -1},
		{"30/Nov/2026:00:00:00", AutoUnit, 1_795_996_800_000_000},
		{"30/Nov/2026:00:00:00 ", AutoUnit, -1},
		{"30/nov/2026:00:00:00 +0000", AutoUnit, -1},
		{"", AutoUnit, -1}, {"-1", AutoUnit, -1}, {"1e9", AutoUnit, -1}, {"1.", AutoUnit, -1}, {".5", AutoUnit, -1},
		{"99999999999999999999", AutoUnit, -1}, {"9223372036854775808", AutoUnit, -1}, {"5000000000000", Seconds, -1},
		{"now", AutoUnit, -1}, {" 1", AutoUnit, -1},
	} {
		isTime := x.want >= 0
		got, ok := parseTime([]byte(x.text), x.unit)
		if ok != isTime || ok && got != x.want {
			t.Errorf("%q in %v: %d, %v; want %d", x.text, x.unit, got, ok, x.want)
		}
	}
}

func FuzzTime(f *testing.F) {
	for _, s := range []string{"2026-11-30T00:00:00.123456789+05:30", "30/Nov/2026:00:00:00 -0700", "1700000000.5", "2026-11-30 1", "xx/"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := parseTime(b, AutoUnit)
		if ok && (got < 0 || got > maxMicros) {
			t.Errorf("%q: %d", b, got)
		}
		if want, err := time.Parse(time.RFC3339Nano, string(b)); err == nil && ok && got != want.UnixMicro() {
			t.Errorf("%q: %d, want %d", b, got, want.UnixMicro())
		}
	})
}
