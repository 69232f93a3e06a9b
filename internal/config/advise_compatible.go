package config

import (
	"fmt"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/config/limitcount"
	"github.com/escapement-io/escapement/internal/config/tree"
)

// syncCompatible makes the instances agree on the limit of a rule now and then, and says
// what that changes about it. It reports whether they can.
func syncCompatible(conf *limitcount.Conf, rule *limitcount.Rule, l *Limit) bool {
	if l.Count != nil {
		rule.At.At("count").Warn("a count of the request cannot be agreed on in advance: every request of this limit asks the store",
			"write a number, or sync_interval: -1, which is what happens")
		return true
	}
	l.Sync, l.SyncMode = conf.SyncInterval, escapement.SyncDelayed
	if conf.Lease {
		l.SyncMode = escapement.SyncLease
		if !conf.Sliding {
			l.Align = escapement.Epoch
		}
		if l.Rate.Count > algo.MaxLease {
			rule.At.At("count").Fail(fmt.Sprintf("%d is too large to be leased", l.Rate.Count), fmt.Sprintf("use at most %d, or sync_mode: delayed", int64(algo.MaxLease)))
			return false
		}
	}
	if l.Window != nil {
		longest := fmt.Sprintf("not longer than %v", l.Sync)
		if conf.Lease && conf.Sliding {
			longest = fmt.Sprintf("below %v", 2*l.Sync)
		}
		rule.At.At("time_window").Warn("requests whose window is "+longest+" ask the store, each of them", "keep sync_interval below every window that requests may ask for")
	}
	return true
}

// adviseCompatible warns of what the plugin's own documentation warns of. It reads the
// nodes themselves, so that advice comes also for a plugin that is refused.
func adviseCompatible(o *tree.Object, plugin string) {
	sliding, leased := o.Node.Field("window_type").Is("sliding"), o.Node.Field("sync_mode").Is("lease")
	interval, _ := o.Node.Field("sync_interval").Float()
	if p := o.Node.Field("policy"); p == nil || p.Is("local") {
		interval = 0
	}
	if interval > 0 && o.Node.Field("policy").Is("redis-sentinel") && plugin == limitcount.Advanced {
		o.At("sync_interval").Warn("limit-count-advanced itself does not check sync_interval with policy: redis-sentinel", "keep it below time_window")
	}
	switch {
	case interval < 0.1 || !leased:
	case sliding:
		adviseRolling(o.At("window_type"), "expect steadier answers, or write sync_mode: delayed")
	default:
		o.At("sync_mode").Warn("under leases windows begin on multiples of time_window since 1970, and not with the first request",
			"expect the first window to be a part of one, or write sync_mode: delayed")
	}
	parts := []*tree.Object{o}
	if rules := o.Node.Field("rules"); rules != nil {
		parts = o.Below("rules")
	}
	for _, p := range parts {
		count, counted := p.Node.Field("count").Float()
		window, bounded := p.Node.Field("time_window").Float()
		if !counted || !bounded || count < 1 || window < 1 || window > 36525*24*3600 {
			continue
		}
		per := time.Duration(window * float64(time.Second))
		if !sliding {
			adviseFixed(p.At("time_window"), int64(count))
		}
		if interval >= 0.1 && interval < window && !leased {
			a := escapement.FixedWindow
			if sliding {
				a = escapement.SlidingWindow
			}
			adviseDelayed(o.At("sync_interval"), a, int64(count), per, time.Duration(interval*float64(time.Second)).Round(time.Millisecond), 0)
		}
	}
}
