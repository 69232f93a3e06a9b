package retrystorm

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/plot"
)

// Text writes the report for people.
func (rep *Report) Text(out io.Writer) error {
	fmt.Fprintf(out, "limit %s, %d requests a second, answered after %v; the server's wall clock stepped by %+v\n\n", rep.Limit, rep.Rate, roundTrip, rep.options.Step)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "limiter\tclient\tstep\tattempts/request\tp99\tcalm after\trefused\t")
	for i := range rep.Phases {
		p := &rep.Phases[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%.0f ms\t%.2f s\t%.1f %%\t\n", p.Limiter, p.Client, p.Step, p.Amplification, p.P99, p.Calm, p.Refused)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for i := range rep.Phases {
		fmt.Fprintln(out, rep.Phases[i].sentence())
	}
	fmt.Fprintln(out)
	for _, p := range rep.Problems {
		fmt.Fprintf(out, "PROBLEM: %s\n", p)
	}
	verdict := "as expected: the clock made the refusals and the clients the storm; ours saw no step"
	switch {
	case !rep.Held():
		verdict = "not as expected"
	case rep.options.Step >= 0:
		verdict = "as expected: ours saw no step; storms come from steps back"
	}
	_, err := fmt.Fprintln(out, verdict)
	return err
}

// sentence says what happened in a phase.
func (p *PhaseReport) sentence() string {
	who := map[string]string{Naive: "The naive limiter", Ours: "Ours"}[p.Limiter]
	when := "after the step"
	if p.Step == "none" {
		when = "without a step"
	}
	clients := "clients that retry at once"
	if p.Client == Budget {
		clients = "clients with httpretry"
	}
	if p.Refusals == 0 {
		return fmt.Sprintf("%s refused nothing %s: %s made %d attempts for %d requests.", who, when, clients, p.Attempts, p.Requests)
	}
	return fmt.Sprintf("%s refused from %.0f to %.0f ms %s: %s made %d attempts for %d requests, up to %d in %v, and %.1f %% failed all the same.",
		who, p.RefusedFrom, p.Calm*1000, when, clients, p.Attempts, p.Requests, p.Worst, bin, p.Refused)
}

// Columns is how many charts stand side by side: the kinds of clients.
const Columns = 2

// Charts draw the phases with a step, from half a period before it to two after: attempts
// and what was admitted of them, beside the limit.
func (rep *Report) Charts() []*plot.Chart {
	var charts []*plot.Chart
	for i := range rep.phases {
		if rep.phases[i].Step != 0 {
			charts = append(charts, rep.chart(i))
		}
	}
	return charts
}

func (rep *Report) chart(i int) *plot.Chart {
	p, o := &rep.phases[i], &rep.options
	step := rep.Phases[i].Step
	c := &plot.Chart{
		Title: fmt.Sprintf("%s, %s", p.Limiter, p.Client),
		X:     "true time since the step, seconds", Y: fmt.Sprintf("per %v", bin),
		Levels: []plot.Level{{Name: "limit", Y: float64(o.Limit.Count) * float64(bin) / float64(o.Limit.Per)}},
		Marks:  []plot.Mark{{Name: step, X: 0}},
	}
	from := p.Stepped - algo.Mono((o.Limit.Per / 2).Truncate(bin))
	to := p.Stepped + algo.Mono(disturbed(o.Limit.Per))
	for _, line := range []struct {
		name string
		want func(*Attempt) bool
	}{{"attempts", every}, {"admitted", isAdmitted}} {
		s := plot.Steps{Name: line.name}
		for n, count := range bins(p, from, to, bin, line.want) {
			s.X = append(s.X, float64(from-p.Stepped+algo.Mono(n)*algo.Mono(bin))/1e9)
			s.Y = append(s.Y, float64(count))
		}
		c.Steps = append(c.Steps, s)
	}
	return c
}
