package memstore

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// FuzzStore puts claims of any kind to a store with a small cap: no panic, nothing above
// the cap, and every answer decided or explained.
func FuzzStore(f *testing.F) {
	f.Add("k", int64(1), uint8(0), int64(0), int64(0), int64(0))
	f.Add("", int64(-1), uint8(9), int64(-5), int64(-1), int64(-1))
	f.Add("\xff\x00", int64(1<<53-1), uint8(2), int64(1<<62), int64(1<<62), int64(1<<60))
	f.Add("long", int64(7), uint8(3), int64(1), int64(1_800_000_000_000_000), int64(3))
	var plans []*escapement.Plan
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 12 {
		plans = append(plans, compile(f, randomLimit(r, string(rune('a'+i%6)))))
	}
	c := newManual()
	s := newStore(f, WithClock(c), WithKeys(), WithMaxKeys(8))
	s.Close() // what the test counts must not be swept meanwhile
	f.Fuzz(func(t *testing.T, key string, cost int64, mode uint8, patience, at, units int64) {
		for _, p := range plans {
			one := escapement.Claim{Plan: p, Key: key, Cost: cost, Mode: escapement.Mode(mode), Patience: time.Duration(patience),
				Receipt: algo.Receipt{At: algo.Store(at), Units: units}}
			var a [2]escapement.Answer
			s.Decide(t.Context(), []escapement.Request{{Claims: []escapement.Claim{one}}, {Claims: []escapement.Claim{one, {Plan: p, Key: "x", Cost: 1}}}}, a[:])
			for i := range a {
				if (a[i].Outcome == escapement.Decided) == (a[i].Err != nil) || a[i].Outcome == escapement.Unknown {
					t.Fatalf("outcome %d with %v", a[i].Outcome, a[i].Err)
				}
				for j := range a[i].Parts {
					d := &a[i].Parts[j]
					if d.Remaining() < 0 || d.RetryAfter() < 0 || d.ResetAfter() < 0 || d.Delay() < 0 {
						t.Fatalf("%+v: %+v", one, d)
					}
				}
			}
			if n := s.Stats().Keys; n > 8 || n != int64(count(s)) {
				t.Fatalf("%d keys counted, %d there, the cap is 8", n, count(s))
			}
			c.Advance(37 * time.Millisecond)
			if cost%16 == 0 {
				sweepAll(s)
			}
		}
	})
}
