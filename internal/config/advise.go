package config

import (
	"fmt"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/config/tree"
)

// adviseLimit warns of what a limit without mistakes does all the same.
func adviseLimit(o *tree.Object, l *Limit, use storeUse) {
	if l.OnFailure == escapement.LocalShare && use.name == "" {
		o.At("on_failure").Warn("in memory local_share means deny: there is no store to lose, only the cap of keys to reach",
			"write deny, or name a store")
	}
	if l.Algorithm == escapement.FixedWindow && l.Align < escapement.Day {
		adviseFixed(o.At("algorithm"), l.Rate.Count)
	}
	if use.interval == 0 {
		return
	}
	if !use.delayed {
		if l.Algorithm == escapement.SlidingWindow {
			o.At("algorithm").Warn("under leases a sliding_window is enforced as a rolling_window, which holds in every span",
				"write rolling_window, or mode: delayed under sync")
		}
		return
	}
	adviseDelayed(o.At("sync"), l.Algorithm, l.Rate.Count, l.Rate.Per, use.interval)
}

// adviseFixed says what a fixed window lets through.
func adviseFixed(v tree.Value, count int64) {
	v.Warn(fmt.Sprintf("a fixed window lets up to %d, twice the count, pass in a short span around the boundary of two windows", 2*count),
		"use a sliding or rolling window unless the total of each window is what matters")
}

// adviseDelayed gives the bounds of N instances that agree every interval and admit from
// their last view between.
func adviseDelayed(v tree.Value, a escapement.Algorithm, count int64, per, interval time.Duration) {
	v.Warn(fmt.Sprintf("in the worst case N instances pass N × %d in one window: each starts from a full budget", count),
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
