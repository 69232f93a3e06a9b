package endtoend

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/escapement-io/escapement/tools/skewrun"
)

// The wall clock of a gateway is stepped back an hour, forward, back and forward again
// while it is under load: it admits what a gateway beside it with a quiet clock admits.
func TestSteppedClockChangesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	tool, err := skewrun.Build(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, limit := range map[string]string{
		"token_bucket":   "algorithm: token_bucket, count: 5, per: 1s, burst: 300",
		"fixed_window":   "algorithm: fixed_window, count: 100, per: 4s",
		"first_use":      "algorithm: fixed_window, align: first_use, count: 100, per: 5s",
		"sliding_window": "algorithm: sliding_window, count: 100, per: 4s",
		"rolling_window": "algorithm: rolling_window, count: 60, per: 5s",
		"calendar":       "algorithm: fixed_window, align: month, zone: Europe/Berlin, count: 400",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patiently(t, func() string { return besideQuiet(ctx, t, tool, limited(limit)) })
		})
	}
}

// besideQuiet loads two gateways alike, steps the clock of one, and says what differs.
func besideQuiet(ctx context.Context, t *testing.T, tool, configuration string) (problem string) {
	clk := &skewed{tool: tool, file: filepath.Join(t.TempDir(), "clock")}
	if err := clk.step(ctx, 0); err != nil {
		t.Fatal(err)
	}
	quiet, stepped := newUpstream(t), newUpstream(t)
	a := start(t, quiet, configuration, nil)
	b := start(t, stepped, configuration, clk)
	boundary(ctx, 4*time.Second)
	var load sync.WaitGroup
	for _, g := range []*gateway{a, b} {
		load.Go(func() { offer(t, g.url, 50, 12*time.Second, "alice") })
	}
	for _, step := range []time.Duration{-time.Hour, 900 * time.Millisecond, -320 * time.Millisecond, time.Minute} {
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
		}
		if err := clk.step(ctx, step); err != nil {
			t.Error(err)
		}
	}
	load.Wait()
	said := fmt.Sprintf("admitted %d with steps, %d without", stepped.total(), quiet.total())
	if d := stepped.total() - quiet.total(); d < -1 || d > 1 || quiet.total() == 0 {
		return said
	}
	t.Log(said)
	return ""
}
