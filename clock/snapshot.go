package clock

import (
	"time"

	"github.com/escapement-io/escapement/algo"
)

// Tally counts what a guard has seen since it was made.
type Tally struct {
	Checks        uint64        `json:"checks"`
	Unclear       uint64        `json:"unclear"`
	StepsForward  uint64        `json:"steps_forward"`
	StepsBackward uint64        `json:"steps_backward"`
	LastStep      time.Duration `json:"last_step_ns"`
	Suspends      uint64        `json:"suspends"`
	Suspended     time.Duration `json:"suspended_ns"`
	Rebases       uint64        `json:"rebases"`
	Switches      uint64        `json:"switches"`
}

// Snapshot is the whole state of a guard at one moment, for metrics and for people.
type Snapshot struct {
	Now   algo.Wall `json:"now_unix_ns"`
	Bound Interval  `json:"bound"`
	// ErrorBound is the distance from Now to the farther edge of Bound; 0 if not Bounded.
	ErrorBound time.Duration `json:"error_bound_ns"`
	Bounded    bool          `json:"bounded"`
	Epoch      uint32        `json:"epoch"`
	// SlewPPM is the rate at which guarded time differs from the monotonic clock now.
	SlewPPM float64 `json:"slew_ppm"`
	// GuardMinusWall is guarded time minus the raw wall clock at the last clear check.
	GuardMinusWall time.Duration `json:"guard_minus_wall_ns"`
	Votes          int           `json:"votes"` // independent references in agreement
	Tally          Tally         `json:"tally"`
	LastEvent      *Event        `json:"last_event,omitempty"`
	Kernel         KernelState   `json:"kernel"`
	// CountsSuspends is whether this machine has a clock by which a suspend can be told
	// from a step.
	CountsSuspends bool              `json:"counts_suspends"`
	References     []ReferenceStatus `json:"references"`
}

// ReferenceStatus is one reference as a guard sees it.
type ReferenceStatus struct {
	Name     string `json:"name"`
	Group    string `json:"group"`
	Followed bool   `json:"followed"`
	Agrees   bool   `json:"agrees"` // with the majority
	Known    bool   `json:"known"`  // the fields below hold
	// Offset is guarded time minus the reference.
	Offset time.Duration `json:"offset_ns"`
	Error  time.Duration `json:"error_ns"` // grown to this moment
	RTT    time.Duration `json:"rtt_ns"`
	Age    time.Duration `json:"age_ns"`
	// Problem is why the last measurement gave nothing.
	Problem string `json:"problem,omitempty"`
}

// Snapshot returns the state at this moment. It asks the kernel, so it is not for every
// request.
func (g *Guard) Snapshot() Snapshot {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, m := g.read()
	b := g.held.Load().interval(m, int64(now))
	s := Snapshot{
		Now: now, Bound: b, Bounded: b.Bounded(), Epoch: g.Epoch(),
		GuardMinusWall: time.Duration(int64(now) - int64(m) - g.det.wallMinusMono),
		Votes:          g.con.votes, Tally: g.tally, LastEvent: g.last,
		Kernel: kernelOf(g.src), CountsSuspends: g.det.hasBoot,
	}
	if s.Bounded {
		s.ErrorBound = time.Duration(max(int64(b.Latest-now), int64(now-b.Earliest)))
	}
	if cur, _ := g.pace.Load().current(m); m < cur.end {
		s.SlewPPM = float64(cur.ppb) / 1000
	}
	for i, c := range g.cands {
		r := ReferenceStatus{Name: g.name(i), Group: c.group, Followed: g.con.quorum && i == g.choose.current,
			Agrees: g.con.quorum && g.con.member[i], Known: c.known}
		if c.known {
			r.Offset = time.Duration(int64(now) - int64(m) - line(c.sample))
			r.Error = time.Duration(errAt(c.sample, m, g.drift()))
			r.RTT, r.Age = c.sample.RTT, time.Duration(m-c.sample.At)
		}
		if err := g.failures[i]; err != nil {
			r.Problem = err.Error()
		}
		s.References = append(s.References, r)
	}
	return s
}
