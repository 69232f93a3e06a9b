// Package replay finds out what limits would have done to the traffic of a trace. Time is
// the trace's own, so a day takes seconds; decisions are those of package algo, state is
// exact for every key, and memory grows with keys and not with lines.
package replay
