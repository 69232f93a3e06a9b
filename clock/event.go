package clock

import (
	"fmt"
	"strings"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// Kind says what was noticed about the clocks of this machine.
type Kind string

const (
	// Step: the wall clock was set. Size is how far, positive for forward.
	Step Kind = "step"
	// Suspend: the machine slept. Size is for how long.
	Suspend Kind = "suspend"
	// Leap: the wall clock was set by a leap second.
	Leap Kind = "leap"
	// Rebased: guarded time was moved to where the references say it belongs, because
	// slewing there would take too long. Size is how far, positive for forward.
	Rebased Kind = "rebased"
	// Switched: guarded time follows another reference than before. Cause names both.
	Switched Kind = "switched"
	// Unclear: the clocks could not be read closely enough together to judge them. It is
	// reported once for a run of unclear checks; Snapshot counts all of them.
	Unclear Kind = "unclear"
)

// Level says who should care.
type Level string

const (
	Info     Level = "info"     // a line in a log
	Warning  Level = "warning"  // somebody should look
	Critical Level = "critical" // somebody should look now
)

// Event is something that was noticed about the clocks. Steps are exact to within half of
// Width plus the drift allowance of a check.
type Event struct {
	Kind  Kind  `json:"kind"`
	Level Level `json:"level"`
	// Size is signed for Step, Leap and Rebased, the length for Suspend, else 0.
	Size time.Duration `json:"size_ns"`
	// Width is the width of the bracket of the reading that showed it.
	Width time.Duration `json:"width_ns"`
	// Cause is what is known about why, or by what means it was seen.
	Cause string `json:"cause"`
	// At is when it was seen, on the monotonic clock.
	At algo.Mono `json:"at_mono_ns"`
	// Since is how long before At the clocks were last seen in order: it happened within.
	Since time.Duration `json:"since_ns"`
	// Before and After are the raw wall clock at At as it would have been, and as it is,
	// in Unix nanoseconds.
	Before int64 `json:"wall_before_ns"`
	After  int64 `json:"wall_after_ns"`
}

// Direction is "forward", "backward" or "" for events without one.
func (e Event) Direction() string {
	switch {
	case e.Size > 0:
		return "forward"
	case e.Size < 0:
		return "backward"
	}
	return ""
}

// String is one line for a log.
func (e Event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "clock %s", e.Kind)
	if e.Size != 0 {
		sign := ""
		if e.Size > 0 {
			sign = "+"
		}
		fmt.Fprintf(&b, " %s%v", sign, e.Size)
	}
	if e.Cause != "" {
		fmt.Fprintf(&b, ": %s", e.Cause)
	}
	fmt.Fprintf(&b, " (bracket %v)", e.Width)
	return b.String()
}

// Kinds lists every kind of event.
func Kinds() []Kind { return []Kind{Step, Suspend, Leap, Rebased, Switched, Unclear} }
