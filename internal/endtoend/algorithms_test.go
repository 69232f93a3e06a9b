package endtoend

import (
	"fmt"
	"testing"
	"time"

	"github.com/escapement-io/escapement/clock"
)

func limited(limit string) string {
	return fmt.Sprintf(`
listen: 127.0.0.1:0
consumers: {header: X-Consumer, trusted: [127.0.0.0/8]}
limits:
  it: {%s, key: [consumer_name]}
routes:
  - uri: /*
    limits: [it]
    upstream: {type: roundrobin, nodes: {"UPSTREAM": 1}}
`, limit)
}

// trial is a limit under more than its rate, and how many may pass.
type trial struct {
	name, limit      string
	offered, seconds int
	least, most      int
	perWindow        int // fixed_window: what every window of 2 s passes
}

// Each algorithm under twice its rate, counted at the upstream. The load begins on a
// window boundary and lasts whole windows; a bucket passes its burst besides, and
// stragglers may fall into the window after the last.
func TestEveryAlgorithm(t *testing.T) {
	t.Parallel()
	for _, c := range []trial{
		{name: "token_bucket", limit: "algorithm: token_bucket, count: 100, per: 1s, burst: 50", offered: 200, seconds: 6, least: 644, most: 653},
		{name: "gcra", limit: "algorithm: gcra, count: 100, per: 1s, burst: 60", offered: 200, seconds: 6, least: 654, most: 663},
		{name: "fixed_window", limit: "algorithm: fixed_window, count: 200, per: 2s", offered: 200, seconds: 6, least: 600, most: 605, perWindow: 200},
		{name: "sliding_window", limit: "algorithm: sliding_window, count: 200, per: 2s", offered: 200, seconds: 6, least: 590, most: 606},
		{name: "rolling_window", limit: "algorithm: rolling_window, count: 200, per: 2s", offered: 200, seconds: 6, least: 585, most: 603},
		{name: "rolling_window of exact instants", limit: "algorithm: rolling_window, count: 50, per: 2s", offered: 50, seconds: 6, least: 148, most: 153},
		{name: "pacing", limit: "algorithm: pacing, count: 100, per: 1s, max_delay: 200ms", offered: 200, seconds: 6, least: 600, most: 624},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}

// 2000 a second offered to a limit of 2000 with a headroom of 20 per cent: 1600 pass. It
// runs alone, since a load that falls behind offers less.
func TestHeadroom(t *testing.T) {
	trial{name: "headroom", limit: "algorithm: fixed_window, count: 2000, per: 1s, headroom: 20", offered: 2000, seconds: 5, least: 7920, most: 8080}.run(t)
}

// punctual is how late a load may end without more being right.
const punctual = 20 * time.Millisecond

// run is patient. More than may pass is forgiven only where the load ended late, so that
// more was due.
func (c trial) run(t *testing.T) {
	patiently(t, func() string {
		u := newUpstream(t)
		g := start(t, u, limited(c.limit), nil)
		first := boundary(t.Context(), 2*time.Second)
		length := time.Duration(c.seconds) * time.Second
		codes := offer(t, g.url, c.offered, length, "alice")
		n := u.total()
		if n != codes[200] || n+codes[429] > c.offered*c.seconds {
			t.Fatalf("the upstream saw %d; answers %v", n, codes)
		}
		if n > c.most {
			problem := fmt.Sprintf("the upstream saw %d, want at most %d; answers %v", n, c.most, codes)
			if clock.Wall().Sub(first) < length+punctual {
				t.Fatal(problem)
			}
			return problem
		}
		if n < c.least {
			return fmt.Sprintf("the upstream saw %d, want at least %d; answers %v", n, c.least, codes)
		}
		t.Logf("%d passed", n)
		if c.perWindow == 0 {
			return ""
		}
		return u.exactly(t, first, 2*time.Second, c.seconds/2, c.perWindow)
	})
}
