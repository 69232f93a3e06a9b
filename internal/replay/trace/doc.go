// Package trace reads records of past traffic: when a request came, under which keys it
// is counted, and what it costs. It reads CSV, JSON lines and the common and combined
// formats of access logs, compressed or not, finds out which one it has, parses in
// parallel and delivers in order. What is read allocates nothing per line.
package trace
