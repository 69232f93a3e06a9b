package skewrun

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestBuildOnceAndSkewAProgram(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("skewrun is for linux/amd64")
	}
	cache := t.TempDir()
	path, err := Build(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Build(t.Context(), cache)
	if err != nil || again != path {
		t.Fatalf("the second build gave %s, %v", again, err)
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("it was compiled again: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "build-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := Usable(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	ctl := filepath.Join(cache, "ctl")
	if err := Control(t.Context(), path, ctl, "set", "-876000h"); err != nil { // a century
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), path, "run", "-s", ctl, "--", "date", "-u", "+%Y").Output()
	if err != nil || !strings.HasPrefix(string(out), "19") {
		t.Errorf("a century back it is %q, %v", out, err)
	}
}

func TestBuildSaysWhatIsMissing(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("skewrun is for linux/amd64")
	}
	t.Setenv("CC", "no-such-compiler")
	if _, err := Build(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "no-such-compiler") {
		t.Errorf("got %v", err)
	}
	t.Setenv("CC", "false")
	if _, err := Build(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "compiling") {
		t.Errorf("got %v", err)
	}
}

func TestControlExplainsAMistake(t *testing.T) {
	path, err := Build(t.Context(), t.TempDir())
	if errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := Control(t.Context(), path, filepath.Join(t.TempDir(), "ctl"), "step", "soon"); err == nil || !strings.Contains(err.Error(), "soon") {
		t.Errorf("got %v", err)
	}
}
