// Package sim runs instances, a store, a network and clocks, each with its faults, in
// virtual time. The ledgers of packages lease and batch and the records of package algo
// run in it unchanged; what is simulated is what surrounds them. One seed gives one
// history, on one thread, the same everywhere.
package sim
