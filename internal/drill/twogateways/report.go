package twogateways

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/escapement-io/escapement/internal/plot"
)

// Report is what a drill found. Everything is counted by the stamps of the decisions.
type Report struct {
	Mode    string `json:"mode"`
	Window  string `json:"window"`
	Windows []int  `json:"windows"` // admitted in each complete window in which the load did not fall behind
	// Mean is of Windows; Error is how far it is from the limit, in per cent.
	Mean  float64 `json:"mean_per_window"`
	Error float64 `json:"error_pct"`
	// MaxOver is of any window, MaxOverAnySpan of any span of a window's length, wherever it
	// begins: per cent above the limit.
	MaxOver        float64 `json:"max_over_pct"`
	MaxOverAnySpan float64 `json:"max_over_any_span_pct"`
	// Calls are scripts that Redis ran for decisions. Those by which the line is kept, about
	// one a second, are Keeping.
	Calls     float64 `json:"redis_calls_per_s_per_instance"`
	Keeping   float64 `json:"redis_witness_calls_per_s_per_instance"`
	PerSecond []int   `json:"per_second"`
	// FirstQuarter is the least share of a complete window that was admitted in its first
	// quarter, in per cent; LastAfter the latest admission after the start of its window.
	FirstQuarter float64 `json:"first_quarter_pct"`
	LastAfter    float64 `json:"last_after_s"`

	// Disturbed are complete windows in which it did; their excess counts in MaxOver.
	Disturbed int `json:"disturbed_windows"`

	Limit     int64  `json:"limit"`
	Per       string `json:"per"`
	Sync      string `json:"sync,omitempty"`
	Instances int    `json:"instances"`
	Rate      int    `json:"offered_per_second,omitempty"`
	Burst     bool   `json:"burst_from_idle,omitempty"`

	Offered    int     `json:"offered"`
	Admitted   int     `json:"admitted"` // and arrived at the upstream, each once
	Refused    int     `json:"refused"`
	Failed     int     `json:"failed"`     // neither
	Unanswered int     `json:"unanswered"` // of these: arrived at the upstream; among Admitted
	Late       int     `json:"late"`       // sent more than 10 ms after they were due
	LatestMS   float64 `json:"latest_ms"`

	Faults   []string  `json:"faults,omitempty"`
	Clean    *float64  `json:"clean_error_pct,omitempty"` // of a run before with right clocks
	Failover *Failover `json:"failover,omitempty"`
	Problems []string  `json:"problems"`

	worst, worstSpan int
	perSecond        float64 // of the limit
	marks            []Mark
}

// Failover is what a failover did.
type Failover struct {
	Lag  float64 `json:"lag_ms"`
	Lost int     `json:"lost"` // units charged or handed out that the replica had not heard of
}

// Mark is a fault, by seconds since the load began.
type Mark struct {
	Name string
	At   float64
}

// Text writes the report for people.
func (r *Report) Text(out io.Writer) error {
	how := r.Mode
	if r.Sync != "" {
		how += " every " + r.Sync
	}
	load := fmt.Sprintf("%d requests a second in turn", r.Rate)
	if r.Burst {
		load = fmt.Sprintf("bursts of %d requests at each", r.Limit)
	}
	fmt.Fprintf(out, "%d gateways on one Redis, %s: %d per %s, %s window, %s\n", r.Instances, how, r.Limit, r.Per, r.Window, load)
	for _, f := range r.Faults {
		fmt.Fprintf(out, "  %s\n", f)
	}
	r.bars(out)
	fmt.Fprintf(out, "windows: %s\n", list(r.Windows))
	fmt.Fprintf(out, "  admitted per window %.1f, error %+.2f %%\n", r.Mean, r.Error)
	if r.Clean != nil {
		fmt.Fprintf(out, "  error with right clocks %+.2f %%\n", *r.Clean)
	}
	fmt.Fprintf(out, "  most above the limit: %.2f %% in a window, %.2f %% in a span of one\n", r.MaxOver, r.MaxOverAnySpan)
	fmt.Fprintf(out, "  at least %.1f %% of a window in its first quarter, nothing later than %.2f s\n", r.FirstQuarter, r.LastAfter)
	fmt.Fprintf(out, "  calls of Redis by each gateway %.2f a second, and %.2f to keep the line\n", r.Calls, r.Keeping)
	fmt.Fprintf(out, "  offered %d, admitted %d, refused %d, failed %d; sent late %d, at most %.1f ms\n", r.Offered, r.Admitted, r.Refused, r.Failed, r.Late, r.LatestMS)
	if r.Disturbed > 0 {
		fmt.Fprintf(out, "  the load fell behind in %d windows, which do not count\n", r.Disturbed)
	}
	if r.Unanswered > 0 {
		fmt.Fprintf(out, "  %d arrived at the upstream and were not answered: they count when they were sent\n", r.Unanswered)
	}
	if f := r.Failover; f != nil {
		fmt.Fprintf(out, "  the replica lagged by %.0f ms: it had not heard of %d units that were handed out\n", f.Lag, f.Lost)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(out, "PROBLEM: %s\n", p)
	}
	verdict := "every bound held"
	if len(r.Problems) > 0 {
		verdict = "out of bounds"
	}
	_, err := fmt.Fprintln(out, verdict)
	return err
}

// list shortens a long list in its middle.
func list(n []int) string {
	const most = 24
	words := strings.Fields(strings.Trim(fmt.Sprint(n), "[]"))
	if len(words) > most {
		words = slices.Concat(words[:most/2], []string{"..."}, words[len(words)-most/2:])
	}
	return strings.Join(words, " ")
}

// bars draws what was admitted per second, at most columns wide.
func (r *Report) bars(out io.Writer) {
	const (
		columns = 100
		rows    = 8
		eighths = "▁▂▃▄▅▆▇█"
	)
	if len(r.PerSecond) == 0 {
		return
	}
	each := (len(r.PerSecond) + columns - 1) / columns // seconds in a column
	var heights []float64
	top := 0.0
	for i := 0; i < len(r.PerSecond); i += each {
		sum, n := 0, 0
		for _, v := range r.PerSecond[i:min(i+each, len(r.PerSecond))] {
			sum, n = sum+v, n+1
		}
		heights = append(heights, float64(sum)/float64(n))
		top = max(top, heights[len(heights)-1])
	}
	fmt.Fprint(out, "\nadmitted per second\n\n")
	steps := []rune(eighths)
	for row := rows; row > 0 && top > 0; row-- {
		fmt.Fprintf(out, "%7.0f ┤ ", top*float64(row)/rows)
		for _, h := range heights {
			fill := int(h/top*rows*8+0.5) - (row-1)*8
			switch {
			case fill >= 8:
				fmt.Fprint(out, "█")
			case fill > 0:
				fmt.Fprintf(out, "%c", steps[fill-1])
			default:
				fmt.Fprint(out, " ")
			}
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "%7d ┼%s▶ %d s\n\n", 0, strings.Repeat("─", len(heights)+1), len(r.PerSecond))
}

// Chart draws what was admitted per second beside the limit.
func (r *Report) Chart() *plot.Chart {
	c := &plot.Chart{
		Title: fmt.Sprintf("%d gateways, %s, %s window: %d per %s", r.Instances, r.Mode, r.Window, r.Limit, r.Per),
		X:     "true time, seconds", Y: "admitted per second",
		Levels: []plot.Level{{Name: "the limit", Y: r.perSecond}},
	}
	s := plot.Steps{Name: "admitted"}
	for i, n := range r.PerSecond {
		s.X, s.Y = append(s.X, float64(i)), append(s.Y, float64(n))
	}
	if len(s.X) > 0 {
		c.Steps = []plot.Steps{s}
	}
	for _, m := range r.marks {
		c.Marks = append(c.Marks, plot.Mark{Name: m.Name, X: m.At})
	}
	return c
}
