package clock

import (
	"testing"

	"pgregory.net/rapid"
)

func TestAgreed(t *testing.T) {
	for _, c := range []struct {
		name  string
		spans []span
		want  span
		votes int
	}{
		{"nobody", nil, span{}, 0},
		{"one", []span{{3, 9}}, span{3, 9}, 1},
		{"nested", []span{{0, 100}, {40, 50}}, span{40, 50}, 2},
		{"touching at a point", []span{{0, 5}, {5, 9}}, span{5, 5}, 2},
		{"two against one", []span{{8, 12}, {11, 13}, {100, 101}}, span{11, 12}, 2},
		{"two camps: the narrower", []span{{0, 10}, {5, 15}, {100, 102}, {101, 103}}, span{101, 102}, 2},
		{"strangers: the narrowest", []span{{0, 10}, {20, 21}, {30, 40}}, span{20, 21}, 1},
		{"an inside-out span is ignored", []span{{9, 3}, {0, 1}}, span{0, 1}, 1},
	} {
		if got, votes := agreed(c.spans); got != c.want || votes != c.votes {
			t.Errorf("%s: %v with %d votes, want %v with %d", c.name, got, votes, c.want, c.votes)
		}
	}
}

// Against the definition: no point lies in more spans, and every point of the answer lies
// in that many, as does no wider interval around it.
func TestAgreedByDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bounds := rapid.SliceOfN(rapid.Int64Range(0, 40), 2, 16).Draw(t, "bounds")
		var spans []span
		for i := 0; i+1 < len(bounds); i += 2 {
			spans = append(spans, span{min(bounds[i], bounds[i+1]), max(bounds[i], bounds[i+1])})
		}
		depth := func(halves int64) (n int) { // at half-integers too, between the bounds
			for _, s := range spans {
				if 2*s.lo <= halves && halves <= 2*s.hi {
					n++
				}
			}
			return n
		}
		most, narrowest := 0, int64(1<<62)
		for h := int64(0); h <= 80; h++ {
			most = max(most, depth(h))
		}
		for h := int64(0); h <= 80; h++ {
			if depth(h) == most && (h == 0 || depth(h-1) < most) {
				end := h
				for depth(end+1) == most {
					end++
				}
				narrowest = min(narrowest, end-h)
			}
		}
		got, votes := agreed(spans)
		if votes != most {
			t.Fatalf("%v: %d votes, want %d", spans, votes, most)
		}
		for h := 2 * got.lo; h <= 2*got.hi; h++ {
			if depth(h) != most {
				t.Fatalf("%v: %v is not within %d spans throughout", spans, got, most)
			}
		}
		if got.hi*2-got.lo*2 > narrowest {
			t.Fatalf("%v: %v is wider than %d halves", spans, got, narrowest)
		}
	})
}
