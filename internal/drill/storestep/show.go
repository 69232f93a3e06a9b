package storestep

import (
	"fmt"
	"io"
	"strings"

	"github.com/escapement-io/escapement/internal/plot"
)

// Text writes the report for people.
func (r *Report) Text(out io.Writer) error {
	o := &r.options
	what := "escapement"
	if r.Naive {
		what = "the usual recipe, which believes the store's clock"
	}
	fmt.Fprintf(out, "%s: token_bucket %d/%v burst %d, %d decisions a second, instances: %d\n", what, o.Rate.Count, o.Rate.Per, o.Burst, o.Load, r.Instances)
	if len(r.Steps) > 0 {
		fmt.Fprintf(out, "  the store's clock was stepped by %s\n", strings.Join(r.Steps, ", "))
	}
	fmt.Fprintf(out, "  admitted %d of %d, right are %.1f: ratio %.3f\n", r.Admitted, r.Decisions, r.Right, r.Ratio)
	fmt.Fprintf(out, "  longest gap between admissions %.0f ms\n", r.LongestGap)
	if f := r.Failover; f != nil {
		fmt.Fprintf(out, "  no answer for %.0f ms while the replica, %+.0f ms off, was promoted; %d admissions were not replicated\n", f.OutageMS, f.SkewMS, f.Lost)
	}
	if !r.Naive {
		fmt.Fprintf(out, "  e %.1f ms, %d steps seen by the first instance\n", r.Error, r.Seen)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(out, "PROBLEM: %s\n", p)
	}
	verdict := "the limit held"
	if len(r.Problems) > 0 {
		verdict = "out of bounds"
	}
	_, err := fmt.Fprintf(out, "attempt %d: %s\n", r.Attempt, verdict)
	return err
}

// Chart draws what was admitted over time beside what is right.
func (r *Report) Chart() *plot.Chart {
	o := &r.options
	name := "escapement"
	if r.Naive {
		name = "usual recipe"
	}
	c := &plot.Chart{
		Title: fmt.Sprintf("token_bucket %d/%v burst %d on one Redis, %d decisions per second", o.Rate.Count, o.Rate.Per, o.Burst, o.Load),
		X:     "true time, seconds", Y: "units admitted so far", Left: true,
	}
	asked := sortedByAnswer(r.asked)
	if len(asked) == 0 {
		return c
	}
	begin := asked[0].Sent
	admitted := plot.Steps{Name: name, X: []float64{0}, Y: []float64{0}}
	right := plot.Steps{Name: "right", X: []float64{0}, Y: []float64{0}}
	exact, n, m := bucket{count: o.Rate.Count, per: int64(o.Rate.Per), burst: o.Burst}, 0.0, 0.0
	for _, a := range asked {
		if a.Failed {
			continue
		}
		x := float64(a.Answered-begin) / 1e9
		if a.Admitted {
			n++
		}
		if exact.take(int64(a.Answered)) {
			m++
		}
		admitted.X, admitted.Y = append(admitted.X, x), append(admitted.Y, n)
		right.X, right.Y = append(right.X, x), append(right.Y, m)
	}
	c.Steps = []plot.Steps{right, admitted}
	for _, k := range r.marks {
		c.Marks = append(c.Marks, plot.Mark{Name: k.Name, X: float64(k.At-begin) / 1e9})
	}
	return c
}

// bucket is what is right, in integers: a unit is per credits, a nanosecond earns count.
// It shares no code with the limiter.
type bucket struct {
	count, per, burst int64
	level, at         int64
	begun             bool
}

func (b *bucket) take(ns int64) bool {
	full := b.burst * b.per
	if !b.begun {
		b.begun, b.level, b.at = true, full, ns
	}
	if passed := ns - b.at; passed > 0 {
		if passed > (full-b.level)/b.count {
			b.level = full
		} else {
			b.level += passed * b.count
		}
		b.at = ns
	}
	if b.level < b.per {
		return false
	}
	b.level -= b.per
	return true
}
