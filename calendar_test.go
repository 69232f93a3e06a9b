package escapement

import (
	_ "embed"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/escapement-io/escapement/algo"
)

// Every window of every zone, about twenty seconds:
//
//	go test . -run TestCalendarWindows -zones all
var zones = flag.String("zones", "some", "zones of TestCalendarWindows: some, all, or one name")

// zoneNames are the zones of time/tzdata.
//
//go:embed testdata/zones.txt
var zoneNames string

// odd zones skip or repeat a midnight, or a whole date, or shift by less than an hour.
var odd = []string{
	"UTC", "America/Sao_Paulo", "Asia/Beirut", "America/Havana", "Pacific/Apia", "Africa/Cairo", "Australia/Lord_Howe",
	"Pacific/Kwajalein", "Asia/Kathmandu", "America/Toronto", "Antarctica/Troll", "Asia/Tehran", "Africa/Casablanca", "Europe/Berlin",
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// at reads an instant such as "2018-11-04T03:00:00Z".
func at(t *testing.T, s string) algo.Store {
	t.Helper()
	u, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return algo.Store(u.UnixMicro())
}

func show(s algo.Store) string { return time.UnixMicro(int64(s)).UTC().Format(time.RFC3339Nano) }

// TestCalendarDays holds days around changes of the clock to instants looked up by hand.
func TestCalendarDays(t *testing.T) {
	for _, c := range []struct {
		why, zone, in, start, end string
	}{
		{"a plain day", "UTC", "2026-11-30T19:00:00Z", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"},
		{"a leap day", "UTC", "2024-02-29T23:59:59Z", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"},
		{"23 hours", "Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"25 hours", "Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		{"midnight skipped: 00:00 becomes 01:00", "America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		{"and the day before ends where it is skipped", "America/Sao_Paulo", "2018-11-04T02:59:59Z", "2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z"},
		{"midnight reached and set back to 23:00", "America/Sao_Paulo", "2018-02-18T01:59:59Z", "2018-02-17T02:00:00Z", "2018-02-18T03:00:00Z"},
		{"midnight skipped", "Asia/Beirut", "2022-03-27T10:00:00Z", "2022-03-26T22:00:00Z", "2022-03-27T21:00:00Z"},
		{"midnight twice: 01:00 becomes 00:00", "America/Havana", "2022-11-06T05:30:00Z", "2022-11-06T04:00:00Z", "2022-11-07T05:00:00Z"},
		{"midnight skipped", "America/Havana", "2022-03-13T12:00:00Z", "2022-03-13T05:00:00Z", "2022-03-14T04:00:00Z"},
		{"24:00 set back to 23:00", "Africa/Cairo", "2023-10-26T21:30:00Z", "2023-10-25T21:00:00Z", "2023-10-26T22:00:00Z"},
		{"midnight skipped", "Africa/Cairo", "2023-04-28T10:00:00Z", "2023-04-27T22:00:00Z", "2023-04-28T21:00:00Z"},
		{"a date skipped: the 29th ends as the 31st begins", "Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		{"the 31st", "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
		{"half an hour", "Australia/Lord_Howe", "2026-04-05T00:00:00Z", "2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z"},
	} {
		start, end := newCalendar(Day, zone(t, c.zone)).Around(at(t, c.in))
		if start != at(t, c.start) || end != at(t, c.end) {
			t.Errorf("%s, %s in %s: %s to %s, want %s to %s", c.why, c.in, c.zone, show(start), show(end), c.start, c.end)
		}
	}
}

func TestCalendarWeeksAndMonths(t *testing.T) {
	for _, c := range []struct {
		align                Align
		zone, in, start, end string
	}{
		{Week, "UTC", "1970-01-01T00:00:00Z", "1969-12-29T00:00:00Z", "1970-01-05T00:00:00Z"},
		{Week, "UTC", "2026-11-30T00:00:00Z", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z"},
		{Week, "UTC", "2026-11-29T23:59:59Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"},
		{Week, "Europe/Berlin", "2026-03-25T00:00:00Z", "2026-03-22T23:00:00Z", "2026-03-29T22:00:00Z"},
		{Week, "Pacific/Apia", "2011-12-29T00:00:00Z", "2011-12-26T10:00:00Z", "2012-01-01T10:00:00Z"},
		{Month, "UTC", "2024-02-10T00:00:00Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"},
		{Month, "UTC", "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{Month, "Europe/Berlin", "2026-03-31T21:59:59Z", "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z"},
		{Month, "Asia/Kathmandu", "2026-05-31T18:15:00Z", "2026-05-31T18:15:00Z", "2026-06-30T18:15:00Z"},
	} {
		start, end := newCalendar(c.align, zone(t, c.zone)).Around(at(t, c.in))
		if start != at(t, c.start) || end != at(t, c.end) {
			t.Errorf("%v of %s in %s: %s to %s, want %s to %s", c.align, c.in, c.zone, show(start), show(end), c.start, c.end)
		}
	}
}

// boundaries finds where windows begin by walking the zone's offsets in order and
// watching the latest date its clocks have ever shown.
func boundaries(align Align, z *time.Location, from, to time.Time) (list []algo.Store) {
	index := func(local int64) int64 { // of the window that a local second lies in
		d := time.Unix(local, 0).UTC()
		days := floorDiv(local, 86400)
		switch align {
		case Week:
			return floorDiv(days+3, 7) // 1970-01-01 was a Thursday
		case Month:
			return int64(d.Year())*12 + int64(d.Month())
		case Day, Epoch, FirstUse:
		}
		return days
	}
	latest := int64(-1 << 62)
	for a := from; a.Before(to); {
		local := a.In(z)
		_, offset := local.Zone()
		_, b := local.ZoneBounds()
		if b.IsZero() || b.After(to) {
			b = to
		}
		// Local midnights of this stretch, and its first instant.
		for s := a.Unix(); s < b.Unix(); s = (floorDiv(s+int64(offset), 86400)+1)*86400 - int64(offset) {
			if i := index(s + int64(offset)); i > latest {
				latest, list = i, append(list, algo.Store(s)*1_000_000)
			}
		}
		a = b
	}
	return list[1:] // the first is where the walk began
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// TestCalendarWindows walks zones from 1990 to 2040: windows are contiguous, never
// overlap, never go back, and begin where the zone's clocks first show their date.
func TestCalendarWindows(t *testing.T) {
	names := strings.Fields(zoneNames)
	switch *zones {
	case "all":
	case "some":
		first := rand.IntN(60)
		some := odd
		for i := first; i < len(names); i += 60 {
			some = append(some[:len(some):len(some)], names[i])
		}
		names = some
	default:
		names = []string{*zones}
	}
	from, to := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, name := range names {
		z := zone(t, name)
		for _, align := range []Align{Day, Week, Month} {
			c := newCalendar(align, z)
			list := boundaries(align, z, from, to)
			for i := range list[1:] {
				if err := holds(c, list[i], list[i+1]); err != nil {
					t.Fatalf("%v in %s: %v; repeat with: go test . -run TestCalendarWindows -zones %s", align, name, err, name)
				}
			}
		}
	}
}

// holds checks the window [start, end) from its first instant, its last and one inside,
// each asked of a calendar that remembers another window.
func holds(c *calendar, start, end algo.Store) error {
	for _, t := range []algo.Store{start, end - 1, start + (end-start)/3} {
		c.last.Store(nil)
		if a, b := c.Around(t); a != start || b != end {
			return fmt.Errorf("around %s: %s to %s, want %s to %s", show(t), show(a), show(b), show(start), show(end))
		}
	}
	return nil
}

// TestCalendarPlan counts through a limit: a day of 25 hours is one window.
func TestCalendarPlan(t *testing.T) {
	plan, err := Limit{Name: "day", Algorithm: FixedWindow, Rate: Rate{Count: 2}, Align: Day, Zone: zone(t, "America/Havana")}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	var s algo.State
	p := plan.Core()
	p.Take(&s, at(t, "2022-11-06T04:10:00Z"), 1) // 00:10
	p.Take(&s, at(t, "2022-11-06T05:10:00Z"), 1) // 00:10 again
	v := p.Take(&s, at(t, "2022-11-06T05:20:00Z"), 1)
	if want := algo.Span(at(t, "2022-11-07T05:00:00Z") - at(t, "2022-11-06T05:20:00Z")); v.Admitted || v.RetryAfter() != want {
		t.Errorf("admitted %v, retry after %d; want false, %d", v.Admitted, v.RetryAfter(), want)
	}
	if v = p.Take(&s, at(t, "2022-11-07T05:00:00Z"), 1); !v.Admitted || v.Remaining() != 1 {
		t.Errorf("next day: admitted %v, remaining %d; want true, 1", v.Admitted, v.Remaining())
	}
}
