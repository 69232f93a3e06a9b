package gateway

import (
	"fmt"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
)

// TestStamps: an answer tells the instant of its decision on the store's line and the
// window it counts in, and only where that was asked for.
func TestStamps(t *testing.T) {
	clock := newScript()
	limit := func() *escapement.Limit {
		return &escapement.Limit{Name: "l", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 1, Per: 10 * time.Second}}
	}
	w := serve(t, clock, oneRoute(native(*limit(), key("remote_addr"))), WithStamps())
	clock.advance(3 * time.Second)
	at, window := int64(boundary)+3_000_000, int64(boundary)
	for _, code := range []int{200, 429} {
		r := w.get("/")
		if got, want := r.header.Get(StampField), fmt.Sprintf("at=%d;window=%d;basis=exact", at, window); r.code != code || got != want {
			t.Errorf("%d %q, want %d %q", r.code, got, code, want)
		}
	}
	quiet := serve(t, clock, oneRoute(native(*limit(), key("remote_addr"))))
	if got := quiet.get("/").header.Values(StampField); got != nil {
		t.Errorf("unasked: %q", got)
	}
}
