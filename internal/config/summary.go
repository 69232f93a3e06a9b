package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/fallback"
)

// Summary says in plain terms what a limit enforces.
type Summary struct {
	Name      string `json:"name"`
	Algorithm string `json:"algorithm"`
	Count     int64  `json:"count"`    // per period, headroom taken off; 0: taken from the request
	Per       string `json:"per"`      // the period, the calendar, or what it is taken from
	Capacity  int64  `json:"capacity"` // the most at once, headroom taken off; 0: taken from the request
	Key       string `json:"key"`
	State     string `json:"state"`      // where it lives
	OnFailure string `json:"on_failure"` // what is answered while the store cannot
	Bound     string `json:"bound"`      // what can pass at most
	Shadow    bool   `json:"shadow"`

	EnforcedAs string       `json:"enforced_as,omitempty"` // the algorithm, if it is another one
	Sync       *SyncSummary `json:"sync,omitempty"`        // absent: every request asks
}

// Summary describes a limit of a Config.
func (l *Limit) Summary() Summary {
	s := Summary{Name: l.Name, Algorithm: l.Algorithm.String(), Key: l.Key.String(), Shadow: l.Shadow,
		State: "in the memory of this process; N instances admit N times as much"}
	enforced := l.Algorithm
	asked := l.ForWindow(l.Rate.Per)
	if plan, err := asked.Compile(); err == nil {
		s.Count, _ = plan.Core().Rate()
		s.Capacity = plan.Core().Capacity()
	}
	if l.Sync > 0 && l.SyncMode == escapement.SyncLease && l.Algorithm == escapement.SlidingWindow {
		enforced = escapement.RollingWindow
		s.EnforcedAs = enforced.String()
	}
	s.Per = l.Rate.Per.String()
	if l.Align >= escapement.Day {
		s.Per = l.Align.String() + " in " + zoneName(l.Zone)
	}
	if l.Window != nil {
		s.Per = l.Window.String() + " seconds"
	}
	if l.Count != nil {
		s.Count, s.Capacity = 0, 0
	}
	s.OnFailure = l.onFailure()
	if l.Store != nil {
		s.State = fmt.Sprintf("in the store %s (%v), within %v of each request", l.Store.Name, l.Store, l.Store.Deadline)
	}
	s.Bound = l.bound(&s, enforced)
	if s.Sync = l.sync(&s); s.Sync != nil {
		s.State = fmt.Sprintf("in the store %s (%v); each instance agrees with it every %v, %s", l.Store.Name, l.Store, l.Sync, s.Sync.Mode)
		if l.Window != nil {
			s.State += ", if the window is longer"
		}
		s.Bound += s.Sync.bound()
	}
	return s
}

// onFailure says what is answered while the store cannot.
func (l *Limit) onFailure() string {
	switch {
	case l.OnFailure == escapement.Allow:
		return "allow"
	case l.OnFailure == escapement.Deny || l.Store == nil:
		return "deny"
	case l.Store.Instances == 0:
		return "local_share of the number of instances that the store counts"
	}
	n := l.Store.Instances
	if p := fallback.Share(l.Limit, int64(n)); p != nil {
		count, _ := p.Core().Rate()
		return fmt.Sprintf("local_share of 1/%d, which is %d", n, count)
	}
	return fmt.Sprintf("local_share, which denies: 1/%d of the limit is nothing", n)
}

func zoneName(z *time.Location) string {
	if z == nil {
		return "UTC"
	}
	return z.String()
}

// bound is the most that passes where every request asks, or in one instance.
func (l *Limit) bound(s *Summary, enforced escapement.Algorithm) string {
	count, double := fmt.Sprint(s.Count), fmt.Sprint(2*s.Count)
	if l.Count != nil {
		count = l.Count.String()
		double = "twice that"
	}
	switch enforced {
	case escapement.TokenBucket, escapement.GCRA:
		return fmt.Sprintf("at most %d at once, and %d + %s per %s after", s.Capacity, s.Capacity, count, s.Per)
	case escapement.FixedWindow:
		return fmt.Sprintf("at most %s in each window, %s around the boundary of two", count, double)
	case escapement.SlidingWindow:
		return fmt.Sprintf("weighted estimate at most %s; one span of %s can hold up to %s", count, s.Per, double)
	case escapement.RollingWindow:
		return fmt.Sprintf("at most %s in every span of %s", count, s.Per)
	case escapement.Pacing:
		return fmt.Sprintf("evenly spaced, %s per %s; a request is held at most %v", count, s.Per, l.MaxDelay)
	}
	return ""
}

// String is the summary on one line.
func (s Summary) String() string {
	count := fmt.Sprint(s.Count)
	if s.Count == 0 {
		count = "a count of the request"
	}
	algorithm := s.Algorithm
	if s.EnforcedAs != "" {
		algorithm += " enforced as " + s.EnforcedAs
	}
	text := fmt.Sprintf("%s: %s, %s per %s", s.Name, algorithm, count, s.Per)
	if s.Capacity != s.Count {
		text += fmt.Sprintf(", capacity %d", s.Capacity)
	}
	text += fmt.Sprintf(", by %s; %s; %s", s.Key, s.Bound, s.State)
	if !strings.HasPrefix(s.State, "in the memory") {
		text += "; if it fails: " + s.OnFailure
	}
	if s.Shadow {
		text += "; shadow: refuses nobody"
	}
	return text
}
