package naive

import "testing"

var (
	_ Recipe = (*Bucket)(nil)
	_ Recipe = (*Window)(nil)
	_ Recipe = (*Spacing)(nil)
)

// offer asks 4000 times a second for three seconds, from a quarter of a second into a
// window on, and steps the clock after one second.
func offer(r Recipe, step int64) (admitted int, longest int64) {
	const start, every, end = 1_800_000_000_250_000, 250, 3_000_000
	refused := int64(0)
	for at := int64(0); at < end; at += every {
		now := start + at
		if at >= 1_000_000 {
			now += step
		}
		if r.Take(now) {
			admitted++
			refused = 0
			continue
		}
		refused += every
		longest = max(longest, refused)
	}
	return admitted, longest
}

// Storms of refusals come from steps back, and a limit that is off from steps longer than
// the ring: 2000 a second, 3 s, one step.
func TestWhatAStepDoesToWindowsAndSpacing(t *testing.T) {
	const ms = 1000
	for _, c := range []struct {
		step            int64 // ms
		window, spacing int
	}{
		{0, 7000, 6000},
		{320, 7280, 6000},
		{-50, 6800, 5900},
		{-320, 6000, 5360},
		{-2000, 5000, 2000},
		{-12_000, 10_000, 2000},
	} {
		w, _ := offer(&Window{Limit: 2000}, c.step*ms)
		s, _ := offer(&Spacing{Interval: 500}, c.step*ms)
		if w != c.window || s != c.spacing {
			t.Errorf("step of %d ms: the window admits %d, spacing %d; want %d, %d", c.step, w, s, c.window, c.spacing)
		}
	}
	if _, longest := offer(&Window{Limit: 2000}, -2000*ms); longest < 1_500_000 {
		t.Errorf("after a step of -2 s nothing is admitted for %d µs, want 1.5 s", longest)
	}
}

// A window of another period is the same window, its time stretched.
func TestWindowOfAnotherPeriod(t *testing.T) {
	one, slow := &Window{Limit: 7}, &Window{Limit: 7, Bucket: 3 * halfSecond}
	const start = 1_800_000_000_000_000
	admitted := 0
	for at := int64(0); at < 10_000_000; at += 40_000 {
		a, b := one.Take(start+at), slow.Take(3*(start+at))
		if a != b {
			t.Fatalf("at %d µs: %v in a window of 1 s, %v in one of 3 s", at, a, b)
		}
		if a {
			admitted++
		}
	}
	if admitted != 70 {
		t.Errorf("%d admitted in 10 s, want 70", admitted)
	}
}
