package escapement

import (
	"testing"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// Package time gives bounds that have already passed for the last day of a leap year
// beyond a zone's table of changes.
func TestCalendarOnTheLastDayOfALeapYear(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/New_York", "UTC"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		c := newCalendar(Day, zone)
		for day := time.Date(2040, 12, 29, 0, 0, 0, 0, zone); day.Year() < 2041 || day.YearDay() < 3; day = day.AddDate(0, 0, 1) {
			start, end := c.Around(algo.Store(day.Add(12 * time.Hour).UnixMicro()))
			if want := day.AddDate(0, 0, 1); start != algo.Store(day.UnixMicro()) || end != algo.Store(want.UnixMicro()) {
				t.Errorf("%s: window of %v is [%d, %d)", name, day, start, end)
			}
		}
	}
}
