package sim

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/escapement-io/escapement/internal/plot"
)

// Report is a scenario that was run.
type Report struct {
	Title string    `json:"title"`
	Seed  int64     `json:"seed"`
	Runs  []*Result `json:"runs"`

	setups []*Setup
}

// Run runs every run of a scenario from the same seed on, so that all meet the same
// demand and the same network.
func (sc *Scenario) Run(ctx context.Context, seed int64, progress func(done int)) (*Report, error) {
	r := &Report{Title: sc.Title, Seed: seed, setups: sc.Runs}
	for i, s := range sc.Runs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		result, err := s.Run(seed)
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", s.Name, err)
		}
		r.Runs = append(r.Runs, result)
		progress(i + 1)
	}
	return r, nil
}

// Violations are the promises that were broken, with the run that broke them.
func (r *Report) Violations() (all []string) {
	for _, run := range r.Runs {
		for _, v := range run.Violations {
			all = append(all, run.Name+": "+v)
		}
	}
	return all
}

// Text writes the report for people: a line per run.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.Title)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "run\tlimit\tper window\terror\tover\tany span\tunder\tcalls/s\tfairness\twaited\t")
	for _, v := range r.Runs {
		fmt.Fprintf(t, "%s\t%d per %s\t%.1f\t%s %%\t%s %%\t%s %%\t%.2f %%\t%.2f\t%.3f\t%.2f %%\t\n", v.Name, v.Limit, v.Per,
			v.Mean, signed(v.Error, 2), signed(v.Over, 1), signed(v.OverAny, 1), v.Under, v.Calls, v.Fairness, v.Waited)
	}
	_ = t.Flush() // into memory
	b.WriteString("\nerror: mean window against the limit; over: the worst window of the store; any span: the worst span of one\n" +
		"period; under: less than a limiter that knows all at once; calls: to the store, per instance; fairness: 1 if all\n" +
		"instances admitted the same part of their requests; waited: requests that waited for a round trip\n")
	for _, v := range r.Runs {
		if v.Forgotten > 0 {
			fmt.Fprintf(&b, "%s: failovers forgot %d units that had been handed out\n", v.Name, v.Forgotten)
		}
	}
	for _, v := range r.Violations() {
		fmt.Fprintf(&b, "\na promise is broken: %s\n", v)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// signed writes a number with its sign, and zero as +0.
func signed(x float64, digits int) string {
	scale := math.Pow10(digits)
	return fmt.Sprintf("%+.*f", digits, math.Round(x*scale)/scale+0)
}

// Chart is what was admitted in each second beside the limit.
func (r *Report) Chart() *plot.Chart {
	c := &plot.Chart{Title: r.Title, X: "seconds", Y: "admitted per second"}
	level := map[float64]bool{}
	for i, v := range r.Runs {
		s := plot.Steps{Name: v.Name}
		for k, n := range v.PerSecond[:max(1, len(v.PerSecond)-1)] {
			s.X, s.Y = append(s.X, float64(k)), append(s.Y, float64(n))
		}
		c.Steps = append(c.Steps, s)
		rate := float64(v.Limit) / r.setups[i].Per.Seconds()
		if !level[rate] {
			level[rate] = true
			c.Levels = append(c.Levels, plot.Level{Name: fmt.Sprintf("limit, %d per %s", v.Limit, v.Per), Y: rate})
		}
	}
	return c
}

// Text writes what came of random worlds.
func (p *Proof) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d random worlds, %d broke a promise\n", p.Runs, p.Violations)
	for _, f := range p.Found {
		fmt.Fprintf(&b, "  seed %d, replay with escapement simulate --runs 1 --seed %d\n", f.Seed, f.Seed)
		for _, problem := range f.Problems {
			fmt.Fprintf(&b, "    %s\n", problem)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
