package endtoend

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"
)

// guide is the plugin configuration of the vendor's guide to accuracy across instances,
// with the state kept in the gateway.
func guide(windowType string) string {
	return fmt.Sprintf(`
listen: 127.0.0.1:0
consumers:
  header: X-Consumer
  trusted: [127.0.0.0/8]
routes:
  - uri: /*
    plugins:
      limit-count-advanced:
        count: 1000
        time_window: 10
        window_type: %s
        key: consumer_name
        key_type: var
        policy: local
        sync_interval: -1
        rejected_code: 429
    upstream: {type: roundrobin, nodes: {"UPSTREAM": 1}}
`, windowType)
}

// Two consumers behind one address, 1100 requests of each at once: exactly 1000 pass.
func TestBurstOfTwoConsumers(t *testing.T) {
	t.Parallel()
	for _, windowType := range []string{"sliding", "fixed"} {
		t.Run(windowType, func(t *testing.T) {
			t.Parallel()
			u := newUpstream(t)
			g := start(t, u, guide(windowType), nil)
			// The burst has to fall into one window.
			boundary(t.Context(), 10*time.Second)
			var mu sync.Mutex
			codes := map[string]int{}
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 64}}
			defer client.CloseIdleConnections()
			var wg sync.WaitGroup
			for i := range 2200 {
				wg.Go(func() {
					user := []string{"alice", "bob"}[i%2]
					req, err := http.NewRequestWithContext(t.Context(), "GET", g.url+"/", nil)
					if err != nil {
						t.Error(err)
						return
					}
					req.Header.Set("X-Consumer", user)
					resp, err := client.Do(req)
					if err != nil {
						t.Error(err)
						return
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					mu.Lock()
					codes[fmt.Sprint(user, " ", resp.StatusCode)]++
					mu.Unlock()
				})
			}
			wg.Wait()
			want := map[string]int{"alice 200": 1000, "alice 429": 100, "bob 200": 1000, "bob 429": 100}
			if fmt.Sprint(codes) != fmt.Sprint(want) {
				t.Errorf("answers %v, want %v", codes, want)
			}
			if u.byUser["alice"] != 1000 || u.byUser["bob"] != 1000 {
				t.Errorf("the upstream saw %v", u.byUser)
			}
		})
	}
}

// 200 a second for a minute, counted at the upstream per window of 10 s.
func TestSteadyLoad(t *testing.T) {
	t.Parallel()
	for _, windowType := range []string{"sliding", "fixed"} {
		t.Run(windowType, func(t *testing.T) {
			t.Parallel()
			patiently(t, func() string { return steady(t, windowType) })
		})
	}
}

func steady(t *testing.T, windowType string) (problem string) {
	const window, windows, slack = 10 * time.Second, 6, 10
	u := newUpstream(t)
	g := start(t, u, guide(windowType), nil)
	first := boundary(t.Context(), window)
	codes := offer(t, g.url, 200, windows*window, "alice")
	answered(t, codes, 12000)
	if windowType == "fixed" {
		return u.exactly(t, first, window, windows, 1000)
	}
	for k, n := range u.windows(first, window, windows) {
		t.Logf("window %d: %d", k+1, n)
		// The first one has nothing before it and passes all at once.
		if n < 1000-slack || n > 1000+slack || k == 0 && n != 1000 {
			problem = fmt.Sprintf("window %d passed %d, want 1000 ± %d", k+1, n, slack)
		}
	}
	return problem
}
