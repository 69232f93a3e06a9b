package escapement

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// calendar cuts time into the days, weeks or months of a zone. A window begins at the
// first instant at which the zone's clocks show its first date, also where midnight is
// skipped or happens twice: a boundary once passed is not passed again. Daylight-saving
// changes make a day 23 or 25 hours long.
type calendar struct {
	align Align
	zone  *time.Location
	last  atomic.Pointer[window] // the window asked for last: nearly every call asks again
}

type window struct{ start, end algo.Store }

func newCalendar(align Align, zone *time.Location) *calendar {
	if zone == nil {
		zone = time.UTC
	}
	c, _ := calendars.LoadOrStore(calendarID{align, zone.String()}, &calendar{align: align, zone: zone})
	return c.(*calendar)
}

// calendars holds one calendar per alignment and zone, so that plans of equal limits are
// equal. There are no more of them than zones in the configuration.
var calendars sync.Map // calendarID to *calendar

type calendarID struct {
	align Align
	zone  string
}

// Around is the window that holds t.
func (c *calendar) Around(t algo.Store) (start, end algo.Store) {
	if w := c.last.Load(); w != nil && w.start <= t && t < w.end {
		return w.start, w.end
	}
	y, m, d := time.UnixMicro(int64(t)).In(c.zone).Date()
	first := c.first(civil{y, m, d})
	// Where a clock is set back over midnight the date shown can lie before a boundary
	// that was already passed; where a whole date is skipped, after it.
	for c.begin(c.next(first)) <= t {
		first = c.next(first)
	}
	for c.begin(first) > t {
		first = c.previous(first)
	}
	w := &window{c.begin(first), c.begin(c.next(first))}
	c.last.Store(w)
	return w.start, w.end
}

// civil is a date without a clock.
type civil struct {
	year  int
	month time.Month
	day   int
}

func (d civil) utc() time.Time { return time.Date(d.year, d.month, d.day, 0, 0, 0, 0, time.UTC) }

func (d civil) add(months, days int) civil {
	y, m, dd := d.utc().AddDate(0, months, days).Date()
	return civil{y, m, dd}
}

// first is the first date of the window that holds d.
func (c *calendar) first(d civil) civil {
	switch c.align {
	case Week:
		return d.add(0, -(int(d.utc().Weekday())+6)%7)
	case Month:
		return civil{d.year, d.month, 1}
	case Day, Epoch, FirstUse: // of these only Day has a calendar
	}
	return d
}

func (c *calendar) next(first civil) civil { return c.step(first, 1) }

func (c *calendar) previous(first civil) civil { return c.step(first, -1) }

func (c *calendar) step(first civil, by int) civil {
	switch c.align {
	case Week:
		return first.add(0, 7*by)
	case Month:
		return first.add(by, 0)
	case Day, Epoch, FirstUse: // of these only Day has a calendar
	}
	return first.add(0, by)
}

// begin is the first instant at which the zone shows date d or a later one. Between two
// changes of the zone's offset the local clock runs evenly, so the answer is either local
// midnight in one of the stretches around, or the start of one.
func (c *calendar) begin(d civil) algo.Store {
	want := d.utc()
	for at := want.Add(-48 * time.Hour); ; {
		local := at.In(c.zone)
		_, offset := local.Zone()
		midnight := want.Add(-time.Duration(offset) * time.Second)
		_, end := local.ZoneBounds()
		if !end.IsZero() && !end.After(at) {
			// Package time says so on the last day of leap years beyond the zone's table,
			// from 2040 on; no zone changes its offset then.
			end = at.Add(24 * time.Hour)
		}
		if midnight.Before(at) {
			midnight = at
		}
		if end.IsZero() || midnight.Before(end) {
			return algo.Store(midnight.UnixMicro())
		}
		at = end
	}
}
