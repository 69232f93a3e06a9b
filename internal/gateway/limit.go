package gateway

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/httplimit"
	"github.com/escapement-io/escapement/internal/config"
)

// limit is one limit of the configuration, compiled.
type limit struct {
	*config.Limit
	plan     *escapement.Plan // nil if the window depends on the request
	style    httplimit.Style
	compat   bool // headers in the names and the order of limit-count
	refusal  refusal
	counts   *counts
	variants *variants
	shared   *shared // nil: the memory of the process
	rank     int     // of its store: 0 in memory
}

// compileLimit compiles c, or takes over from old, the limit of the same name before a
// reload, what did not change.
func compileLimit(c *config.Limit, old *limit) (*limit, error) {
	l := &limit{Limit: c, counts: &counts{}, refusal: newRefusal(c)}
	if old != nil {
		l.counts = old.counts
	}
	var err error
	if l.style, l.compat, err = headerStyle(c); err != nil {
		return nil, err
	}
	base := c.Limit
	if c.Count != nil && base.Rate.Count == 0 {
		base.Rate.Count = 1 // each request has its own; see variants
	}
	same := old != nil && sameLimit(&base, old.base()) && (c.Window == nil) == (old.Window == nil)
	if c.Count != nil || c.Window != nil {
		l.variants = &variants{base: base, of: c}
		if same && old.variants != nil {
			l.variants = old.variants
		}
	}
	if c.Window != nil {
		return l, nil
	}
	if same && old.plan != nil {
		l.plan = old.plan
		return l, nil
	}
	if l.plan, err = base.Compile(); err != nil {
		return nil, fmt.Errorf("limit %s: %w", c.Name, err)
	}
	return l, nil
}

// base is the description the limit was compiled from.
func (l *limit) base() *escapement.Limit {
	if l.variants != nil {
		return &l.variants.base
	}
	return l.plan.Limit()
}

// sameLimit reports whether two descriptions decide alike. Zones are the same by name.
func sameLimit(a, b *escapement.Limit) bool {
	x, y := *a, *b
	if zone(x.Zone) != zone(y.Zone) {
		return false
	}
	x.Zone, y.Zone = nil, nil
	return x == y
}

func zone(l *time.Location) string {
	if l == nil {
		return "UTC"
	}
	return l.String()
}

func headerStyle(c *config.Limit) (style httplimit.Style, compat bool, err error) {
	if c.Headers.Style == "compat" {
		return httplimit.None, true, nil
	}
	style, ok := httplimit.ParseStyle(c.Headers.Style)
	if !ok {
		return 0, false, fmt.Errorf("limit %s: %q is not a style of headers; use ietf, draft03, x or none", c.Name, c.Headers.Style)
	}
	return style, false, nil
}

// Bounds of what requests can make of one limit.
const (
	maxWindows  = 64   // window lengths, each with counters of its own
	maxVariants = 1024 // counts whose plan is remembered; any other is compiled again
)

// variants are the plans of a limit whose count or window comes from the request. The
// counts of one window length share its state, so a client that varies the count gains
// no second counter; each window length has counters of its own, so there are at most
// maxWindows, and a request that asks for one more is refused.
type variants struct {
	base escapement.Limit
	of   *config.Limit

	mu      sync.RWMutex
	windows map[int64]*escapement.Plan // seconds to plan
	plans   map[variant]*escapement.Plan
}

type variant struct{ seconds, count int64 }

// window is the plan for a window of so many seconds, or nil if there are too many.
func (v *variants) window(seconds int64) (*escapement.Plan, error) {
	v.mu.RLock()
	p := v.windows[seconds]
	v.mu.RUnlock()
	if p != nil {
		return p, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if p := v.windows[seconds]; p != nil {
		return p, nil
	}
	if len(v.windows) >= maxWindows {
		return nil, nil
	}
	l := v.of.ForWindow(time.Duration(seconds) * time.Second)
	l.Name, l.Rate.Count = windowName(l.Name, seconds), v.base.Rate.Count
	p, err := l.Compile()
	if err != nil {
		return nil, err
	}
	if v.windows == nil {
		v.windows = map[int64]*escapement.Plan{}
	}
	v.windows[seconds] = p
	return p, nil
}

// withCount is base with another count.
func (v *variants) withCount(base *escapement.Plan, seconds, count int64) (*escapement.Plan, error) {
	if base.Limit().Rate.Count == count {
		return base, nil
	}
	id := variant{seconds, count}
	v.mu.RLock()
	p := v.plans[id]
	v.mu.RUnlock()
	if p != nil {
		return p, nil
	}
	p, err := base.WithCount(count)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.plans == nil {
		v.plans = map[variant]*escapement.Plan{}
	}
	if len(v.plans) < maxVariants {
		v.plans[id] = p
	}
	return p, nil
}

// windowName is the name under which a store keeps the counters of one window length.
// The hash keeps it apart from names of the configuration.
func windowName(name string, seconds int64) string {
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%.20s_%ds_%x", name, seconds, sum[:8])
}

// positive reads a count or a number of seconds as limit-count does: digits only, from 1
// to most.
func positive(s string, most int64) (int64, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 1 && n <= most
}

// maxSeconds is the longest window a request may ask for: a century, the longest there is.
const maxSeconds = int64(algo.MaxInstant) / 1_000_000
