package endtoend

import (
	"fmt"
	"testing"
	"time"
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

// Each algorithm under twice its rate, counted at the upstream. The load begins on a
// window boundary and lasts whole windows; a bucket passes its burst besides.
func TestEveryAlgorithm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, limit      string
		offered, seconds int
		least, most      int
	}{
		{"token_bucket", "algorithm: token_bucket, count: 100, per: 1s, burst: 50", 200, 6, 644, 651},
		{"gcra", "algorithm: gcra, count: 100, per: 1s, burst: 60", 200, 6, 654, 661},
		{"fixed_window", "algorithm: fixed_window, count: 200, per: 2s", 200, 6, 600, 605},
		{"sliding_window", "algorithm: sliding_window, count: 200, per: 2s", 200, 6, 590, 606},
		{"rolling_window", "algorithm: rolling_window, count: 200, per: 2s", 200, 6, 590, 600},
		{"rolling_window of exact instants", "algorithm: rolling_window, count: 50, per: 2s", 50, 6, 148, 150},
		{"pacing", "algorithm: pacing, count: 100, per: 1s, max_delay: 100ms", 200, 6, 596, 612},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := newUpstream(t)
			g := start(t, u, limited(c.limit), nil)
			first := boundary(t.Context(), 2*time.Second)
			codes := offer(t, g.url, c.offered, time.Duration(c.seconds)*time.Second, "alice")
			answered(t, codes, c.offered*c.seconds)
			if counts := u.windows(2 * time.Second); c.name == "fixed_window" {
				for k := range 3 {
					if n := counts[first.Add(time.Duration(2*k)*time.Second)]; n != 200 {
						t.Errorf("window %d passed %d, want exactly 200", k+1, n)
					}
				}
			}
			if n := u.total(); n < c.least || n > c.most || n != codes[200] {
				t.Errorf("the upstream saw %d, want %d to %d; answers %v", n, c.least, c.most, codes)
			} else {
				t.Logf("%d passed", n)
			}
		})
	}
}

// 2000 a second offered to a limit of 2000 with a headroom of 20 per cent: 1600 pass. It
// runs alone, since a load that falls behind offers less; the best of three runs counts.
func TestHeadroom(t *testing.T) {
	var n int
	for range 3 {
		u := newUpstream(t)
		g := start(t, u, limited("algorithm: fixed_window, count: 2000, per: 1s, headroom: 20"), nil)
		boundary(t.Context(), time.Second)
		answered(t, offer(t, g.url, 2000, 5*time.Second, "alice"), 10000)
		if n = u.total(); n >= 7920 && n <= 8080 {
			t.Logf("%d passed", n)
			return
		}
	}
	t.Errorf("the upstream saw %d in 5 s, want 8000 ± 1 %%", n)
}
