package drill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/redisserver"
	"github.com/escapement-io/escapement/tools/skewrun"
)

// NodeSkewOptions says what two processes on one Redis are asked, and how far their wall
// clocks are apart.
type NodeSkewOptions struct {
	Limit Limit
	Rate  int // requests per second of both together, on a fixed schedule
	For   time.Duration
	Skew  time.Duration // of the second process's wall clock
	Naive bool          // the process dates the bucket by its own wall clock
	Cache string        // where skewrun is kept
	// Child is the command of a process that runs ServeShared on the server at addr.
	Child func(addr string) []string
}

// Check reports everything that is wrong with the options.
func (o *NodeSkewOptions) Check() error {
	errs := []error{o.Limit.check()}
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("drill: "+format, args...)) }
	if o.Rate < 2 || o.Rate > maxRate {
		bad("%d requests a second; use 2 to %d", o.Rate, maxRate)
	}
	if o.For < time.Second || o.For > maxRun {
		bad("a load of %v; use 1s to %v", o.For, maxRun)
	}
	if o.Skew == 0 || o.Skew.Abs() > maxChange {
		bad("a skew of %v; use up to %v, either way", o.Skew, maxChange)
	}
	return errors.Join(errs...)
}

// NodeSkewReport is what the two processes admitted together.
type NodeSkewReport struct {
	Admitted int     `json:"admitted"`
	Right    int     `json:"right"`
	Ratio    float64 `json:"ratio"`
	Offered  int     `json:"offered"`
	// MeasuredMS is how far the wall clocks of the processes were apart.
	MeasuredMS float64  `json:"measured_skew_ms"`
	Each       []int    `json:"admitted_by_each"`
	Naive      bool     `json:"naive,omitempty"`
	Limit      string   `json:"limit"`
	Rate       int      `json:"offered_per_second"`
	Problems   []string `json:"problems"`
}

// NodeSkew runs two processes under one limit on one Redis, whose own clock is left alone;
// the wall clock of the second is off by the skew from the start. What is right is what an
// exact bucket admits of the same requests.
func NodeSkew(ctx context.Context, o NodeSkewOptions) (*NodeSkewReport, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.For+grace, fmt.Errorf("drill: not done %v after the load was to end: this machine is too busy", grace))
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
	redis, err := redisserver.Start(ctx, redisserver.Options{Args: []string{"--appendonly", "no"}})
	if err != nil {
		return nil, fmt.Errorf("drill: %w", err)
	}
	defer redis.Stop()
	processes, err := startSkewed(ctx, &o, tool, dir, redis.Addr)
	if err == nil {
		var asked [][]Asked
		if asked, err = askAll(ctx, &o, processes); err == nil {
			rep := judgeNodes(&o, asked)
			rep.MeasuredMS = ms(time.Duration(processes[1].wall-processes[0].wall) * time.Microsecond)
			rep.check(&o)
			return rep, stopAll(processes)
		}
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return nil, errors.Join(err, stopAll(processes))
}

func startSkewed(ctx context.Context, o *NodeSkewOptions, tool, dir, addr string) (started []*process, err error) {
	for i, skew := range []time.Duration{0, o.Skew} {
		file := filepath.Join(dir, fmt.Sprintf("clock-%d", i))
		if err := skewrun.Control(ctx, tool, file, "set", fmt.Sprintf("%dms", skew.Milliseconds())); err != nil {
			return started, err
		}
		p, err := start(ctx, append([]string{tool, "run", file, "--"}, o.Child(addr)...))
		if err != nil {
			return started, err
		}
		started = append(started, p)
	}
	return started, nil
}

func stopAll(processes []*process) error {
	var errs []error
	for _, p := range processes {
		errs = append(errs, p.stop())
	}
	return errors.Join(errs...)
}

// askAll asks the processes in turn, one request at a time each.
func askAll(ctx context.Context, o *NodeSkewOptions, processes []*process) ([][]Asked, error) {
	asked, errs := make([][]Asked, len(processes)), make([]error, len(processes))
	interval := time.Second / time.Duration(o.Rate)
	begin := clock.Mono()
	var load sync.WaitGroup
	for i, p := range processes {
		load.Go(func() {
			timer := time.NewTimer(0)
			defer timer.Stop()
			for n := i; time.Duration(n)*interval < o.For; n += len(processes) {
				timer.Reset(time.Duration(begin + algo.Mono(time.Duration(n)*interval) - clock.Mono()))
				select {
				case <-timer.C:
				case <-ctx.Done():
					errs[i] = ctx.Err()
					return
				}
				a, err := p.ask(ctx)
				if err != nil {
					errs[i] = err
					return
				}
				asked[i] = append(asked[i], a)
			}
		})
	}
	load.Wait()
	return asked, errors.Join(errs...)
}

// judgeNodes compares what was admitted with what is right. It is pure.
func judgeNodes(o *NodeSkewOptions, asked [][]Asked) *NodeSkewReport {
	rep := &NodeSkewReport{Limit: o.Limit.String(), Rate: o.Rate, Naive: o.Naive, Problems: []string{}}
	for _, list := range asked {
		n := 0
		for i := range list {
			if list[i].Admitted {
				n++
			}
		}
		rep.Each, rep.Admitted = append(rep.Each, n), rep.Admitted+n
	}
	all := slices.Concat(asked...)
	slices.SortFunc(all, func(a, b Asked) int { return cmp.Compare(a.at(), b.at()) })
	right := exact{Limit: o.Limit}
	for i := range all {
		if right.take(int64(all[i].at())) {
			rep.Right++
		}
	}
	rep.Offered = len(all)
	if rep.Right > 0 {
		rep.Ratio = float64(rep.Admitted) / float64(rep.Right)
	}
	return rep
}

// check finds what is out of bounds: 1 %, and two units at least.
func (rep *NodeSkewReport) check(o *NodeSkewOptions) {
	if off := rep.Admitted - rep.Right; max(off, -off) > max(2, rep.Right/100) {
		rep.Problems = append(rep.Problems, fmt.Sprintf("%d were admitted, %d are right", rep.Admitted, rep.Right))
	}
	if want := ms(o.Skew); rep.MeasuredMS < want-50 || rep.MeasuredMS > want+50 {
		rep.Problems = append(rep.Problems, fmt.Sprintf("the clocks were %.0f ms apart, not %.0f", rep.MeasuredMS, want))
	}
}

// Text writes the report for people.
func (rep *NodeSkewReport) Text(out io.Writer) error {
	who := "escapement"
	if rep.Naive {
		who = "a bucket in Redis that is dated by the caller"
	}
	fmt.Fprintf(out, "%s, two processes on one Redis, wall clocks %+.0f ms apart: %s under %d requests a second\n", who, rep.MeasuredMS, rep.Limit, rep.Rate)
	fmt.Fprintf(out, "  admitted %d (%d and %d) of %d, right are %d: ratio %.3f\n", rep.Admitted, rep.Each[0], rep.Each[1], rep.Offered, rep.Right, rep.Ratio)
	for _, p := range rep.Problems {
		fmt.Fprintf(out, "PROBLEM: %s\n", p)
	}
	verdict := "the limit held"
	if len(rep.Problems) > 0 {
		verdict = "out of bounds"
	}
	_, err := fmt.Fprintln(out, verdict)
	return err
}
