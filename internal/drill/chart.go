package drill

import (
	"fmt"

	"github.com/escapement-io/escapement/internal/plot"
)

// Chart draws what was admitted in all, over time: the limiter, what is right, and the
// recipes if they were asked.
func (r *Run) Chart() *plot.Chart {
	c := &plot.Chart{
		Title: fmt.Sprintf("%s, %d requests per second, the wall clock stepped", r.Limit, r.Rate),
		X:     "true time, seconds", Y: "units admitted so far", Left: true,
	}
	lines := []line{{name: "escapement", admits: func(a *Asked) bool { return a.Admitted }}}
	if r.Naive {
		for n, recipe := range recipes(r.Limit) {
			lines = append(lines, line{name: recipe.name + ", wall clock", admits: func(a *Asked) bool { return a.Recipes>>n&1 == 1 }})
		}
	}
	if len(r.Phases) == 0 {
		return c
	}
	begin := r.Phases[0].Applied
	for i := range r.Phases {
		p := &r.Phases[i]
		if i > 0 {
			c.Marks = append(c.Marks, plot.Mark{Name: p.Change.String(), X: float64(p.Applied-begin) / 1e9})
		}
		for k := range p.Asked {
			x := float64(p.Asked[k].at()-begin) / 1e9
			for n := range lines {
				lines[n].add(x, &p.Asked[k])
			}
		}
	}
	for i := range lines {
		lines[i].steps.Name = lines[i].name
		c.Steps = append(c.Steps, lines[i].steps)
	}
	return c
}

// line counts what one limiter admitted.
type line struct {
	name   string
	admits func(*Asked) bool
	steps  plot.Steps
	count  float64
}

func (l *line) add(x float64, a *Asked) {
	if len(l.steps.X) == 0 {
		l.steps.X, l.steps.Y = []float64{0}, []float64{0}
	}
	if l.admits(a) {
		l.count++
	}
	l.steps.X, l.steps.Y = append(l.steps.X, x), append(l.steps.Y, l.count)
}
