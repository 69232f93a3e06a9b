package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/clock/ntp"
)

// tolerated is the offset at which a clock.Monitor alarms unless told otherwise.
const tolerated = 100 * time.Millisecond

// measureWithin is how long one measurement may take.
const measureWithin = 8 * time.Second

// measure is this host's raw wall clock against another clock, the best of eight exchanges.
func measure(ctx context.Context, name string, c clock.StoreClock) Offset {
	m, err := clock.NewMonitor(clock.MonitorConfig{Name: name, Clock: c, Limit: tolerated})
	if err != nil {
		return Offset{Name: name, Failed: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, measureWithin)
	defer cancel()
	s, err := m.Measure(ctx)
	if err != nil {
		if inner := errors.Unwrap(err); inner != nil {
			err = inner // the name is said beside it
		}
		return Offset{Name: name, Failed: plain(err)}
	}
	return Offset{Name: name, Offset: s.Offset, Error: s.Error}
}

func measureNTP(ctx context.Context, server string) Offset {
	ref := ntp.Server(server)
	o := Offset{Name: ref.Name()}
	s, err := ref.Measure(ctx)
	if err != nil {
		o.Failed = plain(err)
		return o
	}
	offset, read := clock.Offset(s)
	if !read {
		o.Failed = clock.ErrUnreadable.Error()
		return o
	}
	o.Offset, o.Error = offset, s.Err
	return o
}

// plain is an error on one line.
func plain(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// exact is a length of time to the microsecond or the tenth of a millisecond.
func exact(d time.Duration) string {
	if d.Abs() >= time.Second {
		return fmt.Sprintf("%.4f s", d.Seconds())
	}
	return fmt.Sprintf("%.3f ms", float64(d)/1e6)
}

// relation is an offset in words.
func (o Offset) relation() string {
	way := "ahead of"
	if o.Offset < 0 {
		way = "behind"
	}
	return fmt.Sprintf("this host is %s %s %s, to within ± %s", exact(o.Offset.Abs()), way, o.Name, exact(o.Error))
}

func (o Offset) judge(why, fix string) verdict {
	switch clock.Judge(o.Offset, o.Error, tolerated) {
	case clock.Good:
		return ok("%s", o.relation())
	case clock.Uncertain:
		return unknown("%s; whether that is beyond %s cannot be told over this network", o.relation(), span(tolerated))
	case clock.Bad:
	}
	return verdict{Fail, o.relation() + "; " + why, fix}
}

func storeOffset(f *Facts) verdict {
	o := f.Store
	switch {
	case o == nil:
		return unknown("no store was named; give --redis its URL")
	case o.Failed != "":
		return verdict{Fail, fmt.Sprintf("%s could not be asked for its time: %s. Limits that are kept there follow their on_failure until it can", o.Name, o.Failed),
			"check address, password and network from this host:\nredis-cli -u URL TIME"}
	}
	return o.judge(
		"limits kept in the store go by its clock and are not harmed, but window ends, reset times and logs of this host name other moments than the store's, "+
			"and it cannot stand in for the store",
		"correct the clock that is wrong; on the host of either, chronyc tracking shows its distance to its sources, and\nchronyc makestep   # sets it once, now")
}

func ntpOffset(f *Facts) verdict {
	var vs []verdict
	for i, o := range f.NTP {
		if o.Failed != "" {
			vs = append(vs, verdict{Warning, o.Name + ": " + o.Failed, "open UDP port 123 to it, or name another server with --ntp"})
			continue
		}
		vs = append(vs, o.judge(
			"calendar windows and logs name the wrong moment by as much",
			"chronyc makestep   # sets the clock once, now\nand see to it that a time daemon keeps it: "+strings.ReplaceAll(chronyLines, "\n", "; ")))
		for _, p := range f.NTP[:i] {
			if apart := (p.Offset - o.Offset).Abs(); p.Failed == "" && apart > p.Error+o.Error {
				vs = append(vs, verdict{Warning, fmt.Sprintf("%s and %s differ by %s, more than both their errors: one of them is wrong", p.Name, o.Name, exact(apart)),
					"ask a third server: --ntp HOST --ntp HOST --ntp HOST"})
			}
		}
	}
	return all(unknown("no NTP server was named; give --ntp one or more"), vs...)
}
