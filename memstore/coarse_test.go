package memstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement-io/escapement"
)

func TestCoarse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCoarse()
		p := compile(t, escapement.Limit{Name: "coarse", Rate: escapement.PerSecond(1000), Burst: 1})
		s := New(WithClock(c))
		defer s.Close()
		single := NewSingle(p, WithClock(c))
		if !single.cell.used {
			t.Error("a coarse clock never goes back, yet the Single took the mutex")
		}
		for name, store := range map[string]escapement.FastStore{"store": s, "single": single} {
			from := c.Now()
			if d := mustTake(t, store, p, "k", 1); !d.Allowed {
				t.Errorf("%s: the first is refused", name)
			}
			time.Sleep(900 * time.Microsecond)
			synctest.Wait()
			if d := mustTake(t, store, p, "k", 1); d.Allowed || c.Now() != from {
				t.Errorf("%s: allowed before a tick", name)
			}
			time.Sleep(100 * time.Microsecond)
			synctest.Wait()
			if d := mustTake(t, store, p, "k", 1); !d.Allowed || c.Now() != from+1000 {
				t.Errorf("%s: refused after a tick; the clock moved by %d µs", name, c.Now()-from)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		c.Close()
		c.Close()
		stands := c.Now()
		time.Sleep(time.Second)
		synctest.Wait()
		if c.Now() != stands {
			t.Error("a closed clock moves")
		}
	})
}
