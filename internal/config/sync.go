package config

import (
	"fmt"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/config/tree"
)

// minLease is the shortest interval of leases.
const minLease = time.Duration(algo.MinLeaseInterval) * time.Microsecond

// ForWindow is the limit as it holds for requests that ask for a window of per. A window
// that is not longer than the interval of the synchronisation, or of which leases cannot
// hand out half, is kept exactly: every request asks the store.
func (l *Limit) ForWindow(per time.Duration) escapement.Limit {
	w := l.Limit
	w.Rate.Per = per
	least := l.Sync + 1
	if l.SyncMode == escapement.SyncLease && rolls(l.Algorithm) {
		least = 2 * l.Sync
	}
	if l.Window != nil && per < least {
		w.Sync, w.SyncMode, w.Fence = 0, 0, false
	}
	return w
}

// rolls reports whether leases of the algorithm reach half a period ahead at most.
func rolls(a escapement.Algorithm) bool {
	return a == escapement.SlidingWindow || a == escapement.RollingWindow
}

// readSync reads sync of a limit whose rate has been read. After a problem the interval
// is one that nothing is wrong with, so that the rest is judged too.
func readSync(v tree.Value, l *Limit) {
	if v.Node.Kind == tree.String || v.Node.Kind == tree.Number {
		v.Fail(v.Quote()+" is not a map", "write sync: {interval: 200ms}, with how often instances agree")
		return
	}
	o, ok := v.Object()
	if !ok {
		return
	}
	if m, ok := o.Get("mode"); ok {
		if s, ok := m.OneOf("lease", "delayed"); ok {
			l.SyncMode, _ = escapement.ParseSyncMode(s)
		}
	}
	if f, ok := o.Get("fence"); ok {
		if l.Fence, ok = f.Bool(); ok && l.Fence && l.SyncMode != escapement.SyncLease {
			f.Fail("nothing is handed out in advance that a store could forget", "write mode: lease, or remove fence")
			l.Fence = false
		} else if ok && l.Fence && (l.Algorithm == escapement.TokenBucket || l.Algorithm == escapement.GCRA) {
			f.Fail("a "+l.Algorithm.String()+" has no fence: it fills up by itself", "use fixed_window or rolling_window, or remove fence")
			l.Fence = false
		}
	}
	if i, ok := o.Need("interval", "write how often instances agree, such as interval: 200ms"); ok {
		d, ok := i.Duration(time.Millisecond, time.Hour)
		if ok && intervalFits(i, d, l) {
			l.Sync = d
		} else if d = (l.Rate.Per / 4).Truncate(time.Microsecond); d >= minLease {
			l.Sync = d
		}
	}
	l.Fence = l.Fence && l.Sync > 0
	o.Done()
}

// intervalFits reports what is wrong with an interval in the words of the configuration.
func intervalFits(v tree.Value, d time.Duration, l *Limit) bool {
	per, leased := l.Rate.Per, l.SyncMode == escapement.SyncLease
	switch {
	case per > 0 && d >= per:
		v.Fail("the interval is not below the period of the limit", "agree several times in a period; 5 % of it is a good start")
	case leased && d < minLease:
		v.Fail(fmt.Sprintf("quota cannot be handed out every %v", d), fmt.Sprintf("use at least %v", minLease))
	case leased && per > 0 && rolls(l.Algorithm) && 2*d > per:
		v.Fail("the interval is above half the period: a rolling window hands out no more than half of it ahead",
			fmt.Sprintf("use at most %v, or a fixed_window", per/2))
	default:
		return true
	}
	return false
}

// SyncSummary says how instances agree on a limit, and what that costs.
type SyncSummary struct {
	Mode     string `json:"mode"`     // lease or delayed
	Interval string `json:"interval"` // between two agreements of an instance and the store
	Above    string `json:"above"`    // the limit, in one window at even demand: N instances of r requests per second
	Worst    string `json:"worst"`    // the most in one window
}

// sync describes how instances agree by way of the store; nil if every request asks. The count is as s shows
// it, headroom taken off.
func (l *Limit) sync(s *Summary) *SyncSummary {
	if l.Sync == 0 || l.Store == nil {
		return nil
	}
	out := &SyncSummary{Mode: l.SyncMode.String(), Interval: l.Sync.String(), Above: "0", Worst: fmt.Sprint(s.Count)}
	if l.Algorithm == escapement.TokenBucket || l.Algorithm == escapement.GCRA {
		out.Worst = fmt.Sprint(s.Capacity + s.Count) // in a span of the period
	}
	if l.SyncMode == escapement.SyncDelayed {
		out.Above = "(N−1) × r × " + out.Interval
		out.Worst = fmt.Sprintf("N × %d", s.Count)
		if n := l.instances(); n > 0 {
			out.Above = fmt.Sprintf("%d × r × %v", n-1, l.Sync)
			out.Worst = times(n, s.Count)
		}
	}
	return out
}

// bound says in words what the way of agreeing adds to what passes at most.
func (s *SyncSummary) bound() string {
	if s.Mode == escapement.SyncLease.String() {
		return "; nothing above it, whatever the number of instances"
	}
	return fmt.Sprintf("; above it at even demand %s in a window, N instances taking r requests a second each; at worst %s in one", s.Above, s.Worst)
}

// instances is how many share the limit, as far as the configuration says; 0: unknown.
func (l *Limit) instances() int {
	if l.Store == nil {
		return 0
	}
	return l.Store.Instances
}
