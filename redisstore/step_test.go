package redisstore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/redistest"
	"github.com/escapement-io/escapement/tools/skewrun"
)

// wall is a wall clock that servers are run under.
type wall struct{ tool, file string }

// newWall makes a wall clock of its own.
func newWall(t *testing.T) wall {
	t.Helper()
	tool, err := skewrun.Build(t.Context(), filepath.Join(os.TempDir(), "escapement-skewrun"))
	if err != nil {
		t.Fatal(err)
	}
	w := wall{tool, filepath.Join(t.TempDir(), "clock")}
	if err := skewrun.Control(t.Context(), tool, w.file, "set", "0"); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w wall) under(command []string) []string {
	return append([]string{w.tool, "run", w.file, "--"}, command...)
}

func (w wall) step(t *testing.T, d time.Duration) {
	t.Helper()
	if err := w.move(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

func (w wall) move(ctx context.Context, d time.Duration) error {
	return skewrun.Control(ctx, w.tool, w.file, "step", fmt.Sprintf("%+dms", d.Milliseconds()))
}

func TestTheClockOfARealServerSteps(t *testing.T) {
	for _, instances := range []int{1, 3} {
		patiently(t, func() string { return stepServer(t, instances) })
	}
}

// stepServer steps the clock of a server four times under load and says what was not as it
// should be. More than is right is never forgiven.
func stepServer(t *testing.T, instances int) (problem string) {
	w := newWall(t)
	srv := redistest.Start(t, redistest.Options{Wrap: w.under})
	var stores []*Store
	for range instances {
		stores = append(stores, open(t, Config{Addrs: []string{srv.Addr()}}))
	}
	p := plan(t, escapement.Limit{Name: "step", Rate: escapement.PerSecond(10)})
	extra, gap := load(t, stores, p, "k", func() {
		for _, by := range []time.Duration{45 * time.Second, -30 * time.Second, -105 * time.Second, 60 * time.Second} {
			time.Sleep(1200 * time.Millisecond)
			w.step(t, by)
		}
		time.Sleep(1200 * time.Millisecond)
	})
	snap := stores[0].Snapshot()
	t.Logf("%d instances: %+d beyond right, longest gap %v, e %v, %d steps seen, %d clamped", instances, extra, gap, snap.Error, snap.Steps, snap.Clamped)
	switch {
	case extra > 3:
		t.Errorf("%d instances: %+d admitted beyond right, want +3 at most", instances, extra)
	case extra < -3:
		return fmt.Sprintf("%d instances: %+d admitted beyond right, want -3 at least", instances, extra)
	case snap.Steps < 4 || snap.Last < 59*time.Second || snap.Last > 61*time.Second:
		return fmt.Sprintf("%d steps were seen, the last %v; want 4, the last 60s", snap.Steps, snap.Last)
	}
	return ""
}

// A lone instance that restarts right after a step that nobody else saw: at most one
// capacity more than is right, and no outage: from the step on somebody is admitted after
// three and a half seconds at most.
func TestALoneRestartRightAfterAStep(t *testing.T) {
	for _, by := range []time.Duration{45 * time.Second, -45 * time.Second} {
		patiently(t, func() string { return loneRestart(t, by) })
	}
}

func loneRestart(t *testing.T, by time.Duration) (problem string) {
	w := newWall(t)
	srv := redistest.Start(t, redistest.Options{Wrap: w.under})
	cfg := Config{Addrs: []string{srv.Addr()}}
	p := plan(t, escapement.Limit{Name: "restart", Rate: escapement.PerSecond(10)})
	first := open(t, cfg)
	take(t, first, p, "k", 10)
	began := clock.Mono()
	w.step(t, by)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := open(t, cfg)
	asked := clock.Mono()
	a := admissions{began: began}
	for clock.Since(asked) < 3*time.Second {
		if take(t, second, p, "k", 1).Allowed {
			a.add()
		}
		time.Sleep(5 * time.Millisecond)
	}
	a.ended = clock.Mono()
	admitted, right := int64(len(a.at)), int64(clock.Since(began)/(100*time.Millisecond))
	t.Logf("step %v: %d admitted, %d right, longest gap %v, the first within %v", by, admitted, right, a.gap(), time.Duration(asked-began))
	if admitted > right+10+2 {
		t.Errorf("step %v: %d admitted, %d are right and one capacity may be minted", by, admitted, right)
	}
	// The line may go on from the last stamp, which costs what was missed, not more.
	if admitted < 15 || a.gap() > 3500*time.Millisecond {
		return fmt.Sprintf("step %v: %d admitted in 3 s and a gap of %v; want 15 at least and 3.5s at most", by, admitted, a.gap())
	}
	return ""
}
