package httplimit_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/httplimit"
	"github.com/escapement-io/escapement/memstore"
)

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })

// get shows what a handler answers to a peer that sends pairs of header names and values.
func get(h http.Handler, peer string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = peer
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Two requests an hour from one address.
func ExampleNew() {
	store := memstore.New()
	defer store.Close()
	limiter, err := escapement.New(store, escapement.Limit{Name: "per-address", Rate: escapement.PerHour(2)})
	if err != nil {
		log.Fatal(err)
	}
	h := httplimit.New(limiter, httplimit.RemoteAddr(httplimit.Clients{}))(hello)
	for range 3 {
		w := get(h, "192.0.2.1:4711")
		fmt.Println(w.Code, w.Header().Get("RateLimit-Policy"), w.Header().Get("RateLimit"))
	}
	fmt.Println(get(h, "192.0.2.2:4711").Code)
	// Output:
	// 200 "per-address";q=2;w=3600 "per-address";r=1;t=1800
	// 200 "per-address";q=2;w=3600 "per-address";r=0;t=3600
	// 429 "per-address";q=2;w=3600 "per-address";r=0;t=1800
	// 200
}

// A user's quota and everyone's: a request takes from both or from none.
func ExampleAll() {
	store := memstore.New()
	defer store.Close()
	user, err := escapement.New(store, escapement.Limit{Name: "user", Rate: escapement.PerHour(5)})
	if err != nil {
		log.Fatal(err)
	}
	everyone, err := escapement.New(store, escapement.Limit{Name: "everyone", Rate: escapement.PerHour(2)})
	if err != nil {
		log.Fatal(err)
	}
	h := httplimit.All([]httplimit.Keyed{
		{Limiter: user, Key: httplimit.Header("X-User")},
		{Limiter: everyone, Key: httplimit.Everyone},
	})(hello)
	for range 4 {
		w := get(h, "192.0.2.1:4711", "X-User", "ann")
		fmt.Println(w.Code, w.Header().Get("RateLimit"))
	}
	// Output:
	// 200 "user";r=4;t=720, "everyone";r=1;t=1800
	// 200 "user";r=3;t=1440, "everyone";r=0;t=3600
	// 429 "user";r=3;t=1440, "everyone";r=0;t=1800
	// 429 "user";r=3;t=1440, "everyone";r=0;t=1800
}

// One tenant's address at a time; the parts cannot run into each other.
func ExampleComposite() {
	key := httplimit.Composite(
		httplimit.Header("X-Tenant"),
		httplimit.RemoteAddr(httplimit.Clients{}),
	)
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "[2001:db8:1:2::99]:4711"
	r.Header.Set("X-Tenant", "acme")
	fmt.Println(key(r))
	// Output: 4:acme17:2001:db8:1:2::/64 true
}

// Behind proxies the address is the right-most one that no proxy of ours has. What
// stands left of it is the client's own text.
func ExampleRemoteAddr_trustedProxies() {
	key := httplimit.RemoteAddr(httplimit.Clients{
		Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	})
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "10.0.0.1:4711"
	r.Header.Set("X-Forwarded-For", "1.1.1.1, 198.51.100.5, 10.0.0.9")
	fmt.Println(key(r))

	r.RemoteAddr = "203.0.113.7:4711" // not a proxy: what it says is not believed
	fmt.Println(key(r))
	// Output:
	// 198.51.100.5 true
	// 203.0.113.7 true
}

// An API key where there is one, the address where there is none.
func ExampleFirstOf() {
	key := httplimit.FirstOf(
		httplimit.Header("X-Api-Key"),
		httplimit.RemoteAddr(httplimit.Clients{}),
	)
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "192.0.2.1:4711"
	fmt.Println(key(r))
	r.Header.Set("X-Api-Key", "k-123")
	fmt.Println(key(r))
	// Output:
	// 1:192.0.2.1 true
	// 0:k-123 true
}
