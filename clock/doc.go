// Package clock is the only package in this module that reads a clock.
//
// A computer has several clocks and they disagree. The monotonic clock (Mono) counts
// without ever going back and stands still while the machine sleeps. The boot clock counts
// the sleep too. The wall clock names the moment in UTC and is corrected by operators, by
// NTP and by hypervisors: by slewing, which changes its speed, or by a step, which makes
// it jump in either direction. Whoever subtracts two readings of the wall clock measures
// the corrections as well.
//
// How much time has passed is therefore asked of Mono, or of a Line, which dates the state
// of one process in microseconds. What time it is, is asked of a Guard: its wall time
// never goes back and absorbs steps at a bounded rate. Wall is the raw reading, for the
// labels of logs.
//
// The kinds of time are types of package algo (Mono, Wall, Store), so that one cannot
// stand in for another. Everything in this package is safe for concurrent use unless it
// says otherwise.
package clock
