//go:build unix

package gateway

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/config"
	"github.com/escapement-io/escapement/memstore"
)

// threeLimits are what a route of some care has.
func threeLimits(count int64) []*config.Limit {
	var limits []*config.Limit
	for _, name := range []string{"client", "path", "all"} {
		limits = append(limits, native(escapement.Limit{Name: name, Rate: escapement.Rate{Count: count, Per: time.Hour}}, key("route_id")))
	}
	return limits
}

// decided is a request whose limits were asked, and the answer is not given yet.
func decided(t *testing.T, g *Gateway) *exchange {
	t.Helper()
	x := g.newExchange().(*exchange)
	x.snap = g.current.Load()
	x.rt = x.snap.router.match("gateway.example", "/a/b", "GET")
	x.vars.r = httptest.NewRequest("GET", "/a/b", nil)
	if x.rt == nil || x.collect() != nil {
		t.Fatal("the request reaches no limits")
	}
	x.ask(context.Background())
	if len(x.parts) != 3 {
		t.Fatalf("%d decisions, want 3", len(x.parts))
	}
	return x
}

func TestCountingAllocatesNothing(t *testing.T) {
	for _, count := range []int64{1, 1_000_000} { // refused, admitted
		g := still(t, memstore.New(), threeLimits(count)...)
		decided(t, g)
		x := decided(t, g)
		second := int64(0)
		for name, f := range map[string]func(){
			"counting":    func() { x.count(); x.countPassed() },
			"sampling":    func() { second++; g.sample(second) },
			"the request": func() { x.asked.reset(); x.enforce(context.Background()) },
		} {
			if n := testing.AllocsPerRun(1000, f); n != 0 {
				t.Errorf("%s allocates %v times", name, n)
			}
		}
	}
}

// TestCostOfCounting: on as many goroutines as there are processors, counting the decisions
// of three limits takes at most 2 % of the processor time of the cheapest request there is,
// one that is refused, net/http's part and a minimal client's included. Both are measured
// in turn in one run, and the medians compared.
func TestCostOfCounting(t *testing.T) {
	const most, rounds, requests, counted = 0.02, 5, 4000, 400_000
	g := still(t, memstore.New(), threeLimits(1)...)
	server := httptest.NewServer(g)
	defer server.Close()
	decided(t, g)
	exchanges := []*exchange{decided(t, g), decided(t, g)}
	var ratios []float64
	for range rounds {
		before := cpu()
		send(t, server.Listener.Addr().String(), requests)
		request := float64(cpu()-before) / requests
		before = cpu()
		var running sync.WaitGroup
		for _, x := range exchanges {
			running.Go(func() {
				for range counted / len(exchanges) {
					x.count()
					x.countPassed()
				}
			})
		}
		running.Wait()
		counting := float64(cpu()-before) / counted
		ratios = append(ratios, counting/request)
		t.Logf("counting %.0f ns of processor time, the request %.0f ns", counting, request)
	}
	slices.Sort(ratios)
	if m := ratios[len(ratios)/2]; m > most {
		t.Errorf("counting takes %.2f %% of a request, want at most %v %%; all: %v", 100*m, 100*most, ratios)
	}
}

func send(t *testing.T, addr string, n int64) {
	t.Helper()
	const conns = 8
	var left atomic.Int64
	left.Store(n)
	done := make(chan error, conns)
	for range conns {
		go func() { done <- requests(addr, &left, []byte("HTTP/1.1 429 ")) }()
	}
	for range conns {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkCounting is what the metrics add to a decided request, and a second's sampling.
func BenchmarkCounting(b *testing.B) {
	for _, limits := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("sample/%d", limits), func(b *testing.B) {
			g := benchGateway(b, "http://127.0.0.1:1", manyLimits(limits)...)
			b.ReportAllocs()
			second := int64(0)
			for b.Loop() {
				second++
				g.sample(second)
			}
		})
		b.Run(fmt.Sprintf("status/%d", limits), func(b *testing.B) {
			g := benchGateway(b, "http://127.0.0.1:1", manyLimits(limits)...)
			b.ReportAllocs()
			for b.Loop() {
				g.Status()
			}
		})
	}
}

func manyLimits(n int) []*config.Limit {
	limits := make([]*config.Limit, n)
	for i := range limits {
		limits[i] = native(escapement.Limit{Name: fmt.Sprintf("limit-%d", i), Rate: escapement.PerSecond(100)}, key("remote_addr"))
	}
	return limits
}
