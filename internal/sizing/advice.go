package sizing

import (
	"fmt"
	"time"
)

// possible says what no way of this kind can do better.
func (s *Setup) possible() (out []string) {
	n := s.Instances
	switch {
	case n == 1 || s.Mode == Exact:
		return nil
	case s.Mode == Delayed:
		return []string{fmt.Sprintf("if R units are left and nobody can talk, up to (N−1) × R = %d × R are admitted too many", n-1)}
	}
	out = append(out, fmt.Sprintf("if R units are handed out and nobody can talk, demand at one instance leaves up to R × (1−1/N) = %.3g × R unused", 1-1/float64(n)))
	if s.rolls() {
		out = append(out, fmt.Sprintf("a rolling window that is never exceeded loses at least N/(D+N) = %.2g %% at even random demand, however often instances talk", 100*s.impossible()))
	}
	return out
}

// advice says what would be better than what was asked about, in numbers.
func (s *Setup) advice(p *Plan) (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if s.Mode != Exact && s.each()*s.Sync.Seconds() <= 1 {
		add("an instance has at most one request of a key in an interval, so agreeing saves nothing: use exact, or an interval above %v", rounded(time.Duration(float64(time.Second)/s.each())))
	}
	switch s.Mode {
	case Exact:
		s.adviseExact(p, add)
	case Delayed:
		s.adviseDelayed(p, add)
	case Lease:
		s.adviseLease(p, add)
	}
	return out
}

// instead is the plan of a setup that differs; nil if there is none.
func (s *Setup) instead(change func(*Setup)) *Plan {
	o := *s
	change(&o)
	n, buckets, err := o.normal()
	if err != nil {
		return nil
	}
	p := &Plan{Steady: n.steady(buckets), FirstWindow: n.firstWindow(), setup: n}
	p.RoundTrips.About, p.RoundTrips.Most = n.roundTrips()
	return p
}

func (s *Setup) adviseExact(p *Plan, add func(string, ...any)) {
	if l := s.instead(func(o *Setup) { o.Mode = Lease }); l != nil && l.RoundTrips.About < p.RoundTrips.About/2 {
		add("leases every %v make %s round trips/s of an instance instead of %s, with nothing above the limit and %s under steady demand", l.setup.Sync, number(l.RoundTrips.About), number(p.RoundTrips.About), percent(l.Steady.Error))
	}
}

func (s *Setup) adviseDelayed(p *Plan, add func(string, ...any)) {
	add("size what stands behind for instances × limit = %s per %v, whatever the window", number(p.Worst.PerWindow), s.Per)
	if s.Window == Fixed {
		add("a sliding window repays the error that a fixed one repeats in every window, and spreads the requests over it")
	}
	if good := rounded(s.Per / 20); s.Sync > s.Per/20 && s.Per >= 20*time.Millisecond {
		if b := s.instead(func(o *Setup) { o.Sync = good }); b != nil {
			add("an interval of a twentieth of the window, %v, makes it %s steady and %+.1f %% in a first window, at %s round trips/s", good, percent(b.Steady.Error), b.FirstWindow, number(b.RoundTrips.About))
		}
	}
	if l := s.instead(func(o *Setup) { o.Mode = Lease }); l != nil {
		add("leases at the same interval exceed nothing: %s steady, about %s round trips/s", percent(l.Steady.Error), number(l.RoundTrips.About))
	}
}

// clear is how many requests an instance should have in excess of the limit in a window
// for a rolling window to lose little.
const clear = 80

func (s *Setup) adviseLease(p *Plan, add func(string, ...any)) {
	if long := rounded(2 * s.Per / 5); s.Sync < long/2+1 {
		if l := s.instead(func(o *Setup) { o.Sync = long }); l != nil && l.RoundTrips.About < p.RoundTrips.About*0.9 && l.Steady.Error > p.Steady.Error-1.5 {
			add("the interval hardly matters: every %v it is %s steady with about %s round trips/s", long, percent(l.Steady.Error), number(l.RoundTrips.About))
		}
	}
	if excess := (s.perWindow() - float64(s.Limit)) / float64(s.Instances); s.rolls() && s.near(false) > 0 && excess < clear && p.Steady.Error < -2 {
		if f := s.instead(func(o *Setup) { o.Window = Fixed }); f != nil {
			add("a rolling window loses little where each instance has %d requests or more a window in excess of the limit; here it is %.0f. A fixed window: %s", clear, max(0, excess), percent(f.Steady.Error))
		}
	}
	if s.Window == Fixed {
		add("up to twice the limit can pass around the boundary of two windows; a rolling window keeps the limit in every span")
	}
	if s.Limit < int64(s.Instances) {
		add("the limit is less than one for each instance: use exact")
	}
}
