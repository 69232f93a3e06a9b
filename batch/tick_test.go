package batch

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestEveryTickReports: what was admitted is in the store one interval later, at every
// tick, when no request waits and nothing else wakes the store.
func TestEveryTickReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(1)
		s := open(t, o, Options{})
		l := limits()[3]
		l.Rate.Count = 1000
		p := compile(t, l)
		for taken := int64(1); taken <= 20; taken++ {
			if d := take(t, s, p, 1); !d.Allowed {
				t.Fatalf("take %d was refused", taken)
			}
			time.Sleep(210 * time.Millisecond)
			o.mu.Lock()
			var told int64
			for _, windows := range o.counted {
				for _, units := range windows {
					told += units
				}
			}
			o.mu.Unlock()
			if told != taken {
				t.Fatalf("%d taken, and the store knows of %d an interval later", taken, told)
			}
		}
	})
}
