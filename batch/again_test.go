package batch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement-io/escapement"
)

// A key that falls silent is dropped. What is admitted when it is back is reported, and is no
// repetition.
func TestAKeyThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(1)
		s := open(t, o, Options{})
		p := compile(t, escapement.Limit{Name: "back", Algorithm: escapement.FixedWindow, Rate: escapement.PerHour(1000)})
		for round := range 3 {
			for range 10 {
				if d := take(t, s, p, 1); !d.Allowed {
					t.Fatalf("round %d: refused", round)
				}
			}
			time.Sleep(time.Minute)
			if v := s.Snapshot(); v.Keys != 0 {
				t.Fatalf("round %d: %d keys are kept", round, v.Keys)
			}
			if got, want := o.total("back/k"), int64(10*(round+1)); got != want {
				t.Errorf("round %d: %d were recorded, want %d", round, got, want)
			}
		}
	})
}
