// Package skewrun builds the tool of this folder from its embedded sources and runs
// programs under it: each with a wall clock of its own that can be stepped while it
// runs. Linux on x86-64 with gcc and binutils; the machine's clock is never touched.
package skewrun

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed Makefile src
var sources embed.FS

// Tool is a built skewrun.
type Tool struct{ path string }

// Build compiles the tool in dir, which must exist. The error holds what the compiler
// said.
func Build(ctx context.Context, dir string) (*Tool, error) {
	err := fs.WalkDir(sources, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := sources.ReadFile(path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o644)
	})
	if err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "make", "-s", "-C", dir).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("skewrun: build (needs make, gcc and binutils on Linux x86-64): %w\n%s", err, out)
	}
	return &Tool{path: filepath.Join(dir, "skewrun")}, nil
}

// Clock is a wall clock that programs can be run under. Several programs may share one.
type Clock struct {
	tool *Tool
	file string
}

// Clock makes a clock with no offset whose control file is file.
func (t *Tool) Clock(ctx context.Context, file string) (*Clock, error) {
	c := &Clock{tool: t, file: file}
	return c, c.control(ctx, "set", "0")
}

// Command is exec.CommandContext for a program that runs under the clock. Signals reach
// the program through the tool, whose exit status is the program's.
func (c *Clock) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, c.tool.path, append([]string{"run", c.file, "--", name}, args...)...)
}

// Step moves the wall clock by d, at once.
func (c *Clock) Step(ctx context.Context, d time.Duration) error {
	return c.control(ctx, "step", fmt.Sprintf("%dns", d.Nanoseconds()))
}

// Suspend makes it look as if the machine had slept for d: the boot clock and the wall
// clock advance, the monotonic clock does not.
func (c *Clock) Suspend(ctx context.Context, d time.Duration) error {
	if err := c.control(ctx, "boot", fmt.Sprintf("%dns", d.Nanoseconds())); err != nil {
		return err
	}
	return c.Step(ctx, d)
}

func (c *Clock) control(ctx context.Context, verb, arg string) error {
	out, err := exec.CommandContext(ctx, c.tool.path, "ctl", c.file, verb, arg).CombinedOutput()
	if err != nil {
		return fmt.Errorf("skewrun: ctl %s %s: %w: %s", verb, arg, err, out)
	}
	return nil
}
