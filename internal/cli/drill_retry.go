package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/drill/retrystorm"
	"github.com/escapement-io/escapement/internal/plot"
	"github.com/escapement-io/escapement/internal/replay"
	"github.com/escapement-io/escapement/tools/skewrun"
)

// RetryStormCmd is escapement drill retry-storm.
type RetryStormCmd struct {
	Step    time.Duration `default:"-320ms" placeholder:"DURATION" help:"Step the server's wall clock by so much, such as ${default}."`
	Limit   string        `default:"1000/1s" placeholder:"COUNT/PER" help:"What the server admits."`
	Rate    int           `placeholder:"N" help:"Requests per second of all clients together, on a fixed schedule; 93 in 100 of the limit unless given."`
	Clients int           `default:"100" help:"Connections, each of which carries one attempt at a time."`
	For     time.Duration `default:"4s" help:"How long the load lasts in each of the six phases."`
	Plot    string        `placeholder:"FILE" help:"Draw attempts and answers over time to a .png or .svg file."`
	JSON    bool          `name:"json" help:"Print one JSON document."`
}

// Run drills. Exit 1: something did not come out as it should; 3: this machine cannot run
// the drill.
func (c *RetryStormCmd) Run(ctx context.Context, out *Output) error {
	o, format, err := c.options()
	if err != nil {
		return usage("%w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("drill: finding this program: %w", err)
	}
	o.Child = func(limiter string) []string {
		return []string{self, "drill", "serve-storm", "--limiter", limiter, "--limit", c.Limit}
	}
	var phase atomic.Int64
	o.Progress = func(i int) { phase.Store(int64(i)) }
	stop := out.progress(func() string {
		return fmt.Sprintf("phase %d of %d, %v each", phase.Load()+1, retrystorm.Phases(), o.For)
	})
	r, err := retrystorm.Run(ctx, o)
	stop()
	if errors.Is(err, skewrun.ErrUnsupported) {
		return fmt.Errorf("%w\n  what retries do to a server that refuses everything runs on any machine, in virtual time: go test ./internal/retry -run TestHerd -v", err)
	} else if err != nil {
		return err
	}
	if c.Plot != "" {
		if err := writeCharts(c.Plot, format, retrystorm.Columns, r.Charts()); err != nil {
			return fmt.Errorf("drill: %w", err)
		}
	}
	if err := out.Result("drill", c.JSON, r); err != nil {
		return err
	}
	if !r.Held() {
		return found()
	}
	return nil
}

// options reports everything that is wrong with the flags.
func (c *RetryStormCmd) options() (o retrystorm.Options, format string, err error) {
	var errs []error
	if c.Plot != "" {
		if format, err = plot.Format(c.Plot); err != nil {
			errs = append(errs, err)
		}
	}
	o = retrystorm.Options{Rate: c.Rate, Clients: c.Clients, Step: c.Step, For: c.For}
	rate, err := replay.ParseRate(c.Limit)
	if err != nil {
		errs = append(errs, fmt.Errorf("drill: --limit %s: %w; write it as 1000/1s", c.Limit, err))
		// The other flags are checked against the usual limit.
		rate = escapement.PerSecond(1000)
	}
	if o.Limit = rate; o.Rate == 0 {
		o.Rate = retrystorm.UsualRate(rate)
	}
	return o, format, errors.Join(append(errs, o.Check())...)
}

// StormServe is the process under drill of retry-storm.
type StormServe struct {
	Limiter string
	Limit   string
}

// Run serves until standard input ends.
func (c *StormServe) Run(ctx context.Context, out *Output) error {
	rate, err := replay.ParseRate(c.Limit)
	if err != nil {
		return usage("drill: --limit %s: %w", c.Limit, err)
	}
	return retrystorm.Serve(ctx, c.Limiter, rate, os.Stdin, out.Out)
}

// writeCharts draws charts side by side to a file, which is whole or not there.
func writeCharts(name, format string, columns int, charts []*plot.Chart) error {
	var b bytes.Buffer
	if err := plot.WriteGrid(&b, format, columns, charts...); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}
