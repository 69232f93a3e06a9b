// Package lease admits against quota that a store handed out in advance, so that most
// requests ask nobody and the limit still holds: at most the count in every fixed window,
// or in every span of a rolling one, whatever the network, the instances and their clocks
// do. What they do costs is quota that is left unused. If its Config says so, a Ledger goes
// on while the store does not answer, by its instance's part of the demand: then nothing but
// that part holds it.
//
// A Store is an escapement.Store around the ledgers of many keys; it lends from an
// escapement.Lender, such as a redisstore.Store:
//
//	leases := lease.NewStore(redis, redis, lease.Options{})
//	defer leases.Close(ctx) // gives back what is held; before redis.Close
//	limiter, err := escapement.New(leases, escapement.Limit{
//		Name: "per-client", Algorithm: escapement.FixedWindow, Rate: escapement.PerSecond(500),
//		Sync: 200 * time.Millisecond,
//	})
//
// For LocalShare, and for answers while the store is away, put package fallback before it.
//
// A Ledger is one instance's share of one key. It is pure: instants on the monotonic
// clock are arguments, it starts nothing and sends nothing. Whoever owns it calls Admit
// for requests, Poll when Next says or when a request was told to wait, sends the Ask
// that Poll returns at most once, and hands the reply to Absorb or the silence to Failed.
// A Ledger is not safe for concurrent use.
package lease
