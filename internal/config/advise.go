package config

import (
	"fmt"
	"math"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/config/tree"
)

// adviseLimit warns of what a limit without mistakes does all the same.
func adviseLimit(o *tree.Object, l *Limit) {
	if l.OnFailure == escapement.LocalShare && !o.Has("store") {
		o.At("on_failure").Warn("in memory local_share means deny: there is no store to lose, only the cap of keys to reach",
			"write deny, or name a store")
	}
	if l.Algorithm == escapement.FixedWindow && l.Align < escapement.Day {
		adviseFixed(o.At("algorithm"), l.Rate.Count)
	}
	switch {
	case l.Sync == 0:
	case l.SyncMode == escapement.SyncDelayed:
		adviseDelayed(o.At("sync"), l.Algorithm, l.Summary().Count, l.Rate.Per, l.Sync, l.instances())
	case l.Algorithm == escapement.SlidingWindow:
		adviseRolling(o.At("algorithm"), "write rolling_window, or mode: delayed under sync")
	}
}

// adviseRolling says what leases make of a sliding window.
func adviseRolling(v tree.Value, hint string) {
	v.Warn("under leases a sliding_window is enforced as a rolling_window, which holds in every span", hint)
}

// adviseFixed says what a fixed window lets through.
func adviseFixed(v tree.Value, count int64) {
	v.Warn(fmt.Sprintf("a fixed window lets up to %d, twice the count, pass in a short span around the boundary of two windows", 2*count),
		"use a sliding or rolling window unless the total of each window is what matters")
}

// times writes a product, and what it is unless it is beyond all use.
func times(instances int, count int64) string {
	text := fmt.Sprintf("%d × %d", instances, count)
	if count <= math.MaxInt64/int64(instances) {
		text += fmt.Sprintf(" = %d", int64(instances)*count)
	}
	return text
}

// adviseDelayed gives the bounds of instances that agree every interval and admit from
// their last view between. Their number is 0 where it is not known.
func adviseDelayed(v tree.Value, a escapement.Algorithm, count int64, per, interval time.Duration, instances int) {
	worst := fmt.Sprintf("N instances pass N × %d", count)
	if instances > 0 {
		worst = fmt.Sprintf("%d instances pass %s", instances, times(instances, count))
	}
	v.Warn("in the worst case "+worst+" in one window: each starts from a full budget",
		"size the backend for the number of instances times the count")
	switch a {
	case escapement.FixedWindow:
		v.Warn(fmt.Sprintf("a fixed window repeats the error of delayed synchronisation in every window: (N−1) × r × %v requests more than the limit, r being the requests per second of one instance", interval),
			"use a sliding window, which repays it")
	case escapement.SlidingWindow:
		if share := float64(interval) / float64(per); share > 0.05 {
			v.Warn(fmt.Sprintf("the interval is %.3g %% of the window: expect to admit about %.2g %% less than the limit", 100*share, 50*share),
				fmt.Sprintf("keep it at or below 5 %% of the window, here %v", (per/20).Round(time.Millisecond)))
		}
	case escapement.TokenBucket, escapement.GCRA, escapement.RollingWindow, escapement.Pacing:
	}
}
