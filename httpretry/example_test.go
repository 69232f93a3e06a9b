package httpretry_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/httplimit"
	"github.com/escapement-io/escapement/httpretry"
	"github.com/escapement-io/escapement/memstore"
)

// limited is a server that admits one request at a time, at a rate.
func limited(rate escapement.Rate) (srv *httptest.Server, stop func()) {
	store := memstore.New()
	limiter, err := escapement.New(store, escapement.Limit{Name: "everyone", Rate: rate, Burst: 1})
	if err != nil {
		log.Fatal(err)
	}
	srv = httptest.NewServer(httplimit.New(limiter, httplimit.Everyone)(http.NotFoundHandler()))
	return srv, func() { srv.Close(); _ = store.Close() }
}

// The second request is refused, waits as long as it was told, and is admitted.
func Example() {
	srv, stop := limited(escapement.PerSecond(1))
	defer stop()
	retrying, err := httpretry.New(nil, httpretry.Config{
		Observe: func(e httpretry.Event) {
			fmt.Println("attempt", e.Attempt, "status", e.Status, "told", e.Told, "retry", e.Retry, e.Reason)
		},
	})
	if err != nil {
		log.Fatal(err) // everything that is out of range, and what to use
	}
	client := &http.Client{Transport: retrying, Timeout: 30 * time.Second}
	for range 2 {
		resp, err := client.Post(srv.URL, "text/plain", strings.NewReader("hello"))
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
		fmt.Println(resp.StatusCode)
	}
	// Output:
	// 404
	// attempt 1 status 429 told 1s retry true told
	// 404
}

// A request that has less time than it is told to wait gets the refusal at once.
func Example_deadline() {
	srv, stop := limited(escapement.PerHour(1))
	defer stop()
	retrying, err := httpretry.New(nil, httpretry.Config{MaxWait: 2 * time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: retrying}
	for range 2 {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		r, err := http.NewRequestWithContext(ctx, "GET", srv.URL, nil)
		if err != nil {
			log.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
		cancel()
		fmt.Printf("%d %q\n", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	// Output:
	// 404 ""
	// 429 "3600"
}

// A small client in a large fleet: without traffic it earns a retry a minute, and it
// saves up two.
func ExampleBudget() {
	_, err := httpretry.New(nil, httpretry.Config{
		Budget: httpretry.Budget{Percent: 5, Floor: time.Minute, Burst: 2},
	})
	fmt.Println(err)

	_, err = httpretry.New(nil, httpretry.Config{
		MaxAttempts: -1,
		Budget:      httpretry.Budget{Percent: 150},
	})
	fmt.Println(err)
	// Output:
	// <nil>
	// httpretry: MaxAttempts is -1: use 1 to 100, or 0 for 4; Budget.Percent is 150: use -1 to 100, or 0 for 10
}
