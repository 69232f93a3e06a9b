package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/redistest"
)

// What a network can do to a decision, and what is known of it then. A decision is made
// once, whatever happens to its call.
func TestABadNetwork(t *testing.T) {
	const quick = 100 * time.Millisecond
	for _, c := range []struct {
		name, toxic string
		deadline    time.Duration
		outcome     escapement.Outcome
		charged     int64
	}{
		{"requests vanish, without a close", `{"type": "timeout", "stream": "upstream", "attributes": {"timeout": 0}}`, quick, escapement.Unknown, 0},
		{"replies vanish, without a close", `{"type": "timeout", "stream": "downstream", "attributes": {"timeout": 0}}`, quick, escapement.Unknown, 1},
		{"cut within the request", `{"type": "limit_data", "stream": "upstream", "attributes": {"bytes": 20}}`, patient, escapement.Unknown, 0},
		{"cut before the reply", `{"type": "limit_data", "stream": "downstream", "attributes": {"bytes": 0}}`, patient, escapement.Unknown, 1},
		{"cut within the reply", `{"type": "limit_data", "stream": "downstream", "attributes": {"bytes": 3}}`, patient, escapement.Unknown, 1},
		{"late within the deadline", `{"type": "latency", "stream": "downstream", "attributes": {"latency": 60}}`, patient, escapement.Decided, 1},
		{"later than the deadline", `{"type": "latency", "stream": "downstream", "attributes": {"latency": 400}}`, quick, escapement.Unknown, 1},
		{"a request that is late beyond the deadline", `{"type": "latency", "stream": "upstream", "attributes": {"latency": 400}}`, quick, escapement.Unknown, 1},
		{"a reply byte by byte", `{"type": "slicer", "stream": "downstream", "attributes": {"average_size": 1, "delay": 2000}}`, patient, escapement.Decided, 1},
		{"a request byte by byte", `{"type": "slicer", "stream": "upstream", "attributes": {"average_size": 1, "delay": 200}}`, patient, escapement.Decided, 1},
		{"a reply byte by byte beyond the deadline", `{"type": "slicer", "stream": "downstream", "attributes": {"average_size": 1, "delay": 20000}}`, quick, escapement.Unknown, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := redistest.Start(t, redistest.Options{})
			way := redistest.Between(t, srv)
			s := open(t, Config{Addrs: []string{way.Addr()}, Deadline: c.deadline})
			p := plan(t, yearly("way", 1000))
			redistest.Eventually(t, "a decision", func() bool {
				return one(t, s, escapement.Claim{Plan: p, Key: "warm", Cost: 1}).Outcome == escapement.Decided
			})
			// The keeper's stamp, once a second, may meet the fault first: then the connection
			// is not there when the decision is made, and another key tries again.
			for _, key := range []string{"a", "b", "c"} {
				way.Spoil(c.toxic)
				a := one(t, s, escapement.Claim{Plan: p, Key: key, Cost: 1})
				way.Mend()
				want := c.charged
				if a.Outcome == escapement.NotRun {
					want = 0
				}
				if n := used(t, s, p, key); n != want {
					t.Fatalf("outcome %d, %v: %d units are taken, want %d", a.Outcome, a.Err, n, want)
				}
				if (a.Outcome == escapement.Decided) != (a.Err == nil) || a.Err != nil && !errors.Is(a.Err, escapement.ErrStoreUnavailable) {
					t.Fatalf("outcome %d, %v", a.Outcome, a.Err)
				}
				if a.Outcome == c.outcome {
					return
				}
				t.Logf("outcome %d, %v; want %d", a.Outcome, a.Err, c.outcome)
			}
			t.Error("three decisions had another outcome")
		})
	}
}
