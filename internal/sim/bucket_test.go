package sim

import (
	"strings"
	"testing"
	"time"
)

// A leased bucket loses next to nothing in the long run, and the checks of every run hold
// it to the burst and what comes back, in any span.
func TestBucketFigures(t *testing.T) {
	hold(t, "lease-bucket.yaml", []figure{
		{"2 with a burst of 200", "error", -0.1, 0.1, errorOf},
		{"2 with a burst of 200", "calls", 0, 5.5, callsOf},
		{"5 with a burst of 200", "error", -0.1, 0.1, errorOf},
		{"12 with a burst of 200", "error", -0.2, 0.1, errorOf},
		{"12 with a burst of 200", "calls", 0, 5.8, callsOf},
		{"12 with a burst of 200", "fairness", 0.99, 1, fairnessOf},
		{"42 with a burst of 200", "error", -0.87, 0.1, errorOf},
		{"42 with a burst of 200", "any span", -none, 40, anyOf},
		{"5 with a burst of 100", "error", -0.5, 0.1, errorOf},
		{"5 with a burst of 100", "any span", -none, 20, anyOf},
		{"42 with a burst of 100", "error", -1, 0.1, errorOf},
		{"5 at a demand of 600", "error", -0.5, 0.1, errorOf},
		{"42 at a demand of 600", "error", -2, 0.1, errorOf},
		{"5 that mix with one that asks", "error", -0.5, 0.5, errorOf},
		{"5 every 4 s", "error", -0.1, 0.1, errorOf},
		{"5 every 4 s", "calls", 0, 0.3, callsOf},
	})
}

func calmBucket() *Setup {
	s := calm(Leased, Bucket)
	s.Burst = 30
	return s
}

func TestBucketChecksNotice(t *testing.T) {
	if got := broken(t, calmBucket(), nil); got != "" {
		t.Errorf("nothing is wrong, and %s", got)
	}
	for name, fault := range map[string]func(*node){
		"more than was granted": func(n *node) { n.limit = &careless{limiter: n.limit, generous: true} },
		"a store that fills the bucket": func(n *node) {
			n.w.at(1900*time.Millisecond, func() { n.w.store.record = record{} })
		},
		"a store that forgets what is out": func(n *node) {
			for i := range 50 {
				n.w.at(time.Duration(i)*100*time.Millisecond, func() {
					b := &n.w.store.record.bucket
					for j := range b.Charged {
						b.State.A -= b.Charged[j] * n.w.store.lease.P / 4
					}
					b.State.A = max(0, b.State.A)
				})
			}
		},
	} {
		if got := broken(t, calmBucket(), fault); !strings.Contains(got, "at most the burst of 30") {
			t.Errorf("%s is not noticed: %q", name, got)
		}
	}
}
