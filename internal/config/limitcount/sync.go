package limitcount

import (
	"fmt"
	"time"

	"github.com/escapement-io/escapement/internal/config/tree"
)

// readSync reads how often instances agree, and how: sync_mode is no option of the
// plugins themselves.
func (c *Conf) readSync(o *tree.Object) {
	if v, ok := o.Get("sync_mode"); ok {
		s, _ := v.OneOf("delayed", "lease")
		c.Lease = s == "lease"
	}
	v, ok := o.Get("sync_interval")
	if ok {
		c.readInterval(v)
	}
	if c.SyncInterval > 0 && c.Policy == "local" {
		v.Warn("sync_interval has no effect with policy: local", "remove it, or change the policy")
		c.SyncInterval = 0
	}
	if c.SyncInterval == 0 {
		if o.Has("sync_mode") {
			o.At("sync_mode").Warn("sync_mode has no effect where every request asks the store", "remove it, or write a sync_interval with a Redis policy")
		}
		c.Lease = false
	}
}

// readInterval reads −1, or at least 0.1 and less than the window where that is a number.
func (c *Conf) readInterval(v tree.Value) {
	s, ok := v.Number()
	switch {
	case !ok || s == -1:
		return
	case s < 0.1:
		v.Fail("sync_interval should not be smaller than 0.1", "use -1 to ask the store on every request, or at least 0.1")
		return
	case s > maxWindow:
		v.Fail("sync_interval should be smaller than time_window", "5 % of the window is a good start")
		return
	}
	c.SyncInterval = time.Duration(s * float64(time.Second)).Round(time.Millisecond)
	for _, r := range c.Rules {
		window := time.Duration(r.Window.N) * time.Second
		switch {
		case r.Window.Template != nil || window == 0:
		case c.SyncInterval >= window:
			v.Fail("sync_interval should be smaller than time_window", fmt.Sprintf("5 %% of the window is a good start, here %.3g", window.Seconds()/20))
			return
		case c.Lease && c.Sliding && 2*c.SyncInterval > window:
			v.Fail("sync_interval is above half of time_window: with sync_mode: lease a sliding window is enforced as a rolling one, which hands out no more than half of it ahead",
				fmt.Sprintf("use at most %.3g, or sync_mode: delayed", window.Seconds()/2))
			return
		}
	}
}
