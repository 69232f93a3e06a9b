// Package skewrun carries the C source of skewrun, which runs an unmodified program under a
// wall clock of its own, and builds it where it is needed.
package skewrun

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

//go:embed src
var source embed.FS

// ErrUnsupported says that skewrun cannot be built or used on this machine; the error that
// wraps it says why.
var ErrUnsupported = errors.New("skewrun: not available on this machine")

// Build returns the path of a skewrun in the folder cache, compiling it there unless the
// same source was compiled before. It needs gcc (or the compiler in CC) on Linux on x86-64
// and returns ErrUnsupported, with the reason, where one of them is missing.
func Build(ctx context.Context, cache string) (string, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return "", fmt.Errorf("%w: it needs linux/amd64, this is %s/%s", ErrUnsupported, runtime.GOOS, runtime.GOARCH)
	}
	sum := sha256.New()
	files := map[string][]byte{}
	err := fs.WalkDir(source, "src", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := source.ReadFile(path)
		files[path] = b
		fmt.Fprintf(sum, "%s %d\n%s", path, len(b), b)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("skewrun: reading the embedded source: %w", err)
	}
	built := filepath.Join(cache, fmt.Sprintf("skewrun-%x", sum.Sum(nil)[:8]))
	if info, err := os.Stat(built); err == nil && info.Mode().IsRegular() && info.Mode()&0o100 != 0 {
		return built, nil
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	if _, err := exec.LookPath(cc); err != nil {
		return "", fmt.Errorf("%w: %s is not installed: install gcc, or name a compiler in CC", ErrUnsupported, cc)
	}
	if err := compile(ctx, cc, cache, files, built); err != nil {
		return "", fmt.Errorf("skewrun: compiling it: %w", err)
	}
	return built, nil
}

// compile works in a folder of its own, so that two builds at once do not meet, and moves
// the result into place whole.
func compile(ctx context.Context, cc, cache string, files map[string][]byte, built string) error {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(cache, "build-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Mkdir(filepath.Join(dir, "src"), 0o755); err != nil {
		return err
	}
	for path, b := range files {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(path)), b, 0o644); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"@src/vdso.flags", "-o", "fakevdso.so", "src/fakevdso.c"},
		{"-O2", "-Wall", "-Wextra", "-pthread", "-o", "skewrun", "src/skewrun.c"},
	} {
		cmd := exec.CommandContext(ctx, cc, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", cc, err, out)
		}
	}
	return os.Rename(filepath.Join(dir, "skewrun"), built)
}

// Usable runs a program that does nothing under the skewrun at path. It returns
// ErrUnsupported, with what skewrun said, where the machine forbids it: a sandbox without
// ptrace, for instance.
func Usable(ctx context.Context, path string) error {
	dir, err := os.MkdirTemp("", "skewrun-*")
	if err != nil {
		return fmt.Errorf("skewrun: trying it: %w", err)
	}
	defer os.RemoveAll(dir)
	out, err := exec.CommandContext(ctx, path, "run", filepath.Join(dir, "ctl"), "--", "/bin/true").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: a program could not be started under it (%w): %s", ErrUnsupported, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Control changes the clocks that the control file describes: verb is step, set, rate,
// suspend, boot or mono, value as in "+320ms" or "200ppm".
func Control(ctx context.Context, path, file, verb, value string) error {
	if out, err := exec.CommandContext(ctx, path, "ctl", file, verb, value).CombinedOutput(); err != nil {
		return fmt.Errorf("skewrun: %s %s: %w: %s", verb, value, err, strings.TrimSpace(string(out)))
	}
	return nil
}
