package memstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// randomLimit is one of a name, of any algorithm, that compiles.
func randomLimit(r *rand.Rand, name string) escapement.Limit {
	algorithms := []escapement.Algorithm{escapement.TokenBucket, escapement.GCRA, escapement.FixedWindow, escapement.SlidingWindow, escapement.RollingWindow, escapement.Pacing}
	l := escapement.Limit{Name: name, Algorithm: algorithms[r.IntN(len(algorithms))]}
	l.Rate = escapement.Rate{Count: 1 + r.Int64N(100), Per: time.Duration(1+r.IntN(3)) * time.Second}
	if r.IntN(3) == 0 {
		l.Rate.Count = 20 // often enough the same limit again
	}
	if l.Algorithm == escapement.RollingWindow && l.Rate.Count > algo.LogMax {
		l.Buckets = []int{8, 16, 1024}[r.IntN(3)]
	}
	if l.Algorithm == escapement.Pacing {
		l.MaxDelay = time.Duration(r.IntN(3)) * time.Second
	}
	return l
}

// A record that is touched only after several changes of its limit must answer as one that
// adopted each change at its instant.
func TestAdoptionOverGenerations(t *testing.T) {
	r := source(t)
	for round := range 200 {
		c := newManual()
		var opts []Option
		if round%2 == 0 {
			opts = append(opts, WithKeys())
		}
		s := New(append(opts, WithClock(c))...)
		plan := compile(t, randomLimit(r, "g"))
		states := map[string]*algo.State{}
		for step := range 60 {
			if r.IntN(6) == 0 {
				next := compile(t, randomLimit(r, "g"))
				s.Adopt(next)
				for k, st := range states {
					if next.Core().Same(plan.Core()) {
						continue
					}
					n := algo.State{Ring: make([]uint32, next.Core().Slots())}
					if !plan.Core().Fresh(st, c.Now()) {
						n = next.Core().Adopt(plan.Core(), *st, c.Now(), n.Ring)
					}
					states[k] = &n
				}
				plan = next
			}
			if r.IntN(25) == 0 {
				sweepAll(s)
			}
			k := strconv.Itoa(r.IntN(4))
			st := states[k]
			if st == nil {
				st = &algo.State{Ring: make([]uint32, plan.Core().Slots())}
				states[k] = st
			}
			cost := 1 + r.Int64N(12)
			d := mustTake(t, s, plan, k, cost)
			v := plan.Core().Take(st, c.Now(), cost)
			if d.Allowed != v.Admitted || d.Remaining() != v.Remaining() || d.RetryAfter() != wait(v.RetryAfter()) || d.ResetAfter() != wait(v.ResetAfter()) {
				t.Fatalf("round %d, step %d, %v: take %d of %s: allowed %v, %d left, retry %v, reset %v; want %v, %d, %v, %v", round, step, plan.Limit().Algorithm, cost, k,
					d.Allowed, d.Remaining(), d.RetryAfter(), d.ResetAfter(), v.Admitted, v.Remaining(), wait(v.RetryAfter()), wait(v.ResetAfter()))
			}
			c.Advance(time.Duration(r.IntN(300_000)) * time.Microsecond)
		}
		s.Close()
	}
}

func wait(s algo.Span) time.Duration {
	if s == algo.Never {
		return escapement.Never
	}
	return time.Duration(s) * time.Microsecond
}

// The switch is the announcement, not the first touch: what drains in between drains at
// the new rate.
func TestAdoptAnnounces(t *testing.T) {
	for _, announced := range []bool{true, false} {
		c := newManual()
		s := newStore(t, WithClock(c))
		slow := compile(t, escapement.Limit{Name: "r", Rate: escapement.PerHour(10)})
		fast := compile(t, escapement.Limit{Name: "r", Rate: escapement.PerSecond(10)})
		mustTake(t, s, slow, "k", 10)
		if announced {
			s.Adopt(fast)
		}
		c.Advance(time.Second)
		d := mustTake(t, s, fast, "k", 1)
		if d.Allowed != announced {
			t.Errorf("a second after the limit became 10 a second, announced %v: allowed %v", announced, d.Allowed)
		}
	}
}

// Old and new plans asked for in turn must not starve each other of fractions.
func TestMixedGenerations(t *testing.T) {
	c := newManual()
	s := newStore(t, WithClock(c))
	old := compile(t, escapement.Limit{Name: "mixed", Rate: escapement.PerMinute(1)})
	next := compile(t, escapement.Limit{Name: "mixed", Rate: escapement.PerMinute(2)})
	admitted := 0
	for i := range 600 {
		p := old
		if i%2 == 1 {
			p = next
		}
		if d := mustTake(t, s, p, "k", 1); d.Allowed {
			admitted++
		}
		c.Advance(time.Second)
	}
	if admitted < 20 || admitted > 22 {
		t.Errorf("%d admitted in 10 minutes of 2 a minute", admitted)
	}
}

func TestGenerationsAreForgotten(t *testing.T) {
	c := newManual()
	s := newStore(t, WithClock(c))
	s.Close() // the test sweeps
	first := compile(t, escapement.Limit{Name: "many", Rate: escapement.PerHour(1000)})
	mustTake(t, s, first, "k", 1000)
	for i := range 100 {
		s.Adopt(compile(t, escapement.Limit{Name: "many", Rate: escapement.PerHour(int64(1001 + i))}))
	}
	l := s.named("many")
	if len(l.chain) != 101 {
		t.Fatalf("%d generations, want 101", len(l.chain))
	}
	sweepAll(s)
	if len(l.chain) != 1 || len(s.plans.known.Load().entries) > 8 {
		t.Errorf("after a sweep %d generations and a table of %d are left", len(l.chain), len(s.plans.known.Load().entries))
	}
	if d := mustTake(t, s, first, "k", 1); d.Allowed || d.Limit() != 1100 {
		t.Errorf("a claim with a forgotten plan: allowed %v of %d, want refused by the newest of 1100", d.Allowed, d.Limit())
	}
	if st := s.Stats(); st.Adopted != 1 {
		t.Errorf("%d adoptions of one record, want 1", st.Adopted)
	}
}

func TestKeysAndReset(t *testing.T) {
	c := newManual()
	s := newStore(t, WithClock(c), WithKeys())
	a := compile(t, escapement.Limit{Name: "a", Rate: escapement.PerHour(1)})
	b := compile(t, escapement.Limit{Name: "b", Rate: escapement.PerHour(1)})
	for i := range 100 {
		mustTake(t, s, a, fmt.Sprintf("user:%d", i), 1)
		mustTake(t, s, a, fmt.Sprintf("addr:%d", i), 1)
		mustTake(t, s, b, fmt.Sprintf("user:%d", i), 1)
	}
	list := func(limit, prefix string) map[string]bool {
		t.Helper()
		keys, err := s.Keys(limit, prefix)
		if err != nil {
			t.Fatal(err)
		}
		m := map[string]bool{}
		for k := range keys {
			if m[k] {
				t.Fatalf("%s listed twice", k)
			}
			m[k] = true
		}
		return m
	}
	if m := list("a", "user:"); len(m) != 100 || !m["user:7"] {
		t.Errorf("%d keys of users listed, want 100", len(m))
	}
	if m := list("none", ""); len(m) != 0 {
		t.Errorf("an unknown limit lists %v", m)
	}
	if !s.Reset("a", "user:7") || s.Reset("a", "user:7") || s.Reset("none", "x") {
		t.Error("Reset must report whether there was a record")
	}
	if d := mustTake(t, s, a, "user:7", 1); !d.Allowed {
		t.Error("a reset key is refused")
	}
	if n, err := s.ResetPrefix("a", "user:1"); n != 11 || err != nil {
		t.Errorf("reset %d keys, %v; want 11", n, err)
	}
	if d := mustTake(t, s, b, "user:1", 1); d.Allowed {
		t.Error("a reset reached another limit")
	}
	if n := s.Stats().Keys; n != int64(count(s)) || n != 289 {
		t.Errorf("%d keys counted, %d there, want 289", n, count(s))
	}
	plain := newStore(t)
	if _, err := plain.Keys("a", ""); !errors.Is(err, ErrNoKeys) {
		t.Errorf("Keys of a store without them: %v", err)
	}
	if _, err := plain.ResetPrefix("a", ""); !errors.Is(err, ErrNoKeys) {
		t.Errorf("ResetPrefix of a store without keys: %v", err)
	}
}

// Two keys of one hash share a record, unless the store keeps the keys.
func TestCollision(t *testing.T) {
	s := newStore(t, WithClock(newManual()), WithKeys())
	p := compile(t, escapement.Limit{Name: "c", Rate: escapement.PerHour(1)})
	l := s.limitOf(p)
	sh := s.shard(42)
	for _, key := range []string{"one", "two", "three"} {
		c := claim(p, key, 1)
		for i := range 2 {
			v, err := s.decide(sh, 1, l, p, 42, &c, false)
			if err != nil || v.Admitted != (i == 0) {
				t.Errorf("key %s, take %d: admitted %v, %v", key, i, v.Admitted, err)
			}
		}
	}
	if i, ok := s.locate(sh, l, 42, "two"); !ok {
		t.Error("a key is lost among its likes")
	} else {
		s.release(sh, i)
		sh.remove(i)
	}
	for key, want := range map[string]bool{"one": true, "two": false, "three": true} {
		if _, ok := s.locate(sh, l, 42, key); ok != want {
			t.Errorf("key %s found: %v", key, ok)
		}
	}
}
