package escapement_test

import (
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

func TestSyncIsChecked(t *testing.T) {
	base := escapement.Limit{Name: "l", Algorithm: escapement.FixedWindow, Rate: escapement.PerSecond(500), Sync: 200 * time.Millisecond}
	with := func(change func(l *escapement.Limit)) escapement.Limit {
		l := base
		change(&l)
		return l
	}
	for name, c := range map[string]struct {
		limit escapement.Limit
		wrong string
	}{
		"leased":           {base, ""},
		"rolling":          {with(func(l *escapement.Limit) { l.Algorithm = escapement.RollingWindow }), ""},
		"delayed":          {with(func(l *escapement.Limit) { l.SyncMode = escapement.SyncDelayed }), ""},
		"whole window":     {with(func(l *escapement.Limit) { l.SyncMode, l.Sync = escapement.SyncDelayed, time.Second }), "not below the period"},
		"negative":         {with(func(l *escapement.Limit) { l.Sync = -1000 }), "positive"},
		"short":            {with(func(l *escapement.Limit) { l.Sync = time.Millisecond }), "1ms between syncs; use 20ms to"},
		"half of rolling":  {with(func(l *escapement.Limit) { l.Algorithm, l.Sync = escapement.SlidingWindow, 501*time.Millisecond }), "use 20ms to 500ms"},
		"bucket":           {with(func(l *escapement.Limit) { l.Algorithm = escapement.TokenBucket }), ""},
		"small bucket":     {with(func(l *escapement.Limit) { l.Algorithm, l.Burst = escapement.TokenBucket, 50 }), "burst"},
		"pacing":           {with(func(l *escapement.Limit) { l.Algorithm = escapement.Pacing }), "pacing cannot be leased"},
		"bucket, reported": {with(func(l *escapement.Limit) { l.Algorithm, l.SyncMode = escapement.GCRA, escapement.SyncDelayed }), "gcra cannot be reported later"},
		"first use":        {with(func(l *escapement.Limit) { l.Align = escapement.FirstUse }), "cannot be leased"},
		"first use, later": {with(func(l *escapement.Limit) { l.Align, l.SyncMode = escapement.FirstUse, escapement.SyncDelayed }), ""},
		"fenced":           {with(func(l *escapement.Limit) { l.Fence = true }), ""},
		"fenced, reported": {with(func(l *escapement.Limit) { l.SyncMode, l.Fence = escapement.SyncDelayed, true }), "without a lease"},
		"fenced, no sync":  {with(func(l *escapement.Limit) { l.Sync, l.Fence = 0, true }), "without a lease"},
		"unknown":          {with(func(l *escapement.Limit) { l.SyncMode = 7 }), "unknown"},
	} {
		_, err := c.limit.Compile()
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: %v, want %q", name, err, c.wrong)
		}
	}
}

func TestLeasedSlidingIsRolling(t *testing.T) {
	l := escapement.Limit{Name: "l", Algorithm: escapement.SlidingWindow, Rate: escapement.PerSecond(500), Sync: 200 * time.Millisecond}
	p, err := l.Compile()
	if err != nil {
		t.Fatal(err)
	}
	lease, ok := p.Lease()
	if !ok || lease.Buckets == 0 || p.Core().Algorithm() != algo.RollingWindow || p.Limit().Basis() != escapement.Leased {
		t.Errorf("%+v %v, decided as %v on the basis %v", lease, ok, p.Core().Algorithm(), p.Limit().Basis())
	}
	l.SyncMode = escapement.SyncDelayed
	if p, err = l.Compile(); err != nil {
		t.Fatal(err)
	}
	if _, ok := p.Lease(); ok || p.Core().Algorithm() != algo.SlidingWindow || p.Limit().Basis() != escapement.Delayed {
		t.Errorf("lent: %v, decided as %v on the basis %v", ok, p.Core().Algorithm(), p.Limit().Basis())
	}
	if p.Limit().SyncMode.String() != "delayed" {
		t.Error(p.Limit().SyncMode)
	}
}
