package doctor

import (
	"time"

	"github.com/escapement-io/escapement/clock"
)

// Facts is everything the checks are told. The zero value knows nothing.
type Facts struct {
	Kernel         clock.KernelState
	ClockSource    string   // in use by the kernel; empty if it does not tell
	ClockSources   []string // those it could use
	ProcessesKnown bool     // whether Daemons says anything
	Daemons        []Process
	Config         Configuration
	Container      Container
	Machine        Machine
	Watch          *Watch   // nil: not watched
	Store          *Offset  // nil: not asked for
	NTP            []Offset // empty: not asked for
	Needs          []Need   // empty and NeedsKnown: no limit has an emission interval
	NeedsKnown     bool
	Fleet          []Instance
}

// Process is a running program that sets the clock.
type Process struct {
	Daemon string   // chronyd, ntpd, systemd-timesyncd, ...
	Args   []string // without the program
}

// Configuration is what the files of the time daemons say. A nil daemon has no file.
type Configuration struct {
	Chrony    *Chrony
	Ntpd      *Ntpd
	Timesyncd *Timesyncd
	Problems  []string // with the place
}

// Place is a line of a file.
type Place struct {
	File string
	Line int
}

// TimeSource is where a daemon takes its time from.
type TimeSource struct {
	Place
	Kind  string // server, pool, peer, refclock
	Name  string
	Count int // how many servers that is at most
}

// Container says whether this process runs in one.
type Container struct {
	Known       bool
	Kind        string // docker, kubernetes, podman, lxc, ...; empty: no sign of one
	MaySetClock bool   // it has CAP_SYS_TIME
	Quota       string // cgroup quota, such as "0.5 processors"; empty: none or not known
}

// Machine says what the kernel runs on.
type Machine struct {
	Known      bool
	Hypervisor string   // kvm, vmware, ...; empty: no sign of one
	HostClocks []string // devices that give the host's clock, such as /dev/ptp0
}

// Watch is what was seen while the clocks were watched.
type Watch struct {
	For    time.Duration
	Tally  clock.Tally
	Boot   bool // suspends could be told from steps
	Events []clock.Event
	Failed string // why it could not be
}

// Offset is a measurement of this host's raw wall clock against another clock.
type Offset struct {
	Name   string
	Offset time.Duration // this host minus the other; positive: this host is ahead
	Error  time.Duration
	Failed string // why there is no measurement
}

// OffsetRow is an Offset in the report.
type OffsetRow struct {
	Name     string   `json:"name"`
	OffsetMS *float64 `json:"offset_ms"` // this host minus the other; null: not measured
	ErrorMS  *float64 `json:"error_ms"`
	Problem  string   `json:"problem,omitempty"`
}

func (f *Facts) offsets() []Offset {
	var list []Offset
	if f.Store != nil {
		list = append(list, *f.Store)
	}
	return append(list, f.NTP...)
}

func (f *Facts) offsetRows() []OffsetRow {
	var rows []OffsetRow
	for _, o := range f.offsets() {
		r := OffsetRow{Name: o.Name, Problem: o.Failed}
		if o.Failed == "" {
			r.OffsetMS, r.ErrorMS = millis(o.Offset), millis(o.Error)
		}
		rows = append(rows, r)
	}
	return rows
}

func millis(d time.Duration) *float64 {
	ms := float64(d) / float64(time.Millisecond)
	return &ms
}
