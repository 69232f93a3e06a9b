package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/config"
)

// Need is what one limit asks of a clock that has to stand in for its store's: an error of
// at most a tenth of its emission interval.
type Need struct {
	Name     string
	Interval time.Duration // between two admissions at the limit's rate
}

// Bound is the error the limit can bear.
func (n Need) Bound() time.Duration { return n.Interval / 10 }

// LimitRow is a Need in the report.
type LimitRow struct {
	Name   string   `json:"name"`
	NeedMS float64  `json:"need_ms"`
	HaveMS *float64 `json:"have_ms"` // null: not known
	Met    bool     `json:"met"`
}

// Needs lists what the limits of a configuration ask for, the strictest first. A limit
// whose count or period comes from the request has no emission interval of its own.
func Needs(c *config.Config) []Need {
	var list []Need
	for _, l := range c.Limits {
		per := l.Rate.Per
		switch l.Align {
		case escapement.Day:
			per = 24 * time.Hour
		case escapement.Week:
			per = 7 * 24 * time.Hour
		case escapement.Month:
			per = 28 * 24 * time.Hour
		case escapement.Epoch, escapement.FirstUse:
		}
		if l.Count != nil || l.Window != nil || l.Rate.Count <= 0 || per <= 0 {
			continue
		}
		list = append(list, Need{Name: l.Name, Interval: per / time.Duration(l.Rate.Count)})
	}
	slices.SortStableFunc(list, func(a, b Need) int { return cmp.Compare(a.Interval, b.Interval) })
	return list
}

// have is the error that this host's clock may have, by the best evidence there is: the
// distance to the store, which the limits would be decided by, else to NTP, else what the
// kernel says.
func (f *Facts) have() (bound time.Duration, by string, known bool) {
	for _, o := range f.offsets() {
		if o.Failed == "" && (!known || o.Offset.Abs()+o.Error < bound) {
			bound, by, known = o.Offset.Abs()+o.Error, "measured against "+o.Name, true
		}
		if known && f.Store != nil && f.Store.Failed == "" {
			break
		}
	}
	if !known && f.Kernel.Known && f.Kernel.Synchronised {
		return f.Kernel.MaxError, "by the kernel's own bound", true
	}
	return bound, by, known
}

func (f *Facts) limitRows() []LimitRow {
	have, _, known := f.have()
	var rows []LimitRow
	for _, n := range f.Needs {
		r := LimitRow{Name: n.Name, NeedMS: *millis(n.Bound())}
		if known {
			r.HaveMS, r.Met = millis(have), have <= n.Bound()
		}
		rows = append(rows, r)
	}
	return rows
}

// maxNamed is how many names one line lists.
const maxNamed = 8

func limitPrecision(f *Facts) verdict {
	switch {
	case !f.NeedsKnown:
		return unknown("no configuration was given; name one with -c FILE to see what its limits need")
	case len(f.Needs) == 0:
		return ok("no limit of the configuration has an emission interval of its own")
	}
	have, by, known := f.have()
	strictest := f.Needs[0]
	if !known {
		return unknown("%s needs a clock right within %s, a tenth of its emission interval of %s; nothing here bounds the error of this one: measure it with --redis or --ntp",
			strictest.Name, span(strictest.Bound()), span(strictest.Interval))
	}
	var unmet []string
	for _, n := range f.Needs {
		if have > n.Bound() {
			unmet = append(unmet, fmt.Sprintf("%s (%s)", n.Name, span(n.Bound())))
		}
	}
	if len(unmet) == 0 {
		return ok("this clock is right within %s, %s; the strictest limit, %s, needs %s", span(have), by, strictest.Name, span(strictest.Bound()))
	}
	names := unmet
	if len(names) > maxNamed {
		names = append(slices.Clone(names[:maxNamed]), fmt.Sprintf("%d more", len(unmet)-maxNamed))
	}
	return verdict{Warning,
		fmt.Sprintf("this clock is right within %s, %s, which is more than a tenth of the emission interval of %d of %d limits: %s. "+
			"While their store is away this host cannot go on by its own clock for them: it would admit or refuse more than a tenth of a request's spacing too early or too late",
			span(have), by, len(unmet), len(f.Needs), strings.Join(names, ", ")),
		"on_failure: local_share   # each instance then enforces its share by the monotonic clock, which needs no bound\n" +
			"or bring the clock nearer: a time source in the same network, or the host's clock (see virtual-machine)"}
}
