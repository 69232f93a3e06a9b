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
// labels of logs. The kinds of time are types of package algo (Mono, Wall, Store), so that
// one cannot stand in for another.
//
// # How a step is found
//
// A step is an advance of the wall clock minus the advance of the monotonic clock minus
// the time slept. Two readings of the wall clock alone show nothing: a gap between them may
// be an idle minute. Each reading is bracketed, monotonic before and after, and believed
// only if the bracket is narrow; whatever delays the process widens the bracket and does
// not pass for a step. Guard.Run looks ten times a second, and at once when the kernel says
// that the clock was set. Events go to subscribers; package hook hands them to a program or
// a web address of yours.
//
// # How guarded time is corrected
//
// References (System, StoreTime, package ntp) each give an interval. Guarded time follows
// the first in order of preference that lies where most of them agree. An error of up to
// one second is slewed away over about ten minutes, at 500 to 5000 ppm. A larger one is
// followed if two references confirm it or if it has stood for ten minutes: forward at
// once, backward at half speed. Bound is the interval in which the truth lies, and State
// says what that is worth. Elsewhere than on Linux there is no boot clock, no bound from
// the kernel and no hint: a sleep then shows as a forward step, the state says so, and
// guarded time rests on the other references.
//
// A Monitor measures the skew to a store or any other clock once a minute and alarms on the
// absolute offset. It is never used to decide.
//
// # For your own code
//
// Caches, deduplication and sessions have the same trouble as rate limits: see the example
// of Line. The file lint.yml in this folder is a golangci-lint rule to copy; it keeps
// time.Now, time.Since and time.Until out of everything but the package that may use them.
// Package clocktest has a machine whose clocks obey a test.
//
// Everything here is safe for concurrent use unless it says otherwise.
package clock
