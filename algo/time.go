package algo

import "fmt"

// The three kinds of time. They are types so that one cannot stand in for another:
// only package clock reads clocks, and only a store's line dates shared state.

// Mono is nanoseconds on this process's monotonic clock, counted from the start of the
// process. It is never stored and never sent: no other process can interpret it.
type Mono int64

// Wall is nanoseconds since the Unix epoch on the guarded wall clock. It labels logs
// and places calendar windows; it never measures how much time has passed.
type Wall int64

// Store is microseconds on the time line of one store: the only instants that limiter
// state holds. The line of an in-memory store starts at the wall time of its creation
// and advances with the monotonic clock; the line of a shared store is the store's own
// clock. Instants of two stores do not compare. Exact in a double until the year 2255.
type Store int64

// Span is microseconds between two instants of one line.
type Span int64

// written is a span as configurations have it, such as "250ms".
func written(s Span) string {
	switch {
	case s%1_000_000 == 0:
		return fmt.Sprintf("%ds", int64(s/1_000_000))
	case s%1000 == 0:
		return fmt.Sprintf("%dms", int64(s/1000))
	}
	return fmt.Sprintf("%dµs", int64(s))
}

// Never is the wait for something that no amount of waiting can bring. Waits longer than
// MaxInstant, which no instant can end, are Never too.
const Never Span = 1<<63 - 1

// MaxInstant is the last instant that every plan can represent (the year 2112).
const MaxInstant Store = 1<<52 - 1

// MaxInt is the largest integer that a double, and so a Lua script, holds exactly
// together with all its neighbours. Every intermediate result in this package stays
// at or below it.
const MaxInt int64 = 1<<53 - 1
