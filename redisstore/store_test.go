package redisstore

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/redistest"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(instanceOf); addr != "" {
		runInstance(addr)
		return
	}
	// A fault of toxiproxy's that ends while data is on its way may leave its goroutine.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"))
}

// patient is a deadline that a busy test machine keeps.
const patient = 5 * time.Second

func open(t testing.TB, cfg Config) *Store {
	t.Helper()
	if cfg.Deadline == 0 {
		cfg.Deadline = patient
	}
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func plan(t testing.TB, l escapement.Limit) *escapement.Plan {
	t.Helper()
	p, err := l.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func perHour(name string, n int64) escapement.Limit {
	return escapement.Limit{Name: name, Rate: escapement.Rate{Count: n, Per: time.Hour}}
}

func take(t testing.TB, s escapement.FastStore, p *escapement.Plan, key string, cost int64) escapement.Decision {
	t.Helper()
	d, err := s.DecideOne(context.Background(), escapement.Claim{Plan: p, Key: key, Cost: cost})
	if err != nil {
		t.Fatalf("take %d of %q: %v", cost, key, err)
	}
	return d
}

func TestTakeOnARealServer(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	s := open(t, Config{Addrs: []string{srv.Addr()}})
	p := plan(t, perHour("login", 3))
	for i, want := range []bool{true, true, true, false} {
		d := take(t, s, p, "alice", 1)
		if d.Allowed != want || d.Remaining() != int64(max(0, 2-i)) {
			t.Errorf("take %d: allowed %v, remaining %d", i, d.Allowed, d.Remaining())
		}
	}
	if d := take(t, s, p, "bob", 1); !d.Allowed {
		t.Error("bob pays for alice")
	}
	ttl := srv.Must(t, "PTTL", key("esc:", "login", "alice"))
	if len(ttl) != 7 { // one hour and the margin of one hour
		t.Errorf("time to live is %s ms, want between one and two hours", ttl)
	}
	for _, k := range strings.Split(srv.Must(t, "KEYS", "*"), "\n") {
		if srv.Must(t, "PTTL", k) == "-1" {
			t.Errorf("key %q never expires", k)
		}
	}
}

func TestRequestIsAllOrNothing(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	s := open(t, Config{Addrs: []string{srv.Addr()}})
	wide, narrow := plan(t, perHour("wide", 100)), plan(t, escapement.Limit{Name: "narrow", Algorithm: escapement.RollingWindow, Rate: escapement.Rate{Count: 2, Per: time.Hour}})
	requests := make([]escapement.Request, 3)
	for i := range requests {
		requests[i].Claims = []escapement.Claim{{Plan: wide, Key: "site", Cost: 1}, {Plan: narrow, Key: "alice", Cost: 1}}
	}
	answers := make([]escapement.Answer, 3)
	s.Decide(context.Background(), requests, answers)
	admitted := 0
	for i := range answers {
		if answers[i].Outcome != escapement.Decided {
			t.Fatalf("request %d: %+v", i, answers[i])
		}
		if answers[i].Admitted {
			admitted++
		}
	}
	d, err := s.DecideOne(context.Background(), escapement.Claim{Plan: wide, Key: "site", Cost: 1, Mode: escapement.Peek})
	if err != nil || admitted != 2 || d.Remaining() != 98 {
		t.Errorf("admitted %d, %d left of the wide limit, %v; want 2 and 98", admitted, d.Remaining(), err)
	}
}

// A list longer than the queue is decided where nothing waits.
func TestAListLongerThanTheQueue(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	s := open(t, Config{Addrs: []string{srv.Addr()}, Queue: 2})
	p := plan(t, perHour("login", 10))
	requests, answers := make([]escapement.Request, 5), make([]escapement.Answer, 5)
	for i := range requests {
		requests[i].Claims = []escapement.Claim{{Plan: p, Key: "alice", Cost: 1}}
	}
	s.Decide(t.Context(), requests, answers)
	for i := range answers {
		if !answers[i].Admitted {
			t.Errorf("request %d: %+v", i, answers[i])
		}
	}
}

func TestForgottenScriptsAreSentAgain(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	s := open(t, Config{Addrs: []string{srv.Addr()}})
	p := plan(t, perHour("login", 10))
	for i := range 3 {
		if d := take(t, s, p, "k", 1); d.Remaining() != int64(9-i) {
			t.Errorf("take %d left %d", i, d.Remaining())
		}
		srv.Must(t, "SCRIPT", "FLUSH")
	}
}

func TestForeignRecordsAreNamedAndLeftAlone(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	s := open(t, Config{Addrs: []string{srv.Addr()}})
	p := plan(t, perHour("login", 10))
	for value, want := range map[string]string{"2 something newer": "another release", "garbage": "another release", "1 rubbish": "does not hold a record",
		"1 0000000000000001 0000000000000001 r 10 1 9\nshort": "does not hold a record", "1 0000000000000001 0000000000000009 l 10 9\nshort": "does not hold a record",
		"1 0000000000000001 0000000000000009 b 1 1": "does not hold a record", "1 1 1 s 10 1": "does not hold a record"} {
		k := key("esc:", "login", value)
		srv.Must(t, "SET", k, value)
		_, err := s.DecideOne(context.Background(), escapement.Claim{Plan: p, Key: value, Cost: 1})
		if !errors.Is(err, ErrRecord) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", value, err)
		}
		if got := srv.Must(t, "GET", k); got != value {
			t.Errorf("%q became %q", value, got)
		}
	}
	srv.Must(t, "LPUSH", key("esc:", "login", "list"), "x")
	var a [1]escapement.Answer
	s.Decide(context.Background(), []escapement.Request{{Claims: []escapement.Claim{{Plan: p, Key: "list", Cost: 1}}}}, a[:])
	if a[0].Outcome != escapement.NotRun || a[0].Err == nil {
		t.Errorf("a list in place of a record: %+v", a[0])
	}
}

// Requests that ride with one whose key is taken by something else are decided.
func TestAForeignTypeHoldsUpNobody(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	s := open(t, Config{Addrs: []string{srv.Addr()}})
	for _, a := range []escapement.Algorithm{escapement.TokenBucket, escapement.FixedWindow, escapement.RollingWindow} {
		p := plan(t, escapement.Limit{Name: "mixed", Algorithm: a, Rate: escapement.Rate{Count: 1000, Per: time.Hour}})
		srv.Must(t, "FLUSHDB")
		srv.Must(t, "LPUSH", key("esc:", "mixed", "list"), "x")
		requests := make([]escapement.Request, 16)
		for i := range requests {
			k := "list"
			if i != 8 {
				k = string(rune('a' + i))
			}
			requests[i].Claims = []escapement.Claim{{Plan: p, Key: k, Cost: 1}}
		}
		answers := make([]escapement.Answer, len(requests))
		s.Decide(context.Background(), requests, answers)
		for i := range answers {
			want := escapement.Decided
			if i == 8 {
				want = escapement.NotRun
			}
			if answers[i].Outcome != want {
				t.Errorf("%v: request %d: %+v", a, i, answers[i])
			}
			if d := one(t, s, escapement.Claim{Plan: p, Key: requests[i].Claims[0].Key, Mode: escapement.Peek}); i != 8 && d.Parts[0].Remaining() != 999 {
				t.Errorf("%v: request %d left %d", a, i, d.Parts[0].Remaining())
			}
		}
	}
}

// Two definitions of one limit on one store, in turn: together they admit no more than
// the larger, and nothing is counted twice or forgotten.
func TestTwoDefinitionsAtOnce(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	for _, alg := range []escapement.Algorithm{escapement.TokenBucket, escapement.FixedWindow, escapement.SlidingWindow, escapement.RollingWindow} {
		name := strings.ReplaceAll(alg.String(), " ", "_")
		before := open(t, Config{Addrs: []string{srv.Addr()}})
		after := open(t, Config{Addrs: []string{srv.Addr()}})
		limit := escapement.Limit{Name: name, Algorithm: alg, Rate: escapement.Rate{Count: 10, Per: 24 * time.Hour}}
		p := plan(t, limit)
		limit.Rate.Count = 20
		q := plan(t, limit)
		admitted := 0
		for range 40 {
			if take(t, before, p, "k", 1).Allowed {
				admitted++
			}
			if take(t, after, q, "k", 1).Allowed {
				admitted++
			}
		}
		least := 20
		if alg == escapement.TokenBucket {
			least = 10 // a bucket of 20 is cut to 10 whenever the smaller one takes
		}
		if admitted < least || admitted > 20 {
			t.Errorf("%v: 10 and 20 admitted %d together", alg, admitted)
		}
	}
}

func TestUnusableConfigurationsAreRefused(t *testing.T) {
	_, err := Open(Config{Mode: Sentinel, Addrs: []string{"nowhere"}, Prefix: "{x}", Deadline: time.Hour, Connections: 99})
	for _, want := range []string{"nowhere", "name of the primary", "without braces", "deadline", "connections"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %q: %v", want, err)
		}
	}
}

func TestEvictionIsAFinding(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{Args: []string{"--maxmemory-policy", "allkeys-lru"}})
	s := open(t, Config{Addrs: []string{srv.Addr()}})
	if f := s.Findings(); len(f) != 1 || !strings.Contains(f[0], "allkeys-lru") {
		t.Errorf("findings: %q", f)
	}
}

func TestInstancesAreCounted(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	cfg := Config{Addrs: []string{srv.Addr()}}
	first, second := open(t, cfg), open(t, cfg)
	counts := func(want int) func() bool {
		return func() bool {
			n, known := first.Instances()
			return known && n == want
		}
	}
	redistest.Eventually(t, "two instances", counts(2))
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "one instance", counts(1))
	srv.Kill()
	time.Sleep(200 * time.Millisecond)
	if n, known := first.Instances(); n != 1 || !known {
		t.Errorf("without the store: %d instances, known %v; want the last count", n, known)
	}
}
