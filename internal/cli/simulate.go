package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/escapement-io/escapement/internal/plot"
	"github.com/escapement-io/escapement/internal/sim"
)

// SimulateCmd is escapement simulate.
type SimulateCmd struct {
	Scenario string `arg:"" optional:"" help:"A scenario, such as scenarios/source-fixed.yaml; - is standard input."`
	Runs     int    `placeholder:"N" help:"Instead of a scenario: run so many random worlds and check every promise in each."`
	Seed     int64  `default:"1" help:"Where chance begins; the same seed gives the same result."`
	JSON     bool   `name:"json" help:"Print one JSON document."`
	Plot     string `placeholder:"FILE" help:"Draw what a scenario admitted per second beside the limit to a .png or .svg file."`
}

const (
	maxScenario = 1 << 20
	maxWorlds   = 1_000_000
)

// Run simulates instances that share a limit. Exit 0: every promise held; 1: one was
// broken, or the scenario has mistakes; 3: it could not be read.
func (c *SimulateCmd) Run(ctx context.Context, out *Output) error {
	switch {
	case c.Runs < 0 || c.Runs > maxWorlds:
		return usage("simulate: --runs %d; use 1 to %d", c.Runs, maxWorlds)
	case c.Runs > 0 && (c.Scenario != "" || c.Plot != ""):
		return usage("simulate: --runs takes no scenario and draws nothing\n  leave out one of the two")
	case c.Runs > 0:
		return c.random(ctx, out)
	case c.Scenario == "":
		return usage("simulate: nothing to simulate\n  name a scenario, such as scenarios/source-fixed.yaml, or give --runs N")
	}
	var format string
	if c.Plot != "" {
		var err error
		if format, err = plot.Format(c.Plot); err != nil {
			return usage("%w", err)
		}
	}
	return c.scenario(ctx, out, format)
}

func (c *SimulateCmd) random(ctx context.Context, out *Output) error {
	var done atomic.Int64
	stop := out.progress(func() string { return fmt.Sprintf("%d of %d worlds", done.Load(), c.Runs) })
	p, err := sim.Prove(ctx, c.Runs, c.Seed, func(n int) { done.Store(int64(n)) })
	stop()
	if err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	if c.JSON {
		err = out.JSON(p)
	} else {
		err = p.Text(out.Out)
	}
	if err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	if p.Violations > 0 {
		return found()
	}
	return nil
}

func (c *SimulateCmd) scenario(ctx context.Context, out *Output, format string) error {
	data, err := readScenario(c.Scenario)
	if err != nil {
		return fmt.Errorf("simulate: %w\n  name a file that exists and can be read", err)
	}
	sc, findings := sim.Parse(c.Scenario, data)
	printFindings(out.Err, findings)
	if sc == nil {
		return found()
	}
	var done atomic.Int64
	stop := out.progress(func() string { return fmt.Sprintf("%d of %d runs", done.Load(), len(sc.Runs)) })
	r, err := sc.Run(ctx, c.Seed, func(n int) { done.Store(int64(n)) })
	stop()
	if err != nil {
		return fmt.Errorf("simulate: %s: %w", c.Scenario, err)
	}
	if c.Plot != "" {
		if err := writeChart(c.Plot, format, r.Chart()); err != nil {
			return fmt.Errorf("simulate: %w", err)
		}
	}
	if c.JSON {
		err = out.JSON(r)
	} else {
		err = r.Text(out.Out)
	}
	if err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	if len(r.Violations()) > 0 {
		return found()
	}
	return nil
}

func readScenario(name string) ([]byte, error) {
	f := os.Stdin
	if name != "-" {
		var err error
		if f, err = os.Open(name); err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // only read
	}
	data, err := io.ReadAll(io.LimitReader(f, maxScenario+1))
	if err == nil && len(data) > maxScenario {
		err = fmt.Errorf("%s: larger than %d bytes", name, maxScenario)
	}
	return data, err
}
