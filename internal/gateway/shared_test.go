package gateway

import (
	"net"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/config"
	"github.com/escapement-io/escapement/internal/redistest"
)

func redisAt(addr string, instances int) *config.Store {
	return &config.Store{Name: "main", Mode: "single", Addrs: []string{addr}, Deadline: time.Second, Instances: instances}
}

// in moves a limit to a store.
func in(s *config.Store, l *config.Limit, f escapement.OnFailure) *config.Limit {
	l.Store, l.OnFailure = s, f
	return l
}

// withStores is a configuration of one route whose limits name stores.
func withStores(limits ...*config.Limit) *config.Config {
	c := oneRoute(limits...)
	seen := map[*config.Store]bool{}
	for _, l := range limits {
		if l.Store != nil && !seen[l.Store] {
			seen[l.Store] = true
			c.Stores = append(c.Stores, l.Store)
		}
	}
	return c
}

// nobody is an address on which nothing listens.
func nobody(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestGatewaysShareAStore: what one gateway admits is gone for the other, and a limit in
// memory is not charged for what the shared one refuses.
func TestGatewaysShareAStore(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	conf := func() *config.Config {
		return withStores(in(redisAt(srv.Addr(), 2), hourly("both", 10), escapement.Deny), hourly("own", 8))
	}
	a, b := serve(t, nil, conf()), serve(t, nil, conf())
	if m := a.codes(7, "/"); m[200] != 7 {
		t.Fatalf("got %v", m)
	}
	if m := b.codes(7, "/"); m[200] != 3 || m[429] != 4 {
		t.Errorf("the other gateway: got %v, want the 3 that were left", m)
	}
	for _, w := range []struct {
		*world
		left int64
	}{{a, 1}, {b, 5}} {
		l := w.g.current.Load().limits[1]
		lim := escapement.NewLimiter(w.g.store, l.plan)
		d, err := lim.Peek(t.Context(), lastKey(t, w.world))
		if err != nil || d.Remaining() != w.left {
			t.Errorf("own: %d left of 8, want %d (%v)", d.Remaining(), w.left, err)
		}
	}
	if s := a.g.Status(); len(s.Stores) != 1 || !s.Stores[0].Reached || s.Stores[0].Calls.Calls == 0 || s.Stores[0].Instances != 2 || s.Limits[0].Store != "main" {
		t.Errorf("%+v", s)
	}
	if f := a.get("/").header.Get(basisField); f != "" {
		t.Errorf("%s: %q while the store answers", basisField, f)
	}
}

// lastKey is what remote_addr counts the test's client under.
func lastKey(t *testing.T, w *world) string {
	t.Helper()
	k, ok := w.g.current.Load().limits[0].Key.Eval(loopbackVars{})
	if !ok {
		t.Fatal("no key")
	}
	return k
}

type loopbackVars struct{}

func (loopbackVars) Var(string) (string, bool) { return "127.0.0.1", true }

// TestTwoStoresAllOrNone: a limit of the second store that refuses gives back what the
// first was charged.
func TestTwoStoresAllOrNone(t *testing.T) {
	one, two := redisAt(redistest.Start(t, redistest.Options{}).Addr(), 1), redisAt(redistest.Start(t, redistest.Options{}).Addr(), 1)
	two.Name = "other"
	w := serve(t, nil, withStores(in(two, hourly("narrow", 2), escapement.Deny), in(one, hourly("wide", 9), escapement.Deny)))
	if m := w.codes(6, "/"); m[200] != 2 || m[429] != 4 {
		t.Fatalf("got %v", m)
	}
	s := w.g.current.Load()
	d, err := escapement.NewLimiter(s.limits[1].shared, s.limits[1].plan).Peek(t.Context(), lastKey(t, w))
	if err != nil || d.Remaining() != 7 {
		t.Errorf("wide: %d left of 9, want 7 (%v)", d.Remaining(), err)
	}
}

// TestAStoreThatIsNotThere: the gateway starts and is ready; each limit answers by its
// policy; the store is used as soon as it is there, without a restart.
func TestAStoreThatIsNotThere(t *testing.T) {
	port := redistest.FreePort(t)
	store := redisAt((&redistest.Server{Port: port}).Addr(), 2)
	deny, allow, share := in(store, hourly("deny", 4), escapement.Deny), in(store, hourly("allow", 4), escapement.Allow), in(store, hourly("share", 4), escapement.LocalShare)
	c := withStores(deny, allow, share)
	c.Routes = nil
	for _, l := range c.Limits {
		c.Routes = append(c.Routes, &config.Route{ID: l.Name, URIs: []string{"/" + l.Name}, Limits: []*config.Limit{l}})
	}
	w := serve(t, nil, c)
	if m := w.codes(4, "/deny"); m[503] != 4 {
		t.Errorf("deny: got %v", m)
	}
	if m := w.codes(9, "/allow"); m[200] != 9 {
		t.Errorf("allow: got %v", m)
	}
	if m := w.codes(6, "/share"); m[200] != 2 || m[429] != 4 {
		t.Errorf("local_share: got %v, want 2 of 4 for one of two instances", m)
	}
	r := w.get("/share")
	if r.header.Get(basisField) != "fallback" || r.header.Get("Retry-After") == "" {
		t.Errorf("the refusal of a share: %v", r.header)
	}
	redistest.Start(t, redistest.Options{Port: port})
	redistest.Eventually(t, "the store is in use", func() bool { return w.get("/allow").header.Get(basisField) == "" })
	if m := w.codes(6, "/share"); m[200] != 4 || m[429] != 2 {
		t.Errorf("once it is there: got %v", m)
	}
	if s := w.g.Status(); s.Limits[2].Fallback != 7 || s.Limits[2].FallbackRefused != 5 || s.Limits[2].Decided != 6 {
		t.Errorf("%+v", s.Limits[2])
	}
}

// TestCompatibleStoreFailure: limit-count answers 500 when its store fails, and lets pass
// with allow_degradation.
func TestCompatibleStoreFailure(t *testing.T) {
	store := redisAt(nobody(t), 0)
	strict := in(store, compat(escapement.Limit{Name: "l", Algorithm: algo.FixedWindow, Rate: escapement.PerHour(3)}, key("remote_addr")), escapement.Deny)
	w := serve(t, nil, withStores(strict))
	if m := w.codes(2, "/"); m[500] != 2 {
		t.Errorf("got %v", m)
	}
	loose := in(store, compat(escapement.Limit{Name: "l", Algorithm: algo.FixedWindow, Rate: escapement.PerHour(3)}, key("remote_addr")), escapement.Allow)
	loose.AllowDegradation = true
	c := w.next(loose)
	c.Stores = []*config.Store{store}
	if err := w.g.Reload(c); err != nil {
		t.Fatal(err)
	}
	if m := w.codes(9, "/"); m[200] != 9 {
		t.Errorf("with allow_degradation: got %v", m)
	}
}

// TestReloadKeepsAndClosesStores: a store whose configuration is equal is kept, counters
// and connections and all; one that is not used any more is closed once nobody asks it.
func TestReloadKeepsAndClosesStores(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	w := serve(t, nil, withStores(in(redisAt(srv.Addr(), 2), hourly("l", 10), escapement.Deny)))
	w.codes(4, "/")
	first := w.g.current.Load()
	reload := func(s *config.Store) {
		t.Helper()
		c := w.next(in(s, hourly("l", 10), escapement.Deny))
		c.Stores = []*config.Store{s}
		if err := w.g.Reload(c); err != nil {
			t.Fatal(err)
		}
	}
	reload(redisAt(srv.Addr(), 2))
	if w.g.current.Load().stores[0] != first.stores[0] {
		t.Error("an equal store was opened again")
	}
	second := w.g.enter() // a request that is still under way
	changed := redisAt(srv.Addr(), 2)
	changed.Deadline = 2 * time.Second
	reload(changed)
	if w.g.current.Load().stores[0] == first.stores[0] {
		t.Fatal("a changed store was kept")
	}
	d, err := escapement.NewLimiter(second.limits[0].shared, second.limits[0].plan).Take(t.Context(), lastKey(t, w), 1)
	if err != nil || !d.Allowed {
		t.Errorf("a request of the configuration before: %v", err)
	}
	w.g.leave(second)
	redistest.Eventually(t, "the old store is closed", func() bool {
		var answers [1]escapement.Answer
		first.stores[0].Decide(t.Context(), []escapement.Request{{Claims: []escapement.Claim{{Plan: second.limits[0].plan, Key: "k", Cost: 1}}}}, answers[:])
		return answers[0].Outcome != escapement.Decided
	})
	if m := w.codes(9, "/"); m[200] != 5 || m[429] != 4 {
		t.Errorf("got %v, want the 5 that were left", m)
	}
}

// TestUnknownStaysSpent: when it is not known what a store did, what limits in memory
// were charged is not given back.
func TestUnknownStaysSpent(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	store := redisAt(srv.Addr(), 0)
	store.Deadline = 100 * time.Millisecond
	w := serve(t, nil, withStores(in(store, hourly("shared", 10), escapement.Deny), hourly("own", 10)))
	if m := w.codes(2, "/"); m[200] != 2 {
		t.Fatalf("got %v", m)
	}
	srv.Stop()
	if m := w.codes(1, "/"); m[503] != 1 {
		t.Errorf("a silent store: got %v", m)
	}
	srv.Continue()
	own := w.g.current.Load().limits[1]
	d, err := escapement.NewLimiter(w.g.store, own.plan).Peek(t.Context(), lastKey(t, w))
	if err != nil || d.Remaining() != 7 {
		t.Errorf("own: %d left of 10, want 7 (%v)", d.Remaining(), err)
	}
}
