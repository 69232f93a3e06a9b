// Package algo holds the decisions. It is pure: no clock, no lock, no I/O, no floating
// point, and every intermediate result an integer below 2^53, so that a Lua script
// computes the same bits.
//
// A Plan is a limit compiled to integers. Plan.Take and its siblings judge a State at an
// instant and, if they admit, update it; a refusal changes nothing, whatever the pace of
// the caller. The Verdict computes the fields of the answer on demand.
//
// Most programs never import this package; stores, simulators and tests do. It may
// change until v1.
package algo
