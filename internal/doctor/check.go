package doctor

import (
	"fmt"
	"strings"
	"time"
)

// Status is the outcome of a check.
type Status string

// The statuses, from best to worst. Warning and Fail are findings.
const (
	OK      Status = "ok"
	Unknown Status = "unknown" // the facts do not tell
	Warning Status = "warning" // it can go wrong
	Fail    Status = "fail"    // it is wrong
)

func (s Status) rank() int {
	switch s {
	case OK:
		return 0
	case Unknown:
		return 1
	case Warning:
		return 2
	case Fail:
		return 3
	}
	return 3
}

// Finding reports whether somebody should act.
func (s Status) Finding() bool { return s == Warning || s == Fail }

// Check is one question with its answer. Detail and Fix may have several lines.
type Check struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Detail string `json:"detail"` // what was found, and why it matters
	Fix    string `json:"fix"`    // the lines to change; empty without a finding
}

// Report is the outcome of all checks. The tables are there if they were asked for.
type Report struct {
	Checks     []Check       `json:"checks"`
	References []OffsetRow   `json:"references,omitempty"`
	Limits     []LimitRow    `json:"limits,omitempty"`
	Fleet      []InstanceRow `json:"fleet,omitempty"`
}

// Finding reports whether one of the checks found something.
func (r *Report) Finding() bool {
	for _, c := range r.Checks {
		if c.Status.Finding() {
			return true
		}
	}
	return false
}

// checks is every check there is, in the order of the report.
var checks = []struct {
	name  string
	judge func(*Facts) verdict
}{
	{"kernel-sync", kernelSync},
	{"kernel-error-bound", kernelErrorBound},
	{"clock-source", clockSource},
	{"time-daemon", timeDaemon},
	{"daemon-config", daemonConfig},
	{"daemon-may-step", daemonMayStep},
	{"daemon-slew-rate", daemonSlewRate},
	{"time-sources", timeSources},
	{"container", container},
	{"virtual-machine", virtualMachine},
	{"watched-steps", watchedSteps},
	{"watched-suspends", watchedSuspends},
	{"store-offset", storeOffset},
	{"ntp-offset", ntpOffset},
	{"limit-precision", limitPrecision},
	{"fleet-reach", fleetReach},
	{"fleet-state", fleetState},
	{"fleet-offset", fleetOffset},
	{"fleet-source", fleetSource},
}

// Names lists the checks in the order of the report.
func Names() []string {
	var names []string
	for _, c := range checks {
		names = append(names, c.name)
	}
	return names
}

// Judge runs every check on the facts.
func Judge(f *Facts) Report {
	r := Report{Limits: f.limitRows(), Fleet: f.fleetRows(), References: f.offsetRows()}
	for _, c := range checks {
		v := c.judge(f)
		if !v.status.Finding() {
			v.fix = ""
		}
		r.Checks = append(r.Checks, Check{c.name, v.status, v.detail, v.fix})
	}
	return r
}

// verdict is a check without its name.
type verdict struct {
	status      Status
	detail, fix string
}

func ok(format string, args ...any) verdict { return verdict{OK, fmt.Sprintf(format, args...), ""} }

func unknown(format string, args ...any) verdict {
	return verdict{Unknown, fmt.Sprintf(format, args...), ""}
}

// all is several verdicts as one: the worst status, every line of detail, and the remedies
// without repetition. Without any it is the verdict otherwise.
func all(otherwise verdict, vs ...verdict) verdict {
	if len(vs) == 0 {
		return otherwise
	}
	out := verdict{status: OK}
	var details, fixes []string
	seen := map[string]bool{}
	for _, v := range vs {
		if v.status.rank() > out.status.rank() {
			out.status = v.status
		}
		details = append(details, v.detail)
		if v.fix != "" && !seen[v.fix] {
			seen[v.fix] = true
			fixes = append(fixes, v.fix)
		}
	}
	out.detail, out.fix = strings.Join(details, "\n"), strings.Join(fixes, "\n")
	return out
}

// slewing is how long an error takes to be slewed away at a rate, for people.
func slewing(err time.Duration, ppm float64) string {
	d := time.Duration(float64(err) / ppm * 1e6)
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%.0f hours", d.Hours())
	case d >= 2*time.Minute:
		return fmt.Sprintf("%.0f minutes", d.Minutes())
	}
	return fmt.Sprintf("%.0f seconds", d.Seconds())
}

// span is a length of time for people: three digits, with a sign only if it is negative.
func span(d time.Duration) string {
	switch a := d.Abs(); {
	case a >= 100*time.Second:
		return d.Round(time.Second).String()
	case a >= time.Second:
		return fmt.Sprintf("%.4g s", d.Seconds())
	case a >= time.Millisecond:
		return fmt.Sprintf("%.3g ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.3g µs", float64(d)/1e3)
}
