package clock

import "slices"

// span is a closed interval [lo, hi].
type span struct{ lo, hi int64 }

func (s span) meets(o span) bool { return s.lo <= o.hi && o.lo <= s.hi }
func (s span) mid() int64        { return s.lo + (s.hi-s.lo)/2 }

// agreed is Marzullo's algorithm: the smallest interval that lies in as many of the spans
// as any point does, and in how many. Of several such intervals it takes the narrowest,
// then the lowest. It returns 0 votes for no spans; spans with hi < lo are ignored.
func agreed(spans []span) (span, int) {
	type edge struct {
		at    int64
		delta int // +1 opens, -1 closes
	}
	edges := make([]edge, 0, 2*len(spans))
	for _, s := range spans {
		if s.lo <= s.hi {
			edges = append(edges, edge{s.lo, +1}, edge{s.hi, -1})
		}
	}
	// At one point, opening comes first: closed intervals that touch meet.
	slices.SortFunc(edges, func(a, b edge) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return b.delta - a.delta
	})
	var best span
	votes, depth := 0, 0
	for i, e := range edges {
		depth += e.delta
		if e.delta < 0 || depth < votes {
			continue
		}
		// The last edge is a closing one, so there is a next, and at a new depth that is
		// the greatest so far it closes or opens further.
		s := span{e.at, edges[i+1].at}
		if depth > votes || s.hi-s.lo < best.hi-best.lo {
			best, votes = s, depth
		}
	}
	return best, votes
}
