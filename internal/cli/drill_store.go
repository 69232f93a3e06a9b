package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/drill"
	"github.com/escapement-io/escapement/internal/drill/storestep"
	"github.com/escapement-io/escapement/internal/plot"
	"github.com/escapement-io/escapement/internal/redisserver"
	"github.com/escapement-io/escapement/tools/skewrun"
)

// storeLoad is what the drills on a real Redis have in common.
type storeLoad struct {
	Limit     string        `default:"10/1s" placeholder:"COUNT/PER" help:"Token bucket to drill, such as ${default}."`
	Burst     int64         `placeholder:"N" help:"Its capacity; its count unless given."`
	Rate      int           `placeholder:"N" help:"Decisions per second of all instances together, on a fixed schedule; twenty times the limit unless given, at most 20000."`
	For       time.Duration `default:"40s" help:"How long the load lasts."`
	Instances int           `default:"1" help:"Stores with connections and time lines of their own."`
	Naive     bool          `help:"Drill the usual recipe, which believes the store's clock, instead of ours."`
	Attempts  int           `default:"3" help:"How often to try on a busy machine; the first run that holds counts, or the last."`
	Plot      string        `placeholder:"FILE" help:"Draw what was admitted over time to a .png or .svg file."`
	JSON      bool          `name:"json" help:"Print one JSON document."`
}

func (s *storeLoad) options() (storestep.Options, error) {
	d := drilled{Limit: s.Limit, Burst: s.Burst}
	l, err := d.limit()
	if err != nil {
		return storestep.Options{}, err
	}
	if s.Rate == 0 && l.Per > 0 {
		s.Rate = min(20_000, max(1, int(20*float64(l.Count)/l.Per.Seconds())))
	}
	if s.Attempts < 1 || s.Attempts > 10 {
		return storestep.Options{}, usage("drill: %d attempts; use 1 to 10", s.Attempts)
	}
	return storestep.Options{Rate: escapement.Rate{Count: l.Count, Per: l.Per}, Burst: l.Burst, Load: s.Rate, For: s.For,
		Instances: s.Instances, Naive: s.Naive}, nil
}

// run tries until a run holds, and reports the last.
func (s *storeLoad) run(ctx context.Context, out *Output, o storestep.Options, drill func(context.Context, storestep.Options) (*storestep.Report, error)) error {
	if err := o.Check(); err != nil {
		return usage("%w", err)
	}
	var format string
	if s.Plot != "" {
		var err error
		if format, err = plot.Format(s.Plot); err != nil {
			return usage("%w", err)
		}
	}
	var r *storestep.Report
	for attempt := 1; attempt <= s.Attempts; attempt++ {
		stop := out.progress(func() string { return fmt.Sprintf("attempt %d of at most %d, %v of load", attempt, s.Attempts, o.For) })
		var err error
		r, err = drill(ctx, o)
		stop()
		switch {
		case errors.Is(err, redisserver.ErrMissing), errors.Is(err, skewrun.ErrUnsupported):
			return fmt.Errorf("%w\n  the same steps run on any machine, in virtual time: escapement simulate", err)
		case err != nil:
			return err
		}
		r.Attempt = attempt
		if len(r.Problems) == 0 || s.Naive {
			break
		}
	}
	if s.Plot != "" {
		if err := writeChart(s.Plot, format, r.Chart()); err != nil {
			return fmt.Errorf("drill: %w", err)
		}
	}
	if err := out.Result("drill", s.JSON, r); err != nil {
		return err
	}
	if len(r.Problems) > 0 {
		return found()
	}
	return nil
}

// StoreStepCmd is escapement drill store-step.
type StoreStepCmd struct {
	Step []time.Duration `sep:"none" placeholder:"DURATION" help:"Step the store's clock by so much, such as +45s or -105s; repeatable, spread evenly over the load."`
	Flap string          `placeholder:"SIZE*N" help:"After the steps, N more of that size, forward and back in turn, such as 500ms*18."`
	Load storeLoad       `embed:""`
}

// Run drills. Exit 1: the limit did not hold; 3: this machine cannot run the drill.
func (c *StoreStepCmd) Run(ctx context.Context, out *Output) error {
	o, err := c.Load.options()
	if err != nil {
		return err
	}
	o.Steps = c.Step
	if c.Flap != "" {
		flap, err := storestep.ParseFlap(c.Flap)
		if err != nil {
			return usage("%w", err)
		}
		o.Steps = append(o.Steps, flap...)
	}
	if len(o.Steps) == 0 {
		return usage("drill: no steps; write --step +45s, or --flap 500ms*18")
	}
	return c.Load.run(ctx, out, o, storestep.Run)
}

// FailoverCmd is escapement drill failover.
type FailoverCmd struct {
	Skew time.Duration `required:"" placeholder:"DURATION" help:"The replica's clock minus the primary's, such as +45s or -45s."`
	Load storeLoad     `embed:""`
}

// Run drills. Exit codes as of store-step.
func (c *FailoverCmd) Run(ctx context.Context, out *Output) error {
	o, err := c.Load.options()
	if err != nil {
		return err
	}
	if c.Skew.Abs() > 24*time.Hour {
		return usage("drill: a skew of %v; use at most 24h", c.Skew)
	}
	return c.Load.run(ctx, out, o, func(ctx context.Context, o storestep.Options) (*storestep.Report, error) {
		return storestep.RunFailover(ctx, o, c.Skew)
	})
}

// NodeSkewCmd is escapement drill node-skew.
type NodeSkewCmd struct {
	Skew     time.Duration `required:"" placeholder:"DURATION" help:"The wall clock of the second process minus that of the first, such as 900ms or -2s."`
	Drilled  drilled       `embed:""`
	Rate     int           `placeholder:"N" help:"Requests per second of both together, on a fixed schedule; three times the limit unless given."`
	For      time.Duration `default:"10s" help:"How long the load lasts."`
	Naive    bool          `help:"Drill a bucket in Redis that is dated by its callers, instead of ours."`
	Attempts int           `default:"3" help:"How often to try on a busy machine; the first run that holds counts, or the last."`
	JSON     bool          `name:"json" help:"Print one JSON document."`
}

// Run drills. Exit codes as of store-step.
func (c *NodeSkewCmd) Run(ctx context.Context, out *Output) error {
	l, err := c.Drilled.limit()
	if err != nil {
		return err
	}
	if c.Attempts < 1 || c.Attempts > 10 {
		return usage("drill: %d attempts; use 1 to 10", c.Attempts)
	}
	o := drill.NodeSkewOptions{Limit: l, Rate: c.Rate, For: c.For, Skew: c.Skew, Naive: c.Naive, Cache: cacheDir()}
	if o.Rate == 0 {
		o.Rate = threefold(l)
	}
	if err := o.Check(); err != nil {
		return usage("%w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("drill: finding this program: %w", err)
	}
	o.Child = func(addr string) []string {
		child := []string{self, "drill", "serve", "--limit", c.Drilled.Limit, "--burst", strconv.FormatInt(l.Burst, 10), "--redis", addr}
		if c.Naive {
			child = append(child, "--naive")
		}
		return child
	}
	var rep *drill.NodeSkewReport
	for attempt := 1; attempt <= c.Attempts; attempt++ {
		stop := out.progress(func() string { return fmt.Sprintf("attempt %d of at most %d, %v of load", attempt, c.Attempts, o.For) })
		rep, err = drill.NodeSkew(ctx, o)
		stop()
		if err != nil {
			return err
		}
		if len(rep.Problems) == 0 || c.Naive {
			break
		}
	}
	if err := out.Result("drill", c.JSON, rep); err != nil {
		return err
	}
	if len(rep.Problems) > 0 {
		return found()
	}
	return nil
}
