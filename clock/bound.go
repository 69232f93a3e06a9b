package clock

import (
	"math"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// State says how far guarded time can be trusted.
type State string

const (
	// Unknown: the references have not agreed since the start. Guarded time follows the
	// raw wall clock, at a bounded rate, and nothing bounds its error.
	Unknown State = "unknown"
	// Synchronised: the references agree and guarded time is where they say.
	Synchronised State = "synchronised"
	// Slewing: the references agree and guarded time is on its way there.
	Slewing State = "slewing"
	// Holdover: the references have agreed, but do no longer, or they ask for more than
	// can be believed yet. Guarded time goes on by the monotonic clock and the bound grows.
	Holdover State = "holdover"
	// Disrupted: time may have passed that was not counted, and no reference has been
	// asked since. The bound says nothing.
	Disrupted State = "disrupted"
)

// States lists every state.
func States() []State { return []State{Unknown, Synchronised, Slewing, Holdover, Disrupted} }

// Interval is where the true time lies, if the references keep their promises. In the
// states Unknown and Disrupted it is all of time.
type Interval struct {
	Earliest algo.Wall `json:"earliest_unix_ns"`
	Latest   algo.Wall `json:"latest_unix_ns"`
	State    State     `json:"state"`
}

// Bounded reports whether the interval says anything.
func (i Interval) Bounded() bool { return i.State != Unknown && i.State != Disrupted }

// settledWithin is how near the middle of the interval guarded time counts as there.
const settledWithin = int64(time.Millisecond)

// held is the last agreement of the references, as the readers of Bound see it.
type held struct {
	span  span // Unix time minus monotonic time
	at    algo.Mono
	state State
	drift int64 // parts per 10^9
}

// interval carries an agreement forward to m, where guarded time reads now. It grows with
// the drift of the clocks and always contains now.
func (h held) interval(m algo.Mono, now int64) Interval {
	if h.state == Unknown || h.state == Disrupted {
		return Interval{Earliest: math.MinInt64, Latest: math.MaxInt64, State: h.state}
	}
	grown := perBillion(max(0, int64(m-h.at)), h.drift)
	state := h.state
	if off := now - int64(m) - h.span.mid(); state == Synchronised && abs(off) > settledWithin {
		state = Slewing
	}
	return Interval{
		Earliest: algo.Wall(min(h.span.lo-grown+int64(m), now)),
		Latest:   algo.Wall(max(h.span.hi+grown+int64(m), now)),
		State:    state,
	}
}
