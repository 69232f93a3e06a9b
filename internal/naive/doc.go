// Package naive holds recipes of rate limiting that are in circulation, as they are in
// circulation: each reads the wall clock or rounds, and each fails on inputs that the tests
// of algo and clock, the drills and docs/clocks.md show. Nothing that limits uses it.
package naive

// Recipe is a limiter that is told the time. Take asks for one unit at an instant of the
// wall clock, in microseconds of the Unix epoch, and reports whether it is admitted.
type Recipe interface {
	Take(us int64) bool
}
