package memstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/memstore"
)

func Example() {
	store := memstore.New()
	defer store.Close()
	limiter, err := escapement.New(store, escapement.Limit{Name: "login", Rate: escapement.PerHour(2)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		d, err := limiter.Take(context.Background(), "alice", 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Allowed, d.Remaining(), "left, retry after", d.RetryAfter().Round(time.Minute))
	}
	// Output:
	// true 1 left, retry after 0s
	// true 0 left, retry after 0s
	// false 0 left, retry after 30m0s
}

func ExampleStore_Keys() {
	store := memstore.New(memstore.WithKeys())
	defer store.Close()
	limiter, err := escapement.New(store, escapement.Limit{Name: "login", Rate: escapement.PerHour(2)})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := limiter.Take(context.Background(), "alice", 2); err != nil {
		fmt.Println(err)
		return
	}
	keys, err := store.Keys("login", "al")
	if err != nil {
		fmt.Println(err)
		return
	}
	for key := range keys {
		fmt.Println(key, store.Reset("login", key))
	}
	// Output: alice true
}
