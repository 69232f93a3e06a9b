package clock

import (
	"time"

	"github.com/escapement-io/escapement/algo"
)

// base is where Mono counts from. It is read once, when the process starts.
var base = time.Now()

// Mono is the time since this process started, in nanoseconds of the monotonic clock. It
// never goes back, no step of the wall clock touches it, and it does not count the time
// during which the machine was suspended. It follows the slewing of the kernel clock
// (500 ppm by the kernel itself, up to 8.3 % under chrony's default maxslewrate).
//
// Inside a testing/synctest bubble it is the time of the bubble: readings from inside and
// outside do not compare.
func Mono() algo.Mono { return algo.Mono(time.Since(base)) }

// Since is the time that has passed on the monotonic clock since an earlier reading of it.
// It is never negative.
func Since(m algo.Mono) time.Duration { return time.Duration(max(0, Mono()-m)) }

// Until is the time left until a deadline, negative once it has passed. If the deadline
// carries a monotonic reading, as those of contexts and of Deadline do, no step of the wall
// clock changes the answer.
func Until(deadline time.Time) time.Duration { return time.Until(deadline) }

// Deadline is the moment d from now, for functions that ask for one, such as
// net.Conn.SetDeadline. It carries a monotonic reading: a step of the wall clock does not
// move it.
func Deadline(d time.Duration) time.Time { return time.Now().Add(d) }

// Wall is the raw wall clock, for the labels of logs and events and for nothing else: it
// jumps. It carries no monotonic reading, so two of them cannot pass for a measurement.
func Wall() time.Time { return time.Now().Round(0) }
