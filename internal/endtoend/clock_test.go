package endtoend

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement/clock/hook"
	"github.com/escapement-io/escapement/tools/skewrun"
)

func newSkewed(ctx context.Context, t *testing.T, flags ...string) *skewed {
	t.Helper()
	tool, err := skewrun.Build(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	clk := &skewed{tool: tool, file: filepath.Join(t.TempDir(), "clock"), flags: flags}
	if err := clk.step(ctx, 0); err != nil {
		t.Fatal(err)
	}
	return clk
}

// The program that the configuration names is told of a step, once.
func TestProgramIsToldOfAStep(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	clk := newSkewed(ctx, t)
	told := filepath.Join(t.TempDir(), "told")
	on := fmt.Sprintf("clock: {on_step: {exec: [sh, -c, 'cat >\"$0.new\" && mv \"$0.new\" \"$0\"', %q], min_size: 50ms}}\n", told)
	start(t, newUpstream(t), on+limited("count: 10, per: 1s"), clk)
	for _, step := range []time.Duration{20 * time.Millisecond, -320 * time.Millisecond} {
		if err := clk.step(ctx, step); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond) // several checks, so that the steps are two
	}
	var p hook.Payload
	for {
		data, err := os.ReadFile(told)
		if err == nil {
			if err := json.Unmarshal(data, &p); err != nil {
				t.Fatal(err)
			}
			break
		}
		select {
		case <-ctx.Done():
			t.Fatal("nobody was told")
		case <-time.After(20 * time.Millisecond):
		}
	}
	if p.Kind != "step" || p.Direction != "backward" || math.Abs(p.SizeMS+320) > 1 || p.Level != "critical" || p.Suppressed != 0 {
		t.Errorf("it was told %+v, want one step of -320 ms", p)
	}
}

// Time that the machine slept is earned by limits unless the configuration says otherwise.
func TestSuspendCreditIsConfigurable(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	for credit, want := range map[bool]int{true: 20, false: 10} {
		t.Run(fmt.Sprint(credit), func(t *testing.T) {
			clk := newSkewed(ctx, t, "-s")
			u := newUpstream(t)
			g := start(t, u, fmt.Sprintf("clock: {suspend_credit: %v}\n", credit)+limited("count: 10, per: 1h"), clk)
			offer(t, g.url, 50, time.Second, "alice")
			if u.total() != 10 {
				t.Fatalf("%d admitted of a burst of 10", u.total())
			}
			if err := skewrun.Control(ctx, clk.tool, clk.file, "suspend", "3600s"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // the store looks four times a second
			offer(t, g.url, 50, time.Second, "alice")
			if u.total() != want {
				t.Errorf("%d admitted before and after an hour of sleep, want %d", u.total(), want)
			}
		})
	}
}

// A reload that changes the section clock is taken over but for that, and says so.
func TestReloadSaysThatClockNeedsARestart(t *testing.T) {
	t.Parallel()
	g := start(t, newUpstream(t), limited("count: 10, per: 1s"), nil)
	data, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(g.file, append([]byte("clock: {warning: 7ms}\n"), data...), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if log := g.log(); strings.Contains(log, "the section clock has changed") && strings.Contains(log, "configuration reloaded") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("not said in:\n%s", g.log())
}
