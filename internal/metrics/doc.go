// Package metrics shows what a gateway decided and what its clocks did: as Prometheus
// metrics, as the document of /v1/clock, and as one log line for each event of a clock.
//
// Everything is read from what others count, at the moment of a scrape.
package metrics
