// Package bench is what drills stand on: a folder of their own, redis-servers and wall
// clocks that can be stepped, and the order in which all of it ends.
package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/escapement-io/escapement/internal/redisserver"
	"github.com/escapement-io/escapement/tools/skewrun"
)

// Bench keeps what is to be ended.
type Bench struct {
	Dir string // gone after End

	tool   string // skewrun, once a clock was made
	clocks int
	ends   []func()
}

// New makes a bench. End it.
func New() (*Bench, error) {
	dir, err := os.MkdirTemp("", "escapement-drill-*")
	if err != nil {
		return nil, fmt.Errorf("drill: %w", err)
	}
	return &Bench{Dir: dir}, nil
}

// End ends what was started, the last first.
func (b *Bench) End() {
	for i := len(b.ends) - 1; i >= 0; i-- {
		b.ends[i]()
	}
	_ = os.RemoveAll(b.Dir) // what stays is temporary
}

// OnEnd has End call f.
func (b *Bench) OnEnd(f func()) { b.ends = append(b.ends, f) }

// Clock is a wall clock that programs can be run under. A nil Clock is the machine's.
type Clock struct{ tool, file string }

// Clock makes a wall clock that is right. The first one builds skewrun, and finds out
// whether this machine can use it: skewrun.ErrUnsupported says what is missing.
func (b *Bench) Clock(ctx context.Context) (*Clock, error) {
	if b.tool == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			cache = os.TempDir()
		}
		tool, err := skewrun.Build(ctx, filepath.Join(cache, "escapement"))
		if err != nil {
			return nil, err
		}
		if err := skewrun.Usable(ctx, tool); err != nil {
			return nil, err
		}
		b.tool = tool
	}
	b.clocks++
	c := &Clock{tool: b.tool, file: filepath.Join(b.Dir, fmt.Sprintf("clock-%d", b.clocks))}
	return c, skewrun.Control(ctx, c.tool, c.file, "set", "0")
}

// Step moves the clock by so much.
func (c *Clock) Step(ctx context.Context, by time.Duration) error {
	return skewrun.Control(ctx, c.tool, c.file, "step", fmt.Sprintf("%+dns", by.Nanoseconds()))
}

// Under is the command that runs a command under the clock.
func (c *Clock) Under(command []string) []string {
	if c == nil {
		return command
	}
	return append([]string{c.tool, "run", c.file, "--"}, command...)
}

// Redis starts a server under a clock.
func (b *Bench) Redis(ctx context.Context, o redisserver.Options, c *Clock) (*redisserver.Server, error) {
	o.Wrap = c.Under
	s, err := redisserver.Start(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("drill: %w", err)
	}
	b.OnEnd(s.Stop)
	return s, nil
}

// Await waits for a condition, at most half a minute.
func Await(ctx context.Context, what string, holds func() bool) error {
	for range 600 {
		if holds() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("drill: in vain: %s", what)
}
