package lease

import (
	"testing"

	"github.com/escapement-io/escapement/algo"
)

// TestDryIsNotAway: a window of which the store said that nothing is left is refused until
// it ends, whether or not the store answers since; after that nothing is known.
func TestDryIsNotAway(t *testing.T) {
	const second algo.Mono = 1_000_000_000
	l := New(Config{Lease: algo.Lease{Count: 10, Per: 10_000_000, Interval: 200_000}})
	now := second
	r := Request{Cost: 1, Since: now}
	if a := l.Admit(now, &r); a.Verdict != Waiting {
		t.Fatalf("%+v", a)
	}
	if _, send := l.Poll(now); !send {
		t.Fatal("nothing was asked")
	}
	at := algo.Store(20_000*24*3600*1_000_000 + 1_000_000)
	l.Absorb(now, &algo.Grant{At: at, Window: int64(at) / 10_000_000, Instances: 2, Free: at + 9_000_000})
	if a := l.Admit(now, &r); a.Verdict != Refused {
		t.Fatalf("told that nothing is left: %+v", a)
	}
	for range 3 {
		l.Failed(now)
	}
	for _, c := range []struct {
		after algo.Mono
		want  Verdict
	}{{second, Refused}, {8 * second, Refused}, {11 * second, Unavailable}} {
		if a := l.Admit(now+c.after, &Request{Cost: 1, Since: now + c.after - second}); a.Verdict != c.want {
			t.Errorf("%d s after the store said so: %+v, want verdict %d", c.after/second, a, c.want)
		}
	}
}
