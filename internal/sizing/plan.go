package sizing

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Plan is what comes of a Setup. The names of the JSON fields do not change.
type Plan struct {
	Mode       Mode    `json:"mode"`
	Window     Window  `json:"window"`
	EnforcedAs Window  `json:"enforced_as"`
	Instances  int     `json:"instances"`
	Rate       float64 `json:"rate_per_s"`
	Limit      int64   `json:"limit"`
	Per        string  `json:"per"`
	Sync       string  `json:"sync,omitempty"`
	Demand     float64 `json:"demand_per_window"`

	Steady      Steady  `json:"steady"`
	FirstWindow float64 `json:"first_window_pct"` // above the limit, in a window without a history
	Worst       Worst   `json:"worst"`
	RoundTrips  Trips   `json:"round_trips_per_s_per_instance"`
	Store       Load    `json:"store"`
	Backend     Backend `json:"backend"`

	Possible []string `json:"possible"` // limits of what can be had in this mode
	Advice   []string `json:"advice"`

	setup Setup
}

// Worst is the most that is admitted, whatever the demand.
type Worst struct {
	PerWindow float64 `json:"per_window"`
	Over      float64 `json:"over_pct"`
	AnySpan   float64 `json:"any_span"` // in a span of one window, wherever it begins
}

// Trips are calls to the store about one key.
type Trips struct {
	About float64 `json:"about"`
	Most  float64 `json:"most"`
}

// Load is what the store does for all instances and keys: an estimate.
type Load struct {
	Keys  int     `json:"keys"`
	Calls float64 `json:"calls_per_s"`
	Core  float64 `json:"core_pct"`
	Basis string  `json:"basis"`
}

// Backend is what stands behind.
type Backend struct {
	PerWindow float64 `json:"per_window"` // to be sized for
	Peak      float64 `json:"peak_per_s"` // at which a window's requests arrive, under the demand given
}

// New computes the plan of a setup. The error joins a *Problem for every field that is
// wrong.
func New(given Setup) (*Plan, error) {
	s, buckets, err := given.normal()
	if err != nil {
		return nil, err
	}
	p := &Plan{Mode: s.Mode, Window: s.Window, EnforcedAs: s.Window, Instances: s.Instances, Rate: s.Rate, Limit: s.Limit, Per: s.Per.String(),
		Demand: s.perWindow(), Steady: s.steady(buckets), FirstWindow: s.firstWindow(), setup: s}
	if s.rolls() {
		p.EnforcedAs = Rolling
	}
	if s.Mode != Exact {
		p.Sync = s.Sync.String()
	}
	p.Worst = Worst{s.worst(), 100 * (s.worst()/float64(s.Limit) - 1), s.worstSpan()}
	p.RoundTrips.About, p.RoundTrips.Most = s.roundTrips()
	calls, core := s.store(p.RoundTrips.About)
	p.Store = Load{s.Keys, calls, 100 * core, s.basis()}
	p.Backend = Backend{s.worst(), s.peak(p.Steady.PerWindow)}
	p.Possible, p.Advice = s.possible(), s.advice(p)
	return p, nil
}

// peak is the rate at which requests reach the backend: all of the demand until a fixed
// window is full.
func (s *Setup) peak(perWindow float64) float64 {
	if s.Window == Fixed {
		return s.Rate
	}
	return perWindow / s.Per.Seconds()
}

// Text writes the plan for people.
func (p *Plan) Text(w io.Writer) error {
	s := &p.setup
	var b strings.Builder
	fmt.Fprintf(&b, "%d per %v shared by %s; %s requests/s in all, %s a window: %.3g times the limit\n", s.Limit, s.Per, plural(s.Instances, "instance"),
		number(s.Rate), number(p.Demand), p.Demand/float64(s.Limit))
	switch {
	case s.Mode == Exact:
		fmt.Fprintf(&b, "%s window, exact: every request asks the store\n\n", s.Window)
	case p.EnforcedAs != s.Window:
		fmt.Fprintf(&b, "%s window, enforced as a %s one; %s, instances agree every %v\n\n", s.Window, p.EnforcedAs, s.Mode, s.Sync)
	default:
		fmt.Fprintf(&b, "%s window; %s, instances agree every %v\n\n", s.Window, s.Mode, s.Sync)
	}
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-13s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("steady", "%s", p.steadyText())
	if p.FirstWindow > 0 && s.Window != Fixed {
		row("first window", "%+.1f %%, repaid by the next ones", p.FirstWindow)
	}
	worst := number(p.Worst.PerWindow)
	if s.Mode == Delayed {
		worst = fmt.Sprintf("%d × %d = %s", s.Instances, s.Limit, worst)
	}
	row("worst case", "%s in a window (%s), %s in a span of %v that begins anywhere", worst, over(p.Worst.Over), number(p.Worst.AnySpan), s.Per)
	row("round trips", "about %s/s per instance and key, at most %s/s; a request each would be %s/s", number(p.RoundTrips.About), number(p.RoundTrips.Most), number(s.each()))
	row("Redis", "%s calls/s, %.3g %% of a core with %s: an estimate", number(p.Store.Calls), p.Store.Core, plural(s.Keys, "such key"))
	row("backend", "size it for %s per %v; under this demand they come at %s/s", number(p.Backend.PerWindow), s.Per, number(p.Backend.Peak))
	list := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&b, "\n%s\n  - %s\n", title, strings.Join(lines, "\n  - "))
		}
	}
	list("what cannot be had", p.Possible)
	list("advice", p.Advice)
	fmt.Fprintf(&b, "\nRedis: %s.\n", p.Store.Basis)
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *Plan) steadyText() string {
	st, of := p.Steady, "the limit"
	if p.Demand < float64(p.Limit) {
		of = "the demand"
	}
	text := fmt.Sprintf("%s a window, %s of %s", number(st.PerWindow), percent(st.Error), of)
	if st.From != st.To {
		text += fmt.Sprintf("; between %s and %s", percent(st.From), percent(st.To))
	}
	if p.Mode == Delayed && p.Window == Fixed && st.Error > 0 {
		text += ", in every window"
	}
	return text
}

func over(pct float64) string {
	if pct == 0 {
		return "nothing above the limit"
	}
	return percent(pct)
}

// percent writes a part with its sign, and zero without one.
func percent(x float64) string {
	if math.Abs(x) < 0.05 {
		return "0 %"
	}
	return fmt.Sprintf("%+.1f %%", x)
}

// number writes three digits, and all of those before the point.
func number(x float64) string {
	switch {
	case x >= 99.95:
		return fmt.Sprintf("%.0f", x)
	case x >= 9.995:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// rounded is a length of time that is easy to write.
func rounded(d time.Duration) time.Duration {
	return max(d.Truncate(time.Millisecond), time.Millisecond)
}
