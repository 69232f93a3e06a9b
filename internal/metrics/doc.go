// Package metrics shows what a gateway decided and what its clocks did: as Prometheus
// metrics, as the document of /v1/clock, and as one log line for each event of a clock.
//
// Everything is read from counters that others keep, at the moment of a scrape. A decision
// pays nothing for it.
package metrics
