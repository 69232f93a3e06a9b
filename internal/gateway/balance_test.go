package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/escapement-io/escapement/internal/config"
)

func balance(t *testing.T, kind string, weights ...int) balancer {
	t.Helper()
	c := &config.Upstream{Balance: kind}
	for i, w := range weights {
		c.Nodes = append(c.Nodes, config.Node{Addr: string(rune('a' + i)), Weight: w})
	}
	b, err := newBalancer(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRoundRobin(t *testing.T) {
	b := balance(t, "roundrobin", 5, 1, 1, 0)
	var order strings.Builder
	for range 14 {
		order.WriteString(b.next("", nil).addr)
	}
	if got, want := order.String(), "aabacaaaabacaa"; got != want {
		t.Errorf("got %s, want %s: turns spread over the round", got, want)
	}
	a := b.next("", nil)
	if n := b.next("", tried{a}); n == nil || n == a {
		t.Errorf("got %v after %s failed", n, a.addr)
	}
	one := balance(t, "roundrobin", 1)
	if n := one.next("", tried{one.next("", nil)}); n != nil {
		t.Errorf("got %s although it was tried", n.addr)
	}
}

func TestLeastConn(t *testing.T) {
	b := balance(t, "least_conn", 1, 1, 2)
	got := map[string]int{}
	for range 40 {
		n := b.next("", nil)
		n.active.Add(1)
		got[n.addr]++
	}
	if got["a"] != 10 || got["b"] != 10 || got["c"] != 20 {
		t.Errorf("got %v, want loads by weight", got)
	}
}

// TestConsistent: keys stay where they are when a node goes, a weight is a share, and
// instances agree.
func TestConsistent(t *testing.T) {
	all, again, fewer := balance(t, "chash", 1, 2, 1), balance(t, "chash", 1, 2, 1), balance(t, "chash", 1, 2)
	share := map[string]int{}
	const keys = 20_000
	for i := range keys {
		k := fmt.Sprintf("user-%d", i)
		n := all.next(k, nil)
		share[n.addr]++
		if m := again.next(k, nil); m.addr != n.addr {
			t.Fatalf("%s: %s here, %s there", k, n.addr, m.addr)
		}
		if m := fewer.next(k, nil); n.addr != "c" && m.addr != n.addr {
			t.Fatalf("%s moved from %s to %s although its node stayed", k, n.addr, m.addr)
		}
		if m := all.next(k, tried{n}); m == n {
			t.Fatalf("%s: %s again after it failed", k, n.addr)
		}
	}
	for addr, want := range map[string]int{"a": keys / 4, "b": keys / 2, "c": keys / 4} {
		if d := share[addr] - want; d < -keys/50 || d > keys/50 {
			t.Errorf("%s has %d keys, want about %d", addr, share[addr], want)
		}
	}
}

// TestHashOn sends equal keys to one node through the gateway.
func TestHashOn(t *testing.T) {
	c := oneRoute()
	w := serve(t, nil, c)
	other := serve(t, nil, oneRoute())
	next := w.next()
	up := *w.conf.Routes[0].Upstream
	up.Nodes = append(up.Nodes[:1:1], other.conf.Routes[0].Upstream.Nodes...)
	up.Balance, up.HashOn = "chash", template(t, "$http_user")
	next.Routes[0].Upstream = &up
	if err := w.g.Reload(next); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		a := w.passed.Load()
		for range 3 {
			w.get("/", fmt.Sprintf("User: u%d", i))
		}
		if d := w.passed.Load() - a; d != 0 && d != 3 {
			t.Errorf("user %d: %d of 3 requests went to the first node", i, d)
		}
	}
	if a, b := w.passed.Load(), other.passed.Load(); a == 0 || b == 0 {
		t.Errorf("nodes saw %d and %d", a, b)
	}
}
