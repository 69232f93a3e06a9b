package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/escapement-io/escapement/internal/plot"
	"github.com/escapement-io/escapement/internal/replay"
	"github.com/escapement-io/escapement/internal/replay/cases"
	"github.com/escapement-io/escapement/internal/replay/trace"
)

// ReplayCmd is escapement replay.
type ReplayCmd struct {
	File   string `arg:"" help:"A file of cases, or a trace: CSV, JSON lines or an access log, gzip or not; - is standard input."`
	Format string `enum:"auto,cases,csv,json,log" default:"auto" help:"What the file is, where it cannot be told from its beginning: ${enum}."`
	Store  string `enum:"memory,redis" default:"memory" help:"Where cases are run: ${enum}. redis starts a redis-server of its own."`
	Redis  string `placeholder:"URL" help:"With --store redis: use this server, such as redis://127.0.0.1:6379/0, and remove what was written."`
	JSON   bool   `name:"json" help:"Print one JSON document."`
	Strict bool   `help:"Stop at the first line that is broken or out of order."`

	Limits  limitFlags `embed:""`
	Compare []string   `sep:"none" placeholder:"FILE|SPEC" help:"A second configuration, or a limit as in --limit, to try beside the first; repeat for more limits of the second."`

	Key      []string `placeholder:"FIELD" help:"Field that requests are counted by; several are taken together."`
	Time     string   `placeholder:"FIELD" help:"Field with the time."`
	TimeUnit string   `enum:"auto,s,ms,us,ns" default:"auto" help:"Unit of times that are numbers: ${enum}."`
	Cost     string   `placeholder:"FIELD" help:"Field with the cost."`
	Top      int      `default:"10" help:"How many of the keys that suffer most to name."`
	Plot     string   `placeholder:"FILE" help:"Draw what was offered and admitted per second to a .png or .svg file."`
}

// Run replays the file and reports. Exit 0: all cases passed, or the trace was replayed;
// 1: a case failed, or a strict replay stopped; 3: the file could not be read.
func (c *ReplayCmd) Run(ctx context.Context, out *Output) error {
	var plotFormat string
	if c.Plot != "" {
		var err error
		if plotFormat, err = plot.Format(c.Plot); err != nil {
			return usage("%w", err)
		}
	}
	if c.File == "-" {
		// Nothing else ends a read from a terminal or a pipe that says nothing.
		done := make(chan error, 1)
		go func() { done <- c.file(ctx, out, os.Stdin, plotFormat) }()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return fmt.Errorf("replay: %w", ctx.Err())
		}
	}
	f, err := os.Open(c.File)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	return c.file(ctx, out, f, plotFormat)
}

func (c *ReplayCmd) file(ctx context.Context, out *Output, file *os.File, plotFormat string) error {
	in := bufio.NewReaderSize(file, peekSize)
	if c.Format == "cases" || c.Format == "auto" && looksLikeCases(in) {
		return c.cases(ctx, out, in)
	}
	return c.trace(ctx, out, in, sizeOf(file), plotFormat)
}

const peekSize = 64 << 10

// looksLikeCases reports whether the first line that says something is a case.
func looksLikeCases(in *bufio.Reader) bool {
	head, _ := in.Peek(peekSize)
	for line := range bytes.Lines(bytes.TrimPrefix(head, []byte("\ufeff"))) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return line[0] == '{' && bytes.Contains(line, []byte(`"events"`)) && bytes.Contains(line, []byte(`"id"`))
		}
	}
	return false
}

func sizeOf(f *os.File) int64 {
	if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
		return st.Size()
	}
	return 0
}

func (c *ReplayCmd) cases(ctx context.Context, out *Output, in io.Reader) error {
	list, err := cases.Parse(in)
	if err != nil {
		return fmt.Errorf("replay: %s: %w", c.File, err)
	}
	store, end, err := c.backend(ctx)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	var done atomic.Int64
	stop := out.progress(func() string { return fmt.Sprintf("%d of %d cases", done.Load(), len(list)) })
	r, err := cases.Run(ctx, list, store, func(n int) { done.Store(int64(n)) })
	stop()
	err = errors.Join(err, end())
	if err != nil {
		return fmt.Errorf("replay: %s: %w", c.File, err)
	}
	if err := out.Result("replay", c.JSON, r); err != nil {
		return err
	}
	if len(r.Failed) > 0 {
		return found()
	}
	return nil
}

// backend is where cases are run, and what ends it.
func (c *ReplayCmd) backend(ctx context.Context) (cases.Backend, func() error, error) {
	var r *cases.Redis
	var err error
	switch {
	case c.Store == "memory" && c.Redis != "":
		return nil, nil, usage("replay: --redis without --store redis; write both")
	case c.Store == "memory":
		return cases.Memory{}, func() error { return nil }, nil
	case c.Redis != "":
		r, err = cases.UseRedis(ctx, c.Redis)
	default:
		r, err = cases.StartRedis(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	return r, func() error { return r.Close(context.WithoutCancel(ctx)) }, nil
}

func (c *ReplayCmd) trace(ctx context.Context, out *Output, in io.Reader, size int64, plotFormat string) error {
	format, err := trace.ParseFormat(c.Format)
	if err != nil {
		return usage("%w", err)
	}
	unit, err := trace.ParseUnit(c.TimeUnit)
	if err != nil {
		return usage("%w", err)
	}
	t, err := trace.Open(in, format)
	if err != nil {
		return fmt.Errorf("replay: %s: %w", c.File, err)
	}
	chosen := &chooser{out: out, shape: t.Shape, key: c.Key}
	sets, err := chosen.sets(c)
	if err != nil {
		return err
	}
	layout, err := t.Shape.Layout(trace.Choice{Time: c.Time, Cost: c.Cost, Unit: unit, Keys: chosen.keys})
	if err != nil {
		return usage("replay: %s: %w", c.File, err)
	}
	var read, lines atomic.Int64
	stop := out.progress(func() string {
		s := fmt.Sprintf("%d lines", lines.Load())
		if size > 0 {
			s += fmt.Sprintf(", %d %%", 100*read.Load()/size)
		}
		return s
	})
	r, err := replay.Run(ctx, t, layout, sets, replay.Options{Top: max(0, c.Top), Strict: c.Strict,
		Progress: func(n, l int64) { read.Store(n); lines.Store(l) }})
	stop()
	if errors.Is(err, replay.ErrStrict) {
		return &exitError{code: ExitFinding, err: fmt.Errorf("%s: %w", c.File, err)}
	}
	if err != nil {
		return fmt.Errorf("replay: %s: %w", c.File, err)
	}
	r.Input.File = c.File
	if c.Plot != "" {
		if err := writeChart(c.Plot, plotFormat, r.Chart()); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
	}
	return out.Result("replay", c.JSON, r)
}

// writeChart draws to a file, which is whole or not there.
func writeChart(name, format string, chart *plot.Chart) error {
	var b bytes.Buffer
	if err := chart.Write(&b, format); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

// isFile reports whether the value of --compare names a file and not a limit: a limit
// has at least two words.
func isFile(s string) bool {
	if _, err := os.Stat(s); err == nil {
		return true
	}
	return !strings.Contains(strings.TrimSpace(s), " ")
}
