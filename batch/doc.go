// Package batch admits against a remaining that the store told, counts locally, and
// reports every interval: one round trip per instance and interval in place of one per
// request. Instances do not see each other between reports, so together they admit more
// than the limit: under steady load about (N-1)*r*s per window, N instances with r
// requests a second each and s between reports; at worst N times the limit. Package
// lease has the same cost and no such error.
//
// No count is lost or counted twice: a report is numbered, repeated until it is answered,
// and counts in the window in which it happened.
//
// A Store is an escapement.Store around the ledgers of many keys; it reports to an
// escapement.Collector, such as a redisstore.Store:
//
//	reports := batch.NewStore(redis, redis, batch.Options{})
//	defer reports.Close(ctx) // reports what was not; before redis.Close
//	limiter, err := escapement.New(reports, escapement.Limit{
//		Name: "per-client", Algorithm: escapement.SlidingWindow, Rate: escapement.PerMinute(500),
//		Sync: 3 * time.Second, SyncMode: escapement.SyncDelayed,
//	})
//
// A Ledger is one instance's view of one key. It is pure: instants on the monotonic clock
// are arguments, it starts nothing and sends nothing. Whoever owns it calls Admit for
// requests, Poll when Next says or when a request was told to wait, sends the Flush that
// Poll returns, and hands the reply to Absorb or the silence to Failed. A Ledger is not
// safe for concurrent use.
package batch
