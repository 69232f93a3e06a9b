package endtoend

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/escapement-io/escapement/internal/redistest"
)

// atOnce sends n requests of a user at once and returns how many passed, and on what basis.
func atOnce(t *testing.T, url, user string, n int) (passed int, basis string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			code, on, err := fetch(t, client, url+"/", user)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil || code != 200 && code != 429:
				t.Errorf("%d %v", code, err)
			case code == 200:
				passed++
			}
			basis = on
		})
	}
	all.Wait()
	return passed, basis
}

// plugin is the configuration of limit-count-advanced that its documentation of delayed
// synchronisation gives as an example, on the nodes of a cluster.
const plugin = `
listen: 127.0.0.1:0
consumers: {header: X-Consumer, trusted: [127.0.0.0/8]}
routes:
  - uri: /*
    plugins:
      {
        "limit-count-advanced": {
          "count": 1000,
          "time_window": 10,
          "window_type": "sliding",
          "key": "consumer_name",
          "key_type": "var",
          "policy": "redis-cluster",
          "redis_cluster_name": "my-cluster",
          "redis_cluster_nodes": [NODES],
          "sync_interval": 0.2,
          "rejected_code": 429
        }
      }
    upstream: {nodes: {"UPSTREAM": 1}}
`

// Two gateways on a cluster of three nodes, with the documented configuration as it
// stands: one of them spends the limit of each consumer, and the other one knows it.
func TestDelayedOnACluster(t *testing.T) {
	cluster := redistest.StartCluster(t, 3, func(int) redistest.Options { return redistest.Options{} })
	nodes := `"` + strings.Join(cluster.Addrs()[:2], `", "`) + `"`
	conf := strings.ReplaceAll(plugin, "NODES", nodes)
	u := newUpstream(t)
	a, b := start(t, u, conf, nil), start(t, u, conf, nil)
	for _, user := range []string{"alice", "bob"} {
		first, basis := atOnce(t, a.url, user, 1100)
		if first < 900 || first > 1000 || basis != "delayed" {
			t.Errorf("%s: %d of 1100 passed on the basis %q, want about 1000, delayed", user, first, basis)
		}
		time.Sleep(500 * time.Millisecond) // more than an interval: it has reported
		// If a window has ended in between, a tenth is free again with every second.
		if second, _ := atOnce(t, b.url, user, 900); second > 450 {
			t.Errorf("%s: %d of 900 passed at the other gateway, which should know that the limit is spent", user, second)
		}
	}
	if u.total() > 2900 {
		t.Errorf("%d arrived", u.total())
	}
}

// Quota that is handed out in advance is never exceeded, however many gateways there are
// and however a burst finds them, and a gateway that stops gives back what it holds.
func TestLeasesOverGateways(t *testing.T) {
	for _, algorithm := range []string{"fixed_window", "rolling_window", "token_bucket"} {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			leasesOverGateways(t, algorithm)
		})
	}
}

func leasesOverGateways(t *testing.T, algorithm string) {
	srv := redistest.Start(t, redistest.Options{})
	conf := fmt.Sprintf(`
listen: 127.0.0.1:0
stores: {main: {type: redis, url: "redis://%s", deadline: 5s}}
limits:
  daily: {algorithm: %s, count: 400, per: 1d, key: [http_x_consumer], store: main, sync: {interval: 200ms}, on_failure: deny}
routes:
  - uri: /*
    limits: [daily]
    upstream: {nodes: {"UPSTREAM": 1}}
`, srv.Addr(), algorithm)
	u := newUpstream(t)
	var gateways []*gateway
	for range 3 {
		gateways = append(gateways, start(t, u, conf, nil))
	}
	passed := 0
	for range 40 { // until nothing is left anywhere
		for _, g := range gateways {
			n, basis := atOnce(t, g.url, "alice", 40)
			passed += n
			if basis != "leased" {
				t.Fatalf("basis %q, want leased", basis)
			}
		}
		if passed >= 400 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	least := 400
	if algorithm == "token_bucket" {
		least = 380 // what a holder had no use for in time comes back with the refill, of which a day has little
	}
	if passed < least || passed > 400 || u.total() != passed {
		t.Errorf("%d passed and %d arrived, want %d to 400 of a day", passed, u.total(), least)
	}
	if n, _ := atOnce(t, gateways[0].url, "bob", 1); n != 1 {
		t.Error("another consumer was refused")
	}
}
