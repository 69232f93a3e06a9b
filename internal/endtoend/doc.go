// Package endtoend tests the binary as users run it: real processes, real sockets, and
// clocks that are stepped while it works.
package endtoend
