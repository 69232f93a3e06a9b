// Package redisstore keeps limits in Redis: single, Cluster or Sentinel.
//
//	store, err := redisstore.Open(redisstore.Config{Addrs: []string{"127.0.0.1:6379"}})
//	…
//	defer store.Close()
//	limiter, err := escapement.New(store, limit)
//
// Package fallback before it answers while it is away; packages lease and batch before it
// spare most of the calls.
//
// Every decision is one script on the server, dated by the server's own clock, once. A
// clock can step, and a failover changes it; so each call carries bounds on the instant
// that the caller vouches for by its monotonic clock, and the script holds the server's
// reading between them. A step of the store's clock mints nothing and locks nobody out;
// the error that remains is measured (Snapshot).
//
// A call takes effect at most once. It is repeated only if the server proved that
// nothing ran; a call that was sent and not answered is Unknown and counts against the
// caller. Every decision has its own deadline; while the server is away a breaker
// answers at once and memory stays bounded.
package redisstore
