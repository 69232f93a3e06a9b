package algo

import "testing"

func TestFlushStories(t *testing.T) {
	type step struct {
		at     Store
		f      Flush
		window Store
		rest   Span
		used   int64
		left   int64
		late   int64
	}
	parts := func(p ...Spent) []Spent { return p }
	for name, tt := range map[string]struct {
		q     Params
		steps []step
	}{
		"opened by the first use": {Params{Algorithm: FixedWindow, Count: 500, Per: 1_000_000, FirstUse: true}, []step{
			{5_300_000, Flush{Instance: 1, Number: 1}, 5_300_000, 1_000_000, 0, 500, 0},
			{5_400_000, Flush{Instance: 2, Number: 1}, 5_300_000, 900_000, 0, 500, 0},
			{5_500_000, Flush{1, 2, 200_000, parts(Spent{5_300_000, 80})}, 5_300_000, 800_000, 80, 420, 0},
			{5_500_100, Flush{1, 2, 200_000, parts(Spent{5_300_000, 80})}, 5_300_000, 799_900, 80, 420, 0}, // a repetition
			{5_600_000, Flush{2, 2, 200_000, parts(Spent{5_300_000, 500})}, 5_300_000, 700_000, 580, 0, 0},
			{5_500_000, Flush{Instance: 2, Number: 3}, 5_300_000, 700_000, 580, 0, 0}, // time goes back
			// Over: the next one opens with whoever comes first. A report within the interval
			// counts in it, one that comes later is late.
			{6_400_000, Flush{1, 3, 200_000, parts(Spent{5_300_000, 7})}, 6_400_000, 1_000_000, 7, 493, 0},
			// Of a window that opened at 6.3 s, was lost, and is not over yet.
			{6_500_000, Flush{2, 4, 200_000, parts(Spent{5_300_000, 1}, Spent{6_300_000, 9})}, 6_400_000, 900_000, 16, 484, 1},
		}},
		"aligned": {Params{Algorithm: FixedWindow, Count: 10, Per: 1_000_000}, []step{
			{900_000, Flush{1, 1, 200_000, parts(Spent{0, 4})}, 0, 100_000, 4, 6, 0},
			{1_199_999, Flush{1, 2, 200_000, parts(Spent{0, 1}, Spent{1_000_000, 7})}, 1_000_000, 800_001, 8, 2, 0},
			{1_200_000, Flush{2, 1, 200_000, parts(Spent{0, 1}, Spent{1_000_000, 12})}, 1_000_000, 800_000, 20, 0, 1},
			// An instance whose clock runs ahead.
			{1_999_000, Flush{2, 2, 200_000, parts(Spent{2_000_000, 3})}, 1_000_000, 1_000, 23, 0, 0},
		}},
		"sliding": {Params{Algorithm: SlidingWindow, Count: 100, Per: 1_000_000}, []step{
			{3_500_000, Flush{1, 1, 200_000, parts(Spent{3_000_000, 60})}, 3_000_000, 500_000, 60, 40, 0},
			{4_250_000, Flush{1, 2, 200_000, parts(Spent{3_000_000, 1})}, 4_000_000, 750_000, 0, 54, 0},      // 61 * 0.75 = 45.75
			{4_500_000, Flush{2, 1, 200_000, parts(Spent{3_000_000, 100})}, 4_000_000, 500_000, 0, 50, 0},    // above the limit it weighs as the limit
			{4_500_000, Flush{2, 2, 200_000, parts(Spent{2_000_000, 3})}, 4_000_000, 500_000, 0, 50, 3},      // long closed
			{4_600_000, Flush{2, 3, 200_000, parts(Spent{4_000_000, 55})}, 4_000_000, 400_000, 55, 5, 0},     //
			{5_000_000, Flush{Instance: 1, Number: 3}, 5_000_000, 1_000_000, 0, 45, 0},                       //
			{7_000_000, Flush{2, 4, 200_000, parts(Spent{5_000_000, 55})}, 7_000_000, 1_000_000, 0, 100, 55}, // nothing for a window
		}},
	} {
		p, err := Compile(tt.q)
		if err != nil {
			t.Fatal(err)
		}
		var r Delayed
		for i, s := range tt.steps {
			got := p.Flush(&r, s.at, &s.f)
			got.At = 0
			if want := (Flushed{Window: s.window, Rest: s.rest, Used: s.used, Remaining: s.left, Late: s.late}); got != want {
				t.Errorf("%s, step %d: %+v, want %+v", name, i, got, want)
				break
			}
		}
	}
}

// An instance is remembered while a repetition of its last flush could still count.
func TestFlushForgetsInstances(t *testing.T) {
	p, err := Compile(Params{Algorithm: SlidingWindow, Count: 100, Per: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	var r Delayed
	for i := range int64(50) {
		p.Flush(&r, Store(100_000*i), &Flush{Instance: i + 1, Number: 1})
	}
	if n := len(r.Seen); n != 20 {
		t.Errorf("%d instances are remembered, want those of the last two periods, 20", n)
	}
	f := Flush{Instance: 99, Number: 1, Parts: []Spent{{5_000_000, 8}}}
	for _, at := range []Store{5_999_999, 6_999_999, 7_000_000, 9_000_000, 9_500_000} {
		before := r.Used + r.Before
		p.Flush(&r, at, &f)
		if at > 5_999_999 && r.Used+r.Before > before {
			t.Errorf("at %d a repetition counts again", at)
		}
	}
}
