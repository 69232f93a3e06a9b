package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/escapement-io/escapement/internal/config"
	"github.com/escapement-io/escapement/internal/doctor"
)

// DoctorCmd is escapement doctor.
type DoctorCmd struct {
	Redis  string        `placeholder:"URL" help:"Measure the offset to this store: redis://[user:password@]host[:port], rediss:// or unix://."`
	NTP    []string      `name:"ntp" placeholder:"HOST" help:"Measure the offset to these NTP servers, each asked once."`
	Watch  time.Duration `default:"2s" help:"Watch the clocks for steps and suspends for so long; 0 does not."`
	Config string        `short:"c" type:"existingfile" placeholder:"FILE" help:"Check what the limits of this configuration need of a clock."`
	Fleet  []string      `placeholder:"URL" help:"Ask these gateways, by the URLs of their admin listeners, and compare them."`
	JSON   bool          `name:"json" help:"Print one JSON document."`
	Root   string        `default:"/" type:"existingdir" hidden:"" help:"Read the files of the machine below this folder."`
}

// maxWatch is the longest watch: longer ones are what a gateway's metrics are for.
const maxWatch = 24 * time.Hour

// Run judges whether the time of this host is fit to limit by. A warning or a failure is
// exit code 1; what cannot be known is not.
func (c *DoctorCmd) Run(ctx context.Context, out *Output) error {
	if c.Watch < 0 || c.Watch > maxWatch {
		return usage("doctor: --watch is %v; use 0 to %v", c.Watch, maxWatch)
	}
	if err := checkServers(c.NTP); err != nil {
		return err
	}
	o := doctor.Options{Root: os.DirFS(c.Root), Redis: c.Redis, NTP: c.NTP, Watch: c.Watch, Fleet: c.Fleet}
	if c.Config != "" {
		cfg, findings, err := config.Load(c.Config, config.Options{IgnoreUnsupported: true})
		if err != nil {
			return err
		}
		if o.Config = cfg; cfg == nil {
			printFindings(out.Err, findings)
			return found()
		}
	}
	facts, err := doctor.Gather(ctx, o)
	if ctx.Err() != nil {
		return fmt.Errorf("doctor: %w", ctx.Err())
	} else if err != nil {
		return usage("doctor: %w", err)
	}
	report := doctor.Judge(facts)
	if c.JSON {
		if err := out.JSON(&report); err != nil {
			return fmt.Errorf("doctor: %w", err)
		}
	} else {
		printReport(out, &report)
	}
	if report.Finding() {
		return found()
	}
	return nil
}

// printReport writes findings with their remedies, then the tables.
func printReport(out *Output, r *doctor.Report) {
	counts := map[doctor.Status]int{}
	for _, c := range r.Checks {
		counts[c.Status]++
		out.Printf("%-8s %s\n", c.Status, c.Name)
		for _, line := range wrap(visible(c.Detail), 90) {
			out.Printf("         %s\n", line)
		}
		for _, line := range strings.Split(visible(c.Fix), "\n") {
			if line != "" {
				out.Printf("           > %s\n", line)
			}
		}
	}
	if len(r.Limits) > 0 {
		out.Printf("\n")
		table(out, "limit\tneeds ms\thas ms\t", len(r.Limits), func(i int) string {
			l := r.Limits[i]
			return fmt.Sprintf("%s\t%.3g\t%s\t", l.Name, l.NeedMS, number(l.HaveMS))
		})
	}
	if len(r.Fleet) > 0 {
		out.Printf("\n")
		table(out, "instance\toffset ms\t± ms\tstate\tbound ms\tsteps\tsources", len(r.Fleet), func(i int) string {
			f := r.Fleet[i]
			if f.Problem != "" {
				return f.URL + "\t-\t-\tno answer\t-\t-\t-"
			}
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%d\t%s", f.URL, number(f.OffsetMS), number(f.ErrorMS), f.State, number(f.BoundMS), f.Steps, strings.Join(f.Sources, ", "))
		})
	}
	out.Printf("\n%d ok, %d unknown, %d warning, %d fail\n", counts[doctor.OK], counts[doctor.Unknown], counts[doctor.Warning], counts[doctor.Fail])
}

func table(out *Output, head string, n int, row func(int) string) {
	w := tabwriter.NewWriter(out.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, head)
	for i := range n {
		fmt.Fprintln(w, visible(strings.ReplaceAll(row(i), "\n", "?"))) // a row is one line, whatever a cell says
	}
	_ = w.Flush() // a result that cannot be written has no better place to say so
}

// number is one for a table, with a dash for what is not known.
func number(x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *x)
}

// wrap breaks lines at spaces so that they are at most so long where words allow it.
func wrap(text string, width int) []string {
	var lines []string
	for _, paragraph := range strings.Split(text, "\n") {
		line := ""
		for _, word := range strings.Fields(paragraph) {
			if line != "" && len(line)+1+len(word) > width {
				lines, line = append(lines, line), ""
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		lines = append(lines, line)
	}
	return lines
}

// visible is text without what a terminal would obey: some of it comes from other hosts.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}
