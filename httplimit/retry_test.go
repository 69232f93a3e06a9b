package httplimit

import (
	"net/http"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
)

func TestWriteRetryAfter(t *testing.T) {
	tests := []struct {
		wait time.Duration
		want string
	}{
		{0, "1"}, {1, "1"}, {time.Second, "1"}, {time.Second + 1, "2"},
		{599999 * time.Millisecond, "600"}, {time.Hour, "3600"},
		{escapement.Never, ""}, {escapement.Never - 1, "9223372037"},
	}
	for _, tt := range tests {
		h := http.Header{}
		WriteRetryAfter(h, tt.wait)
		if got := h.Get("Retry-After"); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.wait, got, tt.want)
		}
	}
}

func TestJitterOnlyAdds(t *testing.T) {
	least := func(int64) int64 { return 0 }
	most := func(n int64) int64 { return n - 1 }
	tests := []struct {
		percent    int
		random     func(int64) int64
		wait, want time.Duration
	}{
		{0, most, time.Minute, time.Minute},
		{10, least, 10 * time.Minute, 10 * time.Minute},
		{10, most, 10 * time.Minute, 11 * time.Minute},
		{10, most, 200 * time.Millisecond, 1200 * time.Millisecond},
		{500, most, time.Minute, 2 * time.Minute},
		{10, most, escapement.Never, escapement.Never},
	}
	for _, tt := range tests {
		if got := (Jitter{tt.percent, tt.random}).Add(tt.wait); got != tt.want {
			t.Errorf("%d %% of %v: %v, want %v", tt.percent, tt.wait, got, tt.want)
		}
	}
	seen := map[time.Duration]bool{}
	for range 1000 {
		w := Jitter{Percent: 10}.Add(10 * time.Minute)
		if w < 10*time.Minute || w > 11*time.Minute {
			t.Fatalf("%v is outside of 10 to 11 minutes", w)
		}
		seen[w] = true
	}
	if len(seen) < 900 {
		t.Errorf("%d different waits in 1000", len(seen))
	}
}
