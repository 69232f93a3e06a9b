package clock

import (
	"time"

	"github.com/escapement-io/escapement/algo"
)

const (
	sampleLife    = time.Hour // an older sample says nothing
	switchAfter   = 2         // rounds in a row that the reference followed must be wrong
	confirmations = 2         // independent references that make a rebase safe
)

// candidate is one reference as the choice sees it.
type candidate struct {
	group  string
	sample Sample
	known  bool // sample holds
}

// consensus is what the references say together at one instant. Its span is Unix time
// minus monotonic time, so that it stays true as time passes.
type consensus struct {
	span   span
	votes  int    // groups in agreement
	quorum bool   // they are enough to be believed
	member []bool // per candidate: whether it agrees
}

// confer finds the smallest interval in which most groups of references agree. References
// of one group, such as stores synchronised by the same source, count once. Enough is a
// majority of the groups that have data, and at least two, unless only one is configured.
func confer(m algo.Mono, cs []candidate, driftPPB int64) consensus {
	out := consensus{member: make([]bool, len(cs))}
	spans := make([]span, len(cs))
	var groups []string
	var known int
	byGroup := map[string][]span{}
	for i, c := range cs {
		if _, seen := byGroup[c.group]; !seen {
			groups = append(groups, c.group)
			byGroup[c.group] = nil
		}
		if !c.known || m-c.sample.At > algo.Mono(sampleLife) {
			continue
		}
		e, at := errAt(c.sample, m, driftPPB), line(c.sample)
		spans[i] = span{at - e, at + e}
		byGroup[c.group] = append(byGroup[c.group], spans[i])
		out.member[i] = true
	}
	var each []span
	for _, name := range groups {
		if s, votes := agreed(byGroup[name]); votes > 0 {
			each = append(each, s)
			known++
		}
	}
	out.span, out.votes = agreed(each)
	out.quorum = out.votes > 0 && out.votes > known/2 && out.votes >= min(confirmations, len(groups))
	for i := range cs {
		out.member[i] = out.member[i] && spans[i].meets(out.span)
	}
	return out
}

// chooser decides which reference is followed: the first in order of preference that
// agrees with the majority. It stays with one that still agrees, better or not, and leaves
// one that does not after two rounds, so that a single bad reading moves nobody.
type chooser struct {
	current int
	wrong   int // rounds in a row that current was outvoted
}

// round takes the next consensus and reports whether another reference is now followed.
func (c *chooser) round(con consensus) bool {
	if !con.quorum || con.member[c.current] {
		c.wrong = 0
		return false
	}
	if c.wrong++; c.wrong < switchAfter {
		return false
	}
	for i, in := range con.member {
		if in {
			c.current, c.wrong = i, 0
			return true
		}
	}
	return false
}

// target is where guarded time belongs, as Unix time minus monotonic time: the reading of
// the reference that is followed, held to the interval in which the majority agrees.
func (c *chooser) target(cs []candidate, con consensus) int64 {
	if !con.quorum {
		return 0
	}
	if now := cs[c.current]; now.known {
		return min(max(line(now.sample), con.span.lo), con.span.hi)
	}
	return con.span.mid()
}
