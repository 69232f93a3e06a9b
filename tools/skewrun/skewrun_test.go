package skewrun

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A program under a clock that was stepped an hour sees that hour, and nothing else does.
func TestStepIsSeenByTheProgramAlone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tool, err := Build(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	clk, err := tool.Clock(ctx, filepath.Join(t.TempDir(), "clock"))
	if err != nil {
		t.Fatal(err)
	}
	before := seconds(t, exec.CommandContext(ctx, "date", "+%s"))
	for _, step := range []time.Duration{time.Hour, -2 * time.Hour} {
		if err := clk.Step(ctx, step); err != nil {
			t.Fatal(err)
		}
	}
	under := seconds(t, clk.Command(ctx, "date", "+%s"))
	after := seconds(t, exec.CommandContext(ctx, "date", "+%s"))
	if under < before-3600 || under > after-3600 {
		t.Errorf("under a clock an hour behind: %d, want %d to %d", under, before-3600, after-3600)
	}
	if err := clk.Command(ctx, "sh", "-c", "exit 7").Run(); err == nil || err.(*exec.ExitError).ExitCode() != 7 {
		t.Errorf("exit status of the program: %v, want 7", err)
	}
}

func seconds(t *testing.T, cmd *exec.Cmd) int64 {
	t.Helper()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
