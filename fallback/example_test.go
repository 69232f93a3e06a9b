package fallback_test

import (
	"context"
	"fmt"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/fallback"
	"github.com/escapement-io/escapement/memstore"
)

// A limit of 10 an hour that two instances share. While the store is away, each of them
// admits 5 by itself.
func Example() {
	ctx := context.Background()
	// In a program this is a redisstore.Store, and the number its Instances.
	shared := &away{Store: memstore.New(), gone: true}
	local := memstore.New()
	defer local.Close()

	store := fallback.New(shared, fallback.NewPolicy(local, fallback.Fixed(2)))
	limiter, err := escapement.New(store, escapement.Limit{Name: "orders", Rate: escapement.PerHour(10), OnFailure: escapement.LocalShare})
	if err != nil {
		panic(err)
	}
	for range 6 {
		d, _ := limiter.Take(ctx, "alice", 1)
		fmt.Println(d.Allowed, d.Basis(), d.Remaining())
	}
	// Output:
	// true fallback 4
	// true fallback 3
	// true fallback 2
	// true fallback 1
	// true fallback 0
	// false fallback 0
}
