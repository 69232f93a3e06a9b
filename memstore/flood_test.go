package memstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
)

func claim(p *escapement.Plan, key string, cost int64) escapement.Claim {
	return escapement.Claim{Plan: p, Key: key, Cost: cost}
}

func mustTake(t *testing.T, s escapement.FastStore, p *escapement.Plan, key string, cost int64) escapement.Decision {
	t.Helper()
	d, err := s.DecideOne(context.Background(), claim(p, key, cost))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// sweepAll does at once what the sweeper does in a cycle.
func sweepAll(s *Store) {
	older := s.newest()
	for i := range s.shards {
		s.tidy(&s.shards[i])
	}
	s.retire(older)
}

func TestCapRefusesOnlyUnknownKeys(t *testing.T) {
	for _, opts := range [][]Option{{}, {WithKeys()}} {
		c := newManual()
		s := newStore(t, append(opts, WithClock(c), WithMaxKeys(1000))...)
		p := compile(t, escapement.Limit{Name: "cap", Rate: escapement.PerMinute(2)})
		mustTake(t, s, p, "limited", 2)
		refused := 0
		for i := range 5000 {
			d, err := s.DecideOne(context.Background(), claim(p, strconv.Itoa(i), 1))
			if err == nil {
				continue
			}
			refused++
			if !errors.Is(err, escapement.ErrFull) || d.Allowed {
				t.Fatalf("allowed %v, %v", d.Allowed, err)
			}
		}
		st := s.Stats()
		if st.Keys != 1000 || st.MaxKeys != 1000 || refused != 4001 || st.Refused != 4001 || st.Dropped != 0 {
			t.Errorf("%+v after %d refusals", st, refused)
		}
		if d := mustTake(t, s, p, "limited", 1); d.Allowed {
			t.Error("a flood of keys freed a limited one")
		}
		if d := mustTake(t, s, p, "0", 1); !d.Allowed {
			t.Error("a known key is refused at the cap")
		}
		if d := mustTake(t, s, p, "unknown", 0); !d.Allowed {
			t.Error("a question that records nothing needs no room")
		}
		if d := mustTake(t, s, p, "unknown", 3); d.Allowed {
			t.Error("a cost above the capacity was allowed")
		}
		// Once what was used is back, the old records make room by themselves.
		c.Advance(2 * time.Minute)
		for i := range 5000 {
			mustTake(t, s, p, strconv.Itoa(1_000_000+i), 0)
		}
		kept := 0
		for i := range 1000 {
			if _, err := s.DecideOne(context.Background(), claim(p, strconv.Itoa(2_000_000+i), 1)); err == nil {
				kept++
			}
		}
		if kept < 900 {
			t.Errorf("only %d of 1000 new keys found room among records that no longer count", kept)
		}
	}
}

func TestCapAppliesOnFailure(t *testing.T) {
	s := newStore(t, WithClock(newManual()), WithMaxKeys(1))
	for _, f := range []escapement.OnFailure{escapement.Deny, escapement.Allow} {
		l, err := escapement.New(s, escapement.Limit{Name: "on-failure", Rate: escapement.PerHour(1), OnFailure: f})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Take(t.Context(), "first", 1); err != nil {
			t.Fatal(err)
		}
		d, err := l.Take(t.Context(), "second", 1)
		if !errors.Is(err, escapement.ErrFull) || d.Basis() != escapement.Fallback || d.Allowed != (f == escapement.Allow) {
			t.Errorf("%v: allowed %v on basis %v, %v", f, d.Allowed, d.Basis(), err)
		}
	}
}

// A group at the cap is charged whole or not at all, also when making room for one claim
// drops the record another was judged on.
func TestCapAndGroups(t *testing.T) {
	r := source(t)
	for range 300 {
		c := newManual()
		s := newStore(t, WithClock(c), WithMaxKeys(4))
		s.Close()
		p := compile(t, escapement.Limit{Name: "tight", Rate: escapement.PerSecond(10)})
		dark := compile(t, escapement.Limit{Name: "dark", Rate: escapement.PerSecond(10), Shadow: true})
		for range 30 {
			claims := make([]escapement.Claim, 2+r.IntN(4))
			before := map[string]int64{}
			cost := map[string]int64{}
			for i := range claims {
				claims[i] = claim(p, strconv.Itoa(r.IntN(7)), 1+r.Int64N(3))
				if r.IntN(4) == 0 {
					claims[i].Plan = dark
				} else {
					cost[claims[i].Key] += claims[i].Cost
				}
			}
			for k := range cost {
				d := mustTake(t, s, p, k, 0)
				before[k] = d.Remaining()
			}
			var a [1]escapement.Answer
			s.Decide(t.Context(), []escapement.Request{{Claims: claims}}, a[:])
			if (a[0].Outcome == escapement.Decided) != (a[0].Err == nil) {
				t.Fatalf("outcome %d, %v", a[0].Outcome, a[0].Err)
			}
			for k, spent := range cost {
				d := mustTake(t, s, p, k, 0)
				want := before[k]
				if a[0].Admitted {
					want -= spent
				}
				if d.Remaining() != want {
					t.Fatalf("admitted %v, %v: key %s has %d left, want %d", a[0].Admitted, a[0].Err, k, d.Remaining(), want)
				}
			}
			if n := s.Stats().Keys; n > 4 {
				t.Fatalf("%d records above the cap of 4", n)
			}
			c.Advance(time.Duration(r.IntN(300)) * time.Millisecond)
		}
		if n, st := count(s), s.Stats(); int64(n) != st.Keys {
			t.Fatalf("%d records, %d counted", n, st.Keys)
		}
	}
}

func count(s *Store) (n int) {
	for i := range s.shards {
		s.shards[i].mu.Lock()
		n += s.shards[i].used
		s.shards[i].mu.Unlock()
	}
	return n
}

func TestFloodLeavesLittleBehind(t *testing.T) {
	for name, l := range map[string]escapement.Limit{
		"bucket":  {Name: "flood", Rate: escapement.PerSecond(10)},
		"rolling": {Name: "flood", Algorithm: escapement.RollingWindow, Rate: escapement.PerSecond(10)},
	} {
		for _, keyed := range []bool{false, true} {
			c := newManual()
			opts := []Option{WithClock(c)}
			if keyed {
				opts = append(opts, WithKeys())
			}
			s := newStore(t, opts...)
			p := compile(t, l)
			const live = 20_000
			for i := range live {
				mustTake(t, s, p, fmt.Sprintf("live%012d", i), 1)
			}
			full := s.Stats().Bytes
			c.Advance(10 * time.Second)
			sweepAll(s)
			for i := range 5 * live {
				mustTake(t, s, p, fmt.Sprintf("once%012d", i), 1)
				if i%2 == 0 {
					c.Advance(time.Microsecond)
				}
			}
			during := s.Stats()
			c.Advance(10 * time.Second)
			sweepAll(s)
			after := s.Stats()
			t.Logf("%s, keys %v: %d bytes for %d live keys, %d in the flood (%d keys), %d after it", name, keyed, full, live, during.Bytes, during.Keys, after.Bytes)
			if after.Bytes > full/4 || after.Keys != 0 {
				t.Errorf("%s: %d bytes and %d keys are left after a flood, %d bytes hold %d keys", name, after.Bytes, after.Keys, full, live)
			}
		}
	}
}

func TestNothingIsRecordedForNothing(t *testing.T) {
	s := newStore(t, WithClock(newManual()))
	for _, a := range []escapement.Algorithm{escapement.TokenBucket, escapement.FixedWindow, escapement.SlidingWindow, escapement.RollingWindow} {
		p := compile(t, escapement.Limit{Name: "nothing-" + a.String(), Algorithm: a, Rate: escapement.PerHour(3)})
		for _, c := range []escapement.Claim{
			{Plan: p, Key: "k", Cost: 1, Mode: escapement.Peek},
			{Plan: p, Key: "k"},
			{Plan: p, Key: "k", Cost: 4},
			{Plan: p, Key: "k", Mode: escapement.TakeUpTo},
			{Plan: p, Key: "k", Mode: escapement.Charge},
			{Plan: p, Key: "k", Mode: escapement.Refund},
		} {
			if _, err := s.DecideOne(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if st := s.Stats(); st.Keys != 0 || st.Bytes != 0 {
				t.Errorf("%v: %+v after %+v", a, st, c)
			}
		}
	}
}
