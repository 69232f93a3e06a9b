package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/escapement-io/escapement/internal/drill"
	"github.com/escapement-io/escapement/internal/plot"
	"github.com/escapement-io/escapement/internal/replay"
	"github.com/escapement-io/escapement/tools/skewrun"
)

// DrillCmd is escapement drill.
type DrillCmd struct {
	ClockStep   ClockStepCmd   `cmd:"" help:"Step the wall clock of a limiter under load: does it admit what it should?"`
	Ceiling     CeilingCmd     `cmd:"" help:"Ask a running gateway for more than a limit admits: is the ceiling where it should be?"`
	StoreStep   StoreStepCmd   `cmd:"" help:"Step the clock of a real Redis under load: does a shared limit admit what it should?"`
	Failover    FailoverCmd    `cmd:"" help:"Promote a replica whose clock differs: does a shared limit go on as it should?"`
	NodeSkew    NodeSkewCmd    `cmd:"" help:"Two processes whose wall clocks differ on one Redis: does the limit hold?"`
	TwoGateways TwoGatewaysCmd `cmd:"" help:"Gateways that share a limit by way of a real Redis, in any mode: what do they admit together?"`
	RetryStorm  RetryStormCmd  `cmd:"" help:"Step the wall clock of a limiter whose clients retry: what becomes of the load?"`
	Serve       DrillServe     `cmd:"" hidden:"" help:"The process whose clock is stepped."`
	ServeStorm  StormServe     `cmd:"" hidden:"" help:"The process under drill of retry-storm."`
}

// drilled is the limit under drill.
type drilled struct {
	Limit string `default:"100/1s" placeholder:"COUNT/PER" help:"Token bucket to drill, such as ${default}."`
	Burst int64  `placeholder:"N" help:"Its capacity; its count unless given."`
}

// threefold is the load of a drill unless one is given.
func threefold(l drill.Limit) int {
	if l.Per <= 0 {
		return 0
	}
	return max(1, int(3*float64(l.Count)/l.Per.Seconds()))
}

func (d *drilled) limit() (drill.Limit, error) {
	rate, err := replay.ParseRate(d.Limit)
	if err != nil {
		return drill.Limit{}, usage("drill: --limit %s: %w; write it as 100/1s", d.Limit, err)
	}
	if d.Burst == 0 {
		d.Burst = rate.Count
	}
	return drill.Limit{Count: rate.Count, Per: rate.Per, Burst: d.Burst}, nil
}

// ClockStepCmd is escapement drill clock-step.
type ClockStepCmd struct {
	Step    []time.Duration `sep:"none" placeholder:"DURATION" help:"Step the wall clock by so much, such as -3600s or +320ms; repeat for more steps, one after each phase."`
	Suspend []time.Duration `sep:"none" placeholder:"DURATION" help:"After the steps, let the machine sleep for so long, as the process sees it; repeatable."`
	Drift   []string        `sep:"none" placeholder:"PPM" help:"At last, let the wall clock drift from the monotonic clock, such as 200ppm; repeatable."`
	Drilled drilled         `embed:""`
	Rate    int             `placeholder:"N" help:"Requests per second, on a fixed schedule; three times the limit unless given."`
	Phase   time.Duration   `default:"2s" help:"How long the load lasts before the first change and after each."`
	Naive   bool            `help:"Ask limiters in circulation that read the wall clock beside ours."`
	Plot    string          `placeholder:"FILE" help:"Draw what was admitted over time to a .png or .svg file."`
	JSON    bool            `name:"json" help:"Print one JSON document."`
}

// Run drills. Exit 1: the limit did not hold, or the guard did not see what happened; 3:
// this machine cannot run the drill.
func (c *ClockStepCmd) Run(ctx context.Context, out *Output) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	var format string
	if c.Plot != "" {
		if format, err = plot.Format(c.Plot); err != nil {
			return usage("%w", err)
		}
	}
	var phase atomic.Int64
	o.Progress = func(i int) { phase.Store(int64(i)) }
	stop := out.progress(func() string {
		return fmt.Sprintf("phase %d of %d, %v each", phase.Load()+1, len(o.Changes)+1, o.Phase)
	})
	r, err := drill.ClockStep(ctx, o)
	stop()
	if errors.Is(err, skewrun.ErrUnsupported) {
		return fmt.Errorf("%w\n  cases whose clocks step run on any machine, in virtual time: escapement replay CASES.jsonl", err)
	} else if err != nil {
		return err
	}
	if c.Plot != "" {
		if err := writeChart(c.Plot, format, r.Chart()); err != nil {
			return fmt.Errorf("drill: %w", err)
		}
	}
	rep := drill.Judge(r)
	if err := out.Result("drill", c.JSON, rep); err != nil {
		return err
	}
	if !rep.Held() {
		return found()
	}
	return nil
}

func (c *ClockStepCmd) options() (drill.Options, error) {
	l, err := c.Drilled.limit()
	if err != nil {
		return drill.Options{}, err
	}
	o := drill.Options{Limit: l, Rate: c.Rate, Phase: c.Phase, Naive: c.Naive}
	if o.Changes, err = c.changes(); err != nil {
		return o, err
	}
	if o.Rate == 0 {
		o.Rate = threefold(l)
	}
	if err := o.Check(); err != nil {
		return o, usage("%w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return o, fmt.Errorf("drill: finding this program: %w", err)
	}
	o.Child = []string{self, "drill", "serve", "--limit", c.Drilled.Limit, "--burst", strconv.FormatInt(l.Burst, 10)}
	if c.Naive {
		o.Child = append(o.Child, "--naive")
	}
	o.Cache = cacheDir()
	return o, nil
}

// cacheDir is where what is built for drills is kept.
func cacheDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "escapement")
}

// changes are those of the flags, in the order their help says.
func (c *ClockStepCmd) changes() ([]drill.Change, error) {
	var changes []drill.Change
	for _, d := range c.Step {
		changes = append(changes, drill.Change{Step: d})
	}
	for _, d := range c.Suspend {
		changes = append(changes, drill.Change{Suspend: d})
	}
	for _, d := range c.Drift {
		ppm, err := strconv.Atoi(strings.TrimSuffix(d, "ppm"))
		if err != nil {
			return nil, usage("drill: --drift %s: write it as 200ppm", d)
		}
		changes = append(changes, drill.Change{Drift: ppm})
	}
	return changes, nil
}

// DrillServe is the process under drill.
type DrillServe struct {
	Drilled drilled `embed:""`
	Naive   bool
	Redis   string // host:port; empty: in memory
}

// Run serves until standard input ends.
func (c *DrillServe) Run(ctx context.Context, out *Output) error {
	l, err := c.Drilled.limit()
	if err != nil {
		return err
	}
	if c.Redis != "" {
		return drill.ServeShared(ctx, l, c.Redis, c.Naive, os.Stdin, out.Out)
	}
	return drill.Serve(ctx, l, c.Naive, os.Stdin, out.Out)
}

var (
	flag     = regexp.MustCompile(`^--[a-z][a-z-]*$`)
	negative = regexp.MustCompile(`^-[0-9.]`)
)

// joinNegative writes "--step -3600s" as "--step=-3600s": a number below zero is a value and
// not a flag.
func joinNegative(args []string) []string {
	var joined []string
	for _, a := range args {
		if n := len(joined); n > 0 && negative.MatchString(a) && flag.MatchString(joined[n-1]) {
			joined[n-1] += "=" + a
			continue
		}
		joined = append(joined, a)
	}
	return joined
}
