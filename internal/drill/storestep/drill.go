// Package storestep drills a limit on a real Redis whose clock is stepped under load, and
// says whether it admitted what is right.
package storestep

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/drill/bench"
	"github.com/escapement-io/escapement/internal/redisserver"
	"github.com/escapement-io/escapement/redisstore"
)

// Options of a drill. The limit is a token bucket.
type Options struct {
	Rate      escapement.Rate
	Burst     int64           // zero means Rate.Count
	Load      int             // decisions per second, of all instances together, on a fixed schedule
	For       time.Duration   // how long; steps are spread evenly over it
	Steps     []time.Duration // of the store's clock
	Instances int             // stores with their own connections and time lines: 1
	Naive     bool            // drill the usual recipe, which believes the store's clock
}

const (
	maxLoad      = 20_000
	maxFor       = time.Hour
	maxInstances = 64
	maxSteps     = 1000
)

// Check fills in what is left out and reports every problem.
func (o *Options) Check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("drill: "+format, args...)) }
	if o.Burst == 0 {
		o.Burst = o.Rate.Count
	}
	if o.Instances == 0 {
		o.Instances = 1
	}
	if _, err := o.plan(); err != nil {
		errs = append(errs, err)
	}
	if o.Load < 1 || o.Load > maxLoad {
		bad("%d decisions per second; use 1 to %d", o.Load, maxLoad)
	}
	if o.For < time.Second || o.For > maxFor {
		bad("a run of %v; use 1s to %v", o.For, maxFor)
	}
	if o.Instances < 1 || o.Instances > maxInstances {
		bad("%d instances; use 1 to %d", o.Instances, maxInstances)
	}
	if len(o.Steps) > maxSteps {
		bad("%d steps; use at most %d", len(o.Steps), maxSteps)
	}
	for _, s := range o.Steps {
		if s < -24*time.Hour || s > 24*time.Hour {
			bad("a step of %v; use at most 24h", s)
		}
	}
	return errors.Join(errs...)
}

// plan compiles the limit.
func (o *Options) plan() (*escapement.Plan, error) {
	p, err := escapement.Limit{Name: "drill", Rate: o.Rate, Burst: o.Burst}.Compile()
	if err != nil {
		return nil, fmt.Errorf("drill: %w", err)
	}
	return p, nil
}

// ParseFlap reads "500ms*18": so many steps of that size, forward and back in turn.
func ParseFlap(text string) ([]time.Duration, error) {
	size, times, ok := strings.Cut(text, "*")
	d, err := time.ParseDuration(size)
	n, err2 := strconv.Atoi(times)
	if !ok || err != nil || err2 != nil || n < 1 || n > maxSteps {
		return nil, fmt.Errorf("drill: flap %q: write a duration and how often, at most %d, such as 500ms*18", text, maxSteps)
	}
	steps := make([]time.Duration, n)
	for i := range steps {
		steps[i] = d
		if i%2 == 1 {
			steps[i] = -d
		}
	}
	return steps, nil
}

// taker asks for one unit.
type taker func(ctx context.Context) answer

// answer is what a taker got.
type answer struct {
	admitted bool
	outcome  escapement.Outcome
	at       algo.Store // of the decision, on the store's line
}

// Run drills. The error says that the drill could not run; what it found is in the
// report, whose Problems are empty if the limit held.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	plan, err := o.plan()
	if err != nil {
		return nil, err
	}
	b, err := bench.New()
	if err != nil {
		return nil, err
	}
	defer b.End()
	clk, err := b.Clock(ctx)
	if err != nil {
		return nil, err
	}
	srv, err := b.Redis(ctx, redisserver.Options{}, clk)
	if err != nil {
		return nil, err
	}
	on, err := open(&o, redisstore.Config{Addrs: []string{srv.Addr}}, plan)
	defer on.close()
	if err != nil {
		return nil, err
	}
	asked, marks, err := press(ctx, &o, on.takers, func(ctx context.Context, mark func(string)) error {
		return stepAll(ctx, &o, clk, mark)
	})
	if err != nil {
		return nil, err
	}
	r := judge(o.Rate.Count, o.Burst, o.Rate.Per, asked)
	for _, s := range o.Steps {
		r.Steps = append(r.Steps, s.String())
	}
	on.describe(&o, r, asked, marks)
	r.Problems = problems(&o, r)
	return r, nil
}

// slack is what a run may be off by, in units: the first and the last one, and what is
// under way at a step.
const slack = 2

// longest is the longest gap, besides one emission interval, that is no problem.
const longest = 100

// bearable is how many of a hundred decisions may fail on a busy machine.
const bearable = 1

func problems(o *Options, r *Report) []string {
	all := []string{}
	above := float64(slack)
	if r.Failover != nil {
		above += float64(r.Failover.Lost)
	} else if r.Failed*100 > bearable*r.Decisions {
		all = append(all, fmt.Sprintf("%d of %d decisions failed", r.Failed, r.Decisions))
	}
	// A decision that was sent and not answered may have been charged.
	if d := float64(r.Admitted) - r.Right; d > above || d < -slack-float64(r.Unknown) {
		all = append(all, fmt.Sprintf("%d were admitted, %.1f are right: %+.1f", r.Admitted, r.Right, d))
	}
	interval := float64(o.Rate.Per) / float64(o.Rate.Count) / 1e6
	if r.LongestGap > interval+longest {
		all = append(all, fmt.Sprintf("nothing was admitted for %.0f ms; one unit comes back each %.0f ms", r.LongestGap, interval))
	}
	return all
}

// instances are the stores, or the recipes, of a drill.
type instances struct {
	takers []taker
	stores []*redisstore.Store
	ends   []func()
}

func (n *instances) close() {
	for _, end := range n.ends {
		end()
	}
}

// describe adds what was drilled to a report.
func (n *instances) describe(o *Options, r *Report, asked []Asked, marks []Mark) {
	r.Instances, r.Naive, r.asked, r.marks, r.options = o.Instances, o.Naive, asked, marks, *o
	if len(n.stores) > 0 {
		snap := n.stores[0].Snapshot()
		r.Seen, r.Error = snap.Steps, float64(snap.Error)/1e6
	}
}

func open(o *Options, c redisstore.Config, plan *escapement.Plan) (*instances, error) {
	n := &instances{}
	for range o.Instances {
		if o.Naive {
			t, end, err := naive(c, o)
			if err != nil {
				return n, err
			}
			n.takers, n.ends = append(n.takers, t), append(n.ends, end)
			continue
		}
		s, err := redisstore.Open(c)
		if err != nil {
			return n, err
		}
		n.stores, n.ends = append(n.stores, s), append(n.ends, func() { _ = s.Close() })
		n.takers = append(n.takers, func(ctx context.Context) answer {
			var got [1]escapement.Answer
			s.Decide(ctx, []escapement.Request{{Claims: []escapement.Claim{{Plan: plan, Key: "drill", Cost: 1}}}}, got[:])
			if got[0].Outcome != escapement.Decided {
				return answer{outcome: got[0].Outcome}
			}
			return answer{got[0].Admitted, escapement.Decided, got[0].Parts[0].At()}
		})
	}
	return n, nil
}

// press makes the load while act does what is to be survived.
func press(ctx context.Context, o *Options, takers []taker, act func(ctx context.Context, mark func(string)) error) ([]Asked, []Mark, error) {
	ctx, cancel := context.WithTimeout(ctx, o.For)
	defer cancel()
	var mu sync.Mutex
	var all []Asked
	var marks []Mark
	var load sync.WaitGroup
	every := time.Second * time.Duration(len(takers)) / time.Duration(o.Load)
	for i, take := range takers {
		load.Go(func() {
			var mine []Asked
			offset := time.NewTimer(every * time.Duration(i) / time.Duration(len(takers)))
			defer offset.Stop()
			<-offset.C
			ticker := time.NewTicker(every)
			defer ticker.Stop()
			for ctx.Err() == nil {
				a := Asked{Sent: clock.Mono()}
				got := take(context.WithoutCancel(ctx))
				a.Answered, a.Admitted, a.at = clock.Mono(), got.admitted, got.at
				a.Failed, a.Unknown = got.outcome != escapement.Decided, got.outcome == escapement.Unknown
				mine = append(mine, a)
				select {
				case <-ctx.Done():
				case <-ticker.C:
				}
			}
			mu.Lock()
			all = append(all, mine...)
			mu.Unlock()
		})
	}
	err := act(ctx, func(name string) { marks = append(marks, Mark{name, clock.Mono()}) })
	if err == nil {
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = ctx.Err()
		}
	}
	cancel()
	load.Wait()
	return all, marks, err
}

// stepAll spreads the steps over the load.
func stepAll(ctx context.Context, o *Options, clk *bench.Clock, mark func(string)) error {
	gap := time.NewTicker(o.For / time.Duration(len(o.Steps)+1))
	defer gap.Stop()
	for _, s := range o.Steps {
		select {
		case <-ctx.Done():
			return nil
		case <-gap.C:
		}
		mark(fmt.Sprintf("%+v", s))
		if err := clk.Step(context.WithoutCancel(ctx), s); err != nil {
			return err
		}
	}
	return nil
}
