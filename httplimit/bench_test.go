package httplimit

import (
	"context"
	"net/http"
	"testing"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/memstore"
)

// discard is a response writer that costs next to nothing.
type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

// BenchmarkMiddleware is what limits add to a handler that does nothing; limiter/take is
// the decision alone.
func BenchmarkMiddleware(b *testing.B) {
	store := memstore.New()
	defer store.Close()
	always := escapement.Limit{Name: "a", Rate: escapement.PerSecond(1_000_000), Burst: 1_000_000_000}
	other := always
	other.Name = "b"
	never := escapement.Limit{Name: "c", Rate: escapement.PerHour(1)}
	a, o, n := limiter(b, store, always), limiter(b, store, other), limiter(b, store, never)
	addr := RemoteAddr(Clients{})
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, bb := range []struct {
		name string
		h    http.Handler
	}{
		{"handler", nothing},
		{"one/ietf", New(a, addr)(nothing)},
		{"one/x", New(a, addr, WithStyle(X))(nothing)},
		{"one/none", New(a, addr, WithStyle(None))(nothing)},
		{"two/ietf", All([]Keyed{{Limiter: a, Key: addr}, {Limiter: o, Key: Everyone}})(nothing)},
		{"refused/ietf", New(n, addr)(nothing)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			w, r := &discard{http.Header{}}, request("192.0.2.1:4711")
			b.ReportAllocs()
			for b.Loop() {
				clear(w.h)
				bb.h.ServeHTTP(w, r)
			}
		})
	}
	b.Run("limiter/take", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if d, err := a.Take(context.Background(), "192.0.2.1", 1); err != nil || !d.Allowed {
				b.Fatal(d.Allowed, err)
			}
		}
	})
}
