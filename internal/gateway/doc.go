// Package gateway is an HTTP reverse proxy whose one task is to hold the limits of a
// configuration.
//
// A request is matched to a route, its consumer is established, and all limits of the
// route are asked in one request to the store: it is charged to every one of them or to
// none. Only what they admit reaches the upstream. Nothing is charged for a request that
// is refused for another reason, such as a path without a route or a wrong API key.
//
// Everything that a configuration decides lives in a snapshot. Reload builds a new one
// and swaps it in; requests in flight end under the snapshot they began with, limits that
// did not change keep their plans and so their counters, and a configuration that cannot
// be compiled changes nothing.
//
// No clock is read here. The store dates its decisions; timeouts are timers.
package gateway
