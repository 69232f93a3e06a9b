package drill

import (
	"fmt"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

// Run is what was observed. Every instant is on the monotonic clock of the process that
// made the load, whose wall clock was left alone.
type Run struct {
	Limit  Limit
	Rate   int
	Phases []Phase
	Events []Seen // what the guard of the limiter's process reported
	// Wall is the wall clock of the limiter's process at instant 0 as it would be without
	// steps, in microseconds.
	Wall  int64
	Naive bool
}

// Phase is a stretch of load. All but the first begin with a change.
type Phase struct {
	Change  Change
	Applied algo.Mono // just before the clocks were changed, or the load began
	Asked   []Asked
}

// Asked is one request. It was decided at some moment from Sent to Answered.
type Asked struct {
	Sent, Answered algo.Mono
	Admitted       bool
	Recipes        uint8 // a bit for each recipe that admitted it
}

// at is the moment taken for that of the decision.
func (a *Asked) at() algo.Mono { return a.Sent + (a.Answered-a.Sent)/2 }

// Seen is a change of the clocks that a guard reported.
type Seen struct {
	Kind clock.Kind
	Size time.Duration
	At   algo.Mono
}

// Report is a run with its verdict.
type Report struct {
	Phases      []PhaseReport  `json:"phases"`
	Events      []EventReport  `json:"events"`
	FalseEvents int            `json:"false_events"`
	Naive       []RecipeReport `json:"naive,omitempty"`
	Limit       string         `json:"limit"`
	Rate        int            `json:"offered_per_second"`
	// Problems is what is out of bounds; empty if the limit held and every change was seen.
	Problems []string `json:"problems"`
}

// PhaseReport compares what a phase admitted with what is right.
type PhaseReport struct {
	Step     string  `json:"step"` // or another change; "none" for the first
	Offered  int     `json:"offered"`
	Admitted int     `json:"admitted"`
	Right    int     `json:"right"`
	Ratio    float64 `json:"ratio"` // admitted to right
}

// EventReport is a reported change of the clocks. SeenAfterMS counts from just before the
// change was made.
type EventReport struct {
	Kind        clock.Kind `json:"kind"`
	SizeMS      float64    `json:"size_ms"`
	SeenAfterMS float64    `json:"seen_after_ms"`
}

// RecipeReport is a recipe on the same load. What is right for it is what itself admits on a
// clock that does not step.
type RecipeReport struct {
	Name   string        `json:"name"`
	About  string        `json:"about"`
	Phases []PhaseReport `json:"phases"`
}

// The bounds of a run without problems.
const (
	minRatio, maxRatio = 0.99, 1.01
	sizeWithin         = time.Millisecond
	seenWithin         = 200 * time.Millisecond
)

// Judge says what the exact bucket admits of the same requests in each phase, and which
// change each event reports. Time that the machine slept has truly passed: the bucket earns
// in it.
func Judge(r *Run) *Report {
	rep := &Report{Limit: r.Limit.String(), Rate: r.Rate, Events: []EventReport{}, Problems: []string{}}
	right := exact{Limit: r.Limit}
	slept := time.Duration(0)
	for i := range r.Phases {
		slept += r.Phases[i].Change.Suspend
		p := newPhase(&r.Phases[i],
			func(a *Asked) bool { return a.Admitted },
			func(a *Asked) bool { return right.take(int64(a.at()) + int64(slept)) })
		rep.Phases = append(rep.Phases, p)
		if p.Ratio < minRatio || p.Ratio > maxRatio {
			rep.problem("phase %d (%s): %d admitted, %d are right", i, p.Step, p.Admitted, p.Right)
		}
	}
	rep.events(r)
	if r.Naive {
		rep.naive(r)
	}
	return rep
}

func (rep *Report) problem(format string, args ...any) {
	rep.Problems = append(rep.Problems, fmt.Sprintf(format, args...))
}

func newPhase(p *Phase, admitted, right func(*Asked) bool) PhaseReport {
	r := PhaseReport{Step: p.Change.String(), Offered: len(p.Asked)}
	for i := range p.Asked {
		if admitted(&p.Asked[i]) {
			r.Admitted++
		}
		if right(&p.Asked[i]) {
			r.Right++
		}
	}
	switch {
	case r.Right > 0:
		r.Ratio = float64(r.Admitted) / float64(r.Right)
	case r.Admitted == 0:
		r.Ratio = 1
	default:
		r.Ratio = float64(r.Admitted) + 1
	}
	return r
}

// events gives each change the first event after it and before the next that has its kind,
// sign and size. What is left over was reported without a cause.
func (rep *Report) events(r *Run) {
	found := make([]bool, len(r.Phases))
	for _, e := range r.Events {
		i := phaseAt(r.Phases, e.At)
		p := &r.Phases[i]
		after := time.Duration(e.At - p.Applied)
		rep.Events = append(rep.Events, EventReport{e.Kind, ms(e.Size), ms(after)})
		kind, size, wanted := p.Change.event()
		if !wanted || found[i] || e.Kind != kind || (e.Size-size).Abs() > sizeWithin {
			rep.FalseEvents++
			rep.problem("event %s of %v, %v after phase %d (%v) began, has no cause", e.Kind, e.Size, after.Round(time.Millisecond), i, p.Change)
			continue
		}
		if found[i] = true; after > seenWithin {
			rep.problem("%v was seen after %v; %v are allowed", p.Change, after.Round(time.Millisecond), seenWithin)
		}
	}
	for i := range r.Phases {
		if _, _, wanted := r.Phases[i].Change.event(); wanted && !found[i] {
			rep.problem("%v was not seen", r.Phases[i].Change)
		}
	}
}

// phaseAt is the last phase that began before an instant, or the first.
func phaseAt(phases []Phase, at algo.Mono) int {
	i := 0
	for i+1 < len(phases) && phases[i+1].Applied <= at {
		i++
	}
	return i
}

// naive compares the recipes with themselves on a clock that does not step.
func (rep *Report) naive(r *Run) {
	for n, twin := range recipes(r.Limit) {
		rr := RecipeReport{Name: twin.name, About: Recipes[twin.name]}
		slept := time.Duration(0)
		for i := range r.Phases {
			slept += r.Phases[i].Change.Suspend
			rr.Phases = append(rr.Phases, newPhase(&r.Phases[i],
				func(a *Asked) bool { return a.Recipes>>n&1 == 1 },
				func(a *Asked) bool { return twin.Take(r.Wall + (int64(a.at())+int64(slept))/1000) }))
		}
		rep.Naive = append(rep.Naive, rr)
	}
}

// Held reports whether nothing is out of bounds.
func (rep *Report) Held() bool { return len(rep.Problems) == 0 }
