package drill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/tools/skewrun"
)

// grace is what building, starting and ending may take beside the load.
const grace = time.Minute

// ClockStep starts a process under a wall clock of its own, loads it on a fixed schedule and
// changes that clock between two requests, once per phase. The machine's clock is left alone.
// It needs Linux on x86-64 with gcc and ptrace: skewrun.ErrUnsupported says what is missing.
func ClockStep(ctx context.Context, o Options) (*Run, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	load := o.Phase * time.Duration(len(o.Changes)+1)
	ctx, cancel := context.WithTimeoutCause(ctx, load+grace, fmt.Errorf("drill: not done %v after the load was to end: this machine is too busy", grace))
	defer cancel()
	tool, err := skewrun.Build(ctx, o.Cache)
	if err != nil {
		return nil, err
	}
	if err := skewrun.Usable(ctx, tool); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "escapement-drill-*")
	if err != nil {
		return nil, fmt.Errorf("drill: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // what stays is temporary
	file := filepath.Join(dir, "clock")
	if err := skewrun.Control(ctx, tool, file, "set", "0"); err != nil {
		return nil, err
	}
	p, err := start(ctx, append(o.under(tool, file), o.Child...))
	if err != nil {
		return nil, err
	}
	r := &Run{Limit: o.Limit, Rate: o.Rate, Naive: o.Naive, Wall: p.wall}
	err = r.load(ctx, &o, p, func(c Change) error {
		verb, value := c.control()
		return skewrun.Control(ctx, tool, file, verb, value)
	})
	err = errors.Join(err, p.stop())
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	r.Events = p.seen()
	return r, err
}

// under is skewrun and how it runs a program. The boot clock is read by a system call, which
// it answers only where a suspend asks for that.
func (o *Options) under(tool, file string) []string {
	if slices.ContainsFunc(o.Changes, func(c Change) bool { return c.Suspend != 0 }) {
		return []string{tool, "run", "-s", file, "--"}
	}
	return []string{tool, "run", file, "--"}
}

// load makes the requests of every phase, one at a time. The first comes at once; those
// after it keep half an interval away from the boundaries of phases and, where the rate is
// a multiple of the limit's, from the instants at which units fall due, where it would be
// chance who gets them.
func (r *Run) load(ctx context.Context, o *Options, p *process, change func(Change) error) error {
	interval := time.Second / time.Duration(o.Rate)
	each := int(o.Phase / interval)
	timer := time.NewTimer(0)
	defer timer.Stop()
	begin := clock.Mono()
	wait := func(d time.Duration) error {
		timer.Reset(time.Duration(begin + algo.Mono(d) - clock.Mono()))
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for i := range len(o.Changes) + 1 {
		from := time.Duration(i) * o.Phase
		if err := wait(from); err != nil {
			return err
		}
		if o.Progress != nil {
			o.Progress(i)
		}
		phase := Phase{Applied: clock.Mono(), Asked: make([]Asked, 0, each)}
		if i > 0 {
			phase.Change = o.Changes[i-1]
			if err := change(phase.Change); err != nil {
				return err
			}
		}
		for n := range each {
			if i+n > 0 {
				if err := wait(from + time.Duration(n)*interval + interval/2); err != nil {
					return err
				}
			}
			a, err := p.ask(ctx)
			if err != nil {
				return err
			}
			phase.Asked = append(phase.Asked, a)
		}
		r.Phases = append(r.Phases, phase)
	}
	return wait(o.Phase * time.Duration(len(o.Changes)+1))
}
