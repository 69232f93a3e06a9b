package gateway

// tally is what a limit has answered up to some moment; it only grows.
type tally struct{ decided, refused, fallback int64 }

const (
	spanSeconds = 10 // what a share is taken over
	keptSeconds = 60 // how long ago the span of the highest share may have ended
	fewest      = 10 // decisions below which a span has no share
)

// recent is what a limit refused of late: its tally at the end of each second, and the
// share refused in the span that ended there. The counters of a limit begin at zero, and
// so does the zero value.
type recent struct {
	last   int64                  // the newest second
	tally  [spanSeconds + 1]tally // by second
	shares [keptSeconds]float32   // by the second in which the span ended
}

// add takes in the tally at a second, from 1. Nothing happened in seconds that were left out: the
// process stood still. A second is taken in once.
func (r *recent) add(second int64, t tally) {
	if second <= r.last {
		return
	}
	before := r.tally[r.last%int64(len(r.tally))]
	// Of a long pause as many seconds are enough as there are places for shares, after as
	// many as those need to begin with.
	for s := max(r.last+1, second-keptSeconds-int64(len(r.tally))); s < second; s++ {
		r.put(s, before)
	}
	r.put(second, t)
	r.last = second
}

func (r *recent) put(second int64, t tally) {
	n := int64(len(r.tally))
	from := r.tally[(second+1)%n] // of spanSeconds ago
	r.tally[second%n] = t
	r.shares[second%keptSeconds] = share(from, t)
}

func share(from, to tally) float32 {
	n := to.decided - from.decided
	if n < fewest {
		return 0
	}
	return float32(min(1, float64(to.refused-from.refused)/float64(n))) // counters are not read at one moment
}

// now is the share refused in the span that ended last.
func (r *recent) now() float64 { return float64(r.shares[r.last%keptSeconds]) }

// highest is the highest share of the spans that ended within the last minute.
func (r *recent) highest() float64 {
	most := float32(0)
	for _, s := range r.shares {
		most = max(most, s)
	}
	return float64(most)
}

// fellBack reports whether on_failure answered any request of the span that ended last.
func (r *recent) fellBack() bool {
	n := int64(len(r.tally))
	return r.tally[r.last%n].fallback > r.tally[(r.last+1)%n].fallback
}
