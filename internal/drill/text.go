package drill

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Text writes the report for people.
func (rep *Report) Text(out io.Writer) error {
	fmt.Fprintf(out, "%s under %d requests a second, admitted and what is right:\n\n", rep.Limit, rep.Rate)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "change\tadmitted\tright\tratio\t")
	for _, n := range rep.Naive {
		fmt.Fprintf(w, "%s\tof\t", n.Name)
	}
	fmt.Fprintln(w)
	for i, p := range rep.Phases {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.3f\t", p.Step, p.Admitted, p.Right, p.Ratio)
		for _, n := range rep.Naive {
			fmt.Fprintf(w, "%d\t%d\t", n.Phases[i].Admitted, n.Phases[i].Right)
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i, n := range rep.Naive {
		if i == 0 {
			fmt.Fprintln(out, "\nBeside it, of what the same recipe admits on a clock that does not step:")
		}
		fmt.Fprintf(out, "  %s: %s\n", n.Name, n.About)
	}
	fmt.Fprintln(out)
	for _, e := range rep.Events {
		fmt.Fprintf(out, "seen after %3.0f ms: %s of %+.3f ms\n", e.SeenAfterMS, e.Kind, e.SizeMS)
	}
	for _, p := range rep.Problems {
		fmt.Fprintf(out, "PROBLEM: %s\n", p)
	}
	verdict := "the limit held and every change was seen once"
	if !rep.Held() {
		verdict = "out of bounds"
	}
	_, err := fmt.Fprintf(out, "\n%d changes, %d events, %d of them false: %s\n", len(rep.Phases)-1, len(rep.Events), rep.FalseEvents, verdict)
	return err
}
