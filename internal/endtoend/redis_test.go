package endtoend

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/redistest"
)

// Two gateway processes share one Redis: of 1100 requests of each consumer at once, split
// over both, exactly 1000 pass.
func TestBurstOverTwoGateways(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	conf := fmt.Sprintf(`
listen: 127.0.0.1:0
consumers: {header: X-Consumer, trusted: [127.0.0.0/8]}
routes:
  - uri: /*
    plugins:
      limit-count-advanced: {count: 1000, time_window: 60, window_type: fixed, key: consumer_name, rejected_code: 429,
        policy: redis, redis_host: 127.0.0.1, redis_port: %d, redis_timeout: 10000, sync_interval: -1}
    upstream: {nodes: {"UPSTREAM": 1}}
`, srv.Port)
	u := newUpstream(t)
	gateways := []*gateway{start(t, u, conf, nil), start(t, u, conf, nil)}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	codes := map[string]int{}
	var all sync.WaitGroup
	for i := range 2200 {
		all.Go(func() {
			user := []string{"alice", "bob"}[i%2]
			code, _, err := fetch(t, client, gateways[i/2%2].url+"/", user)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			codes[user+" "+strconv.Itoa(code)]++
		})
	}
	all.Wait()
	for _, user := range []string{"alice", "bob"} {
		if codes[user+" 200"] != 1000 || codes[user+" 429"] != 100 || u.byUser[user] != 1000 {
			t.Errorf("%s: got %v, and %d arrived; want 1000 passed and 100 refused", user, codes, u.byUser[user])
		}
	}
}

func fetch(t *testing.T, client *http.Client, url, user string) (code int, basis string, err error) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("X-Consumer", user)
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	return resp.StatusCode, resp.Header.Get("Escapement-Basis"), resp.Body.Close()
}

// tried is one request during an outage.
type tried struct {
	gateway        int
	path           string
	sent, answered algo.Mono
	code           int
	basis          string
}

// outage runs two gateways under load while Redis is silent, or dead, for five seconds.
func outage(t *testing.T, killed bool) (all []tried, recovered time.Duration) {
	srv := redistest.Start(t, redistest.Options{})
	conf := fmt.Sprintf(`
listen: 127.0.0.1:0
stores: {main: {type: redis, url: "redis://%s/0"}}
limits:
  deny:  {count: 40, per: 1s, key: [], store: main, on_failure: deny}
  allow: {count: 40, per: 1s, key: [], store: main, on_failure: allow}
  share: {count: 40, per: 1s, key: [], store: main, on_failure: local_share}
routes:
  - {uri: /deny, limits: [deny], upstream: {nodes: {"UPSTREAM": 1}}}
  - {uri: /allow, limits: [allow], upstream: {nodes: {"UPSTREAM": 1}}}
  - {uri: /share, limits: [share], upstream: {nodes: {"UPSTREAM": 1}}}
`, srv.Addr())
	u := newUpstream(t)
	gateways := []*gateway{start(t, u, conf, nil), start(t, u, conf, nil)}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	var load sync.WaitGroup
	stop := make(chan struct{})
	for i, g := range gateways {
		for _, path := range []string{"/deny", "/allow", "/share"} {
			load.Go(func() {
				every := time.NewTicker(time.Second / 60)
				defer every.Stop()
				for {
					select {
					case <-stop:
						return
					case <-every.C:
					}
					r := tried{gateway: i, path: path, sent: clock.Mono()}
					var err error
					if r.code, r.basis, err = fetch(t, client, g.url+path, "c"); err != nil {
						t.Error(err)
						return
					}
					r.answered = clock.Mono()
					mu.Lock()
					all = append(all, r)
					mu.Unlock()
				}
			})
		}
	}
	time.Sleep(3 * time.Second) // both count each other by now
	if killed {
		srv.Kill()
		time.Sleep(awayFor)
		srv.Restart(t)
	} else {
		srv.Stop()
		time.Sleep(awayFor)
		srv.Continue()
	}
	back := clock.Mono()
	redistest.Eventually(t, "every limit is decided by the store again", func() bool {
		mu.Lock()
		defer mu.Unlock()
		since := clock.Mono() - algo.Mono(200*time.Millisecond)
		recent := slices.IndexFunc(all, func(r tried) bool { return r.sent > since })
		return recent >= 0 && since > back && !slices.ContainsFunc(all[recent:], func(r tried) bool { return r.basis != "" })
	})
	recovered = clock.Since(back) - 200*time.Millisecond
	close(stop)
	load.Wait()
	return all, recovered
}

// Redis is away for five seconds under load: each limit passes what the documentation
// says, and is decided by the store again without a restart.
func TestRedisAwayForAWhile(t *testing.T) {
	for form, killed := range map[string]bool{"killed": true, "silent": false} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			awayForAWhile(t, killed)
		})
	}
}

func awayForAWhile(t *testing.T, killed bool) {
	patiently(t, func() string {
		all, recovered := outage(t, killed)
		var took []time.Duration
		var problems []string
		fallen := map[string]int{}
		passed := map[int]int{}
		first, last := map[int]algo.Mono{}, map[int]algo.Mono{}
		for _, r := range all {
			if r.basis == "" {
				continue
			}
			took = append(took, time.Duration(r.answered-r.sent))
			fallen[fmt.Sprint(r.path, " ", r.code)]++
			if r.path != "/share" {
				continue
			}
			if first[r.gateway] == 0 {
				first[r.gateway] = r.answered
			}
			last[r.gateway] = r.answered
			if r.code == 200 {
				passed[r.gateway]++
			}
		}
		slices.Sort(took)
		if len(took) == 0 {
			return "nothing was decided without the store"
		}
		t.Logf("without the store: %v; p99 %v, longest %v; the store was back after %v", fallen, took[len(took)*99/100], took[len(took)-1], recovered)
		for what := range fallen {
			if what != "/deny 503" && what != "/allow 200" && what != "/share 200" && what != "/share 429" {
				t.Errorf("without the store there are answers of %s", what)
			}
		}
		sum, right := 0.0, 0.0
		for g, n := range passed {
			sum += float64(n)
			right += 20 + 20*time.Duration(last[g]-first[g]).Seconds()
		}
		t.Logf("local_share passed %.0f, its shares are %.1f", sum, right)
		if sum > right*1.05+2 {
			t.Errorf("local_share passed %.0f of shares of %.1f", sum, right)
		}
		if sum < right*0.95-2 {
			problems = append(problems, fmt.Sprintf("local_share passed %.0f of shares of %.1f", sum, right))
		}
		if recovered > backWithin {
			problems = append(problems, fmt.Sprintf("the store was used again after %v", recovered))
		}
		return strings.Join(problems, "; ")
	})
}

// unreachable is a server that answers nobody.
func unreachable() string {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	return strings.TrimPrefix(s.URL, "http://")
}

// A gateway whose store is not there starts and serves by its limits' policies.
func TestStartWithoutTheStore(t *testing.T) {
	u := newUpstream(t)
	g := start(t, u, fmt.Sprintf(`
listen: 127.0.0.1:0
stores: {main: {type: redis, url: "redis://%s/0", instances: 2}}
limits: {l: {count: 8, per: 1h, key: [], store: main}}
routes: [{uri: "/*", limits: [l], upstream: {nodes: {"UPSTREAM": 1}}}]
`, unreachable()), nil)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	codes := map[int]int{}
	for range 6 {
		code, basis, err := fetch(t, client, g.url+"/", "c")
		if err != nil || basis != "fallback" {
			t.Fatalf("basis %q, %v", basis, err)
		}
		codes[code]++
	}
	if codes[200] != 4 || codes[429] != 2 {
		t.Errorf("got %v, want the half of 8", codes)
	}
	if n := strings.Count(g.log(), "the store cannot be used"); n != 1 {
		t.Errorf("it is said %d times that the store cannot be used", n)
	}
}
