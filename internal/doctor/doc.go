// Package doctor judges whether the time of a host, and of a fleet, is fit to limit by.
//
// Gather collects Facts: from the kernel, from files below a root, by watching the clocks
// for a while, and over the network. Each check is a pure function of them that says what
// was found, why it matters, with a number, and which lines to change. Where the facts do
// not tell, a check says so: unknown is never fine.
package doctor
