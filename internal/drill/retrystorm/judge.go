package retrystorm

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// Report is what a drill found.
type Report struct {
	Phases []PhaseReport `json:"phases"`
	Limit  string        `json:"limit"`
	Rate   int           `json:"offered_per_second"`
	// Problems is what did not come out as it should; empty if everything did.
	Problems []string `json:"problems"`

	options Options
	phases  []Phase
}

// PhaseReport is what became of the requests of the disturbed span: those first sent from
// the step until calm, at most two periods, which is also what is counted if nothing was
// refused. All that a request of the span brought about is counted, whenever.
type PhaseReport struct {
	Limiter string `json:"limiter"`
	Client  string `json:"client"`
	Step    string `json:"step"` // or none

	// Amplification is attempts per request.
	Amplification float64 `json:"amplification"`
	// P99 is the time from when a request was due until its client had the last answer.
	P99 float64 `json:"p99_ms"`
	// Calm is the time from the step to the last attempt that was refused, 0 if none was.
	Calm float64 `json:"calm_after_s"`
	// Refused is the share of the requests that were refused in the end.
	Refused float64 `json:"refused_pct"`

	RefusedFrom float64 `json:"refused_from_ms"` // from the step to the first refused attempt
	RefusedFor  float64 `json:"refused_for_ms"`  // from the first to the last of them
	Refusing    float64 `json:"refusing_ms"`     // hundredths of a second with a refused attempt
	Refusals    int     `json:"refusals"`        // refused attempts after the step
	Before      float64 `json:"refused_before_pct"`
	Late        float64 `json:"sent_late_ms"` // how late the load was at most, in the whole phase
	Requests    int     `json:"requests"`
	Attempts    int     `json:"attempts"`
	Worst       int     `json:"worst_50ms"`      // most attempts in 50 ms after the step
	Sent        int     `json:"requests_in_all"` // of the whole phase
	Failed      int     `json:"failed"`          // of these: without an answer, or with one of another kind
}

// The bounds of a drill that came out as it should.
const (
	stormAmplifies  = 1.5
	stormLasts      = 300 // ms
	budgetAmplifies = 1.1
	sameWithin      = 1.0 // points
	usualRefused    = 1.0 // per cent, before the step
	muchLate        = 50  // ms: the load was then not that of the schedule
	bearable        = 1.0 // per cent without an answer
)

// Judge says what each phase came to, and what should have come out otherwise. It knows
// nothing of limiters.
func Judge(o *Options, phases []Phase) *Report {
	rep := &Report{Limit: fmt.Sprintf("%d/%v", o.Limit.Count, o.Limit.Per), Rate: o.Rate, Phases: []PhaseReport{}, Problems: []string{}, options: *o, phases: phases}
	for i := range phases {
		rep.Phases = append(rep.Phases, judgePhase(&phases[i], disturbed(o.Limit.Per)))
	}
	for i := range rep.Phases {
		rep.bounds(&rep.Phases[i], o.Step < 0)
	}
	return rep
}

// judgePhase judges one phase: longest is that of the disturbed span.
func judgePhase(p *Phase, longest time.Duration) PhaseReport {
	rep := PhaseReport{Limiter: p.Limiter, Client: p.Client, Step: "none", Sent: len(p.Requests)}
	if p.Step != 0 {
		rep.Step = fmt.Sprintf("%+gms", float64(p.Step.Microseconds())/1000)
	}
	first, last := rep.refusals(p)
	end := p.Stepped + algo.Mono(longest)
	if rep.Refusals > 0 {
		rep.Calm = msOf(last-p.Stepped) / 1000
		rep.RefusedFrom, rep.RefusedFor = msOf(first-p.Stepped), msOf(last-first)
		end = min(end, last)
	}
	var took []algo.Mono
	refused, before, refusedBefore := 0, 0, 0
	for i := range p.Requests {
		r := &p.Requests[i]
		if last := r.last(); last != http.StatusOK && last != http.StatusTooManyRequests {
			rep.Failed++
		}
		if len(r.Attempts) > 0 {
			rep.Late = max(rep.Late, msOf(r.Attempts[0].Sent-r.Due))
		}
		switch {
		case r.Due < p.Stepped:
			before++
			if r.refused() && r.Attempts[0].Sent < p.Stepped {
				refusedBefore++
			}
		case r.Due <= end:
			rep.Requests++
			rep.Attempts += len(r.Attempts)
			took = append(took, r.Done-r.Due)
			if r.last() == http.StatusTooManyRequests {
				refused++
			}
		}
	}
	rep.Before = share(refusedBefore, before)
	if rep.Requests > 0 {
		rep.Amplification = rounded(float64(rep.Attempts) / float64(rep.Requests))
		rep.Refused = share(refused, rep.Requests)
		rep.P99 = msOf(p99(took))
	}
	for _, n := range bins(p, p.Stepped, p.Ended, bin, every) {
		rep.Worst = max(rep.Worst, n)
	}
	const hundredth = 10 * time.Millisecond
	for _, n := range bins(p, p.Stepped, p.Ended, hundredth, isRefused) {
		if n > 0 {
			rep.Refusing += float64(hundredth / time.Millisecond)
		}
	}
	return rep
}

// refused reports whether any attempt of a request was.
func (r *Request) refused() bool {
	return slices.ContainsFunc(r.Attempts, func(a Attempt) bool { return isRefused(&a) })
}

// refusals counts the refused attempts after the step, and finds the first and the last.
func (rep *PhaseReport) refusals(p *Phase) (first, last algo.Mono) {
	for i := range p.Requests {
		for _, a := range p.Requests[i].Attempts {
			if !isRefused(&a) || a.Sent < p.Stepped {
				continue
			}
			if rep.Refusals++; rep.Refusals == 1 {
				first = a.Sent
			}
			first, last = min(first, a.Sent), max(last, a.Sent)
		}
	}
	return first, last
}

// rounded is what is reported and judged: a ten-thousandth is no matter.
func rounded(x float64) float64 { return math.Round(x*1e4) / 1e4 }

func msOf(d algo.Mono) float64 { return math.Round(float64(d) / 1e6) }

func share(part, of int) float64 { return rounded(100 * float64(part) / float64(max(of, 1))) }

// p99 is the time within which 99 of a hundred were done. It sorts.
func p99(took []algo.Mono) algo.Mono {
	slices.Sort(took)
	return took[(len(took)*99+99)/100-1]
}

const bin = 50 * time.Millisecond

// bins counts the attempts that are wanted in each bin of a stretch.
func bins(p *Phase, from, to algo.Mono, width time.Duration, want func(*Attempt) bool) []int {
	counts := make([]int, max(0, (to-from)/algo.Mono(width)))
	for i := range p.Requests {
		for k := range p.Requests[i].Attempts {
			a := &p.Requests[i].Attempts[k]
			if n := (a.Sent - from) / algo.Mono(width); a.Sent >= from && n < algo.Mono(len(counts)) && want(a) {
				counts[n]++
			}
		}
	}
	return counts
}

func every(*Attempt) bool { return true }

func isRefused(a *Attempt) bool { return a.Status == http.StatusTooManyRequests }

func isAdmitted(a *Attempt) bool { return a.Status == http.StatusOK }

func (rep *Report) problem(format string, args ...any) {
	rep.Problems = append(rep.Problems, fmt.Sprintf(format, args...))
}

// bounds says what is out of bounds in a phase. A storm is only to be expected of a step
// back.
func (rep *Report) bounds(p *PhaseReport, back bool) {
	name := fmt.Sprintf("%s with %s, step %s", p.Limiter, p.Client, p.Step)
	if p.Late > muchLate {
		name += fmt.Sprintf(", on a busy machine that sent up to %.0f ms late", p.Late)
	}
	if share(p.Failed, p.Sent) > bearable {
		rep.problem("%s: %d of %d requests got no answer", name, p.Failed, p.Sent)
	}
	if p.Before > usualRefused {
		rep.problem("%s: %.1f %% refused before the step: this machine is busy, or the rate is too near to the limit", name, p.Before)
	}
	switch {
	case p.Limiter == Naive && p.Client == AtOnce && back:
		if p.Amplification < stormAmplifies {
			rep.problem("%s: %.2f attempts per request, expected at least %g", name, p.Amplification, stormAmplifies)
		}
		if p.RefusedFor < stormLasts {
			rep.problem("%s: refusals for %.0f ms, expected at least %d", name, p.RefusedFor, stormLasts)
		}
	case p.Limiter == Naive && p.Client == Budget:
		if p.Amplification > budgetAmplifies {
			rep.problem("%s: %.3f attempts per request, expected at most %g", name, p.Amplification, budgetAmplifies)
		}
	case p.Limiter == Ours && p.Step != "none":
		i := slices.IndexFunc(rep.Phases, func(q PhaseReport) bool { return q.Limiter == Ours && q.Client == p.Client && q.Step == "none" })
		if i >= 0 && math.Abs(p.Refused-rep.Phases[i].Refused) > sameWithin {
			rep.problem("%s: %.2f %% refused, %.2f %% without the step", name, p.Refused, rep.Phases[i].Refused)
		}
	}
}

// Held reports whether everything came out as it should.
func (rep *Report) Held() bool { return len(rep.Problems) == 0 }
