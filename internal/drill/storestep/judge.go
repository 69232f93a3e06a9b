package storestep

import (
	"cmp"
	"slices"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// Asked is one decision, on the monotonic clock of the process that made the load.
type Asked struct {
	Sent, Answered algo.Mono
	Admitted       bool
	Failed         bool // the store did not decide
	Unknown        bool // of these: it may have charged

	at algo.Store // of the decision, on the store's line
}

// Mark is something that happened during the load.
type Mark struct {
	Name string
	At   algo.Mono
}

// Report is what a drill found.
type Report struct {
	Admitted int64   `json:"admitted"`
	Right    float64 `json:"right"` // the burst and what the rate gives in the time of the run
	Ratio    float64 `json:"ratio"`
	// LongestGap is the longest time between two admissions, less the longest between two
	// decisions, which no limiter can be blamed for.
	LongestGap float64   `json:"longest_gap_ms"`
	Decisions  int       `json:"decisions"`
	Failed     int       `json:"failed"`
	Unknown    int       `json:"unknown"` // of these: sent and not answered
	Instances  int       `json:"instances"`
	Naive      bool      `json:"naive,omitempty"`
	Attempt    int       `json:"attempt"`
	Steps      []string  `json:"steps"`
	Seen       uint64    `json:"steps_seen"` // by the first instance
	Error      float64   `json:"error_ms"`   // e, as the first instance measured it
	Failover   *Failover `json:"failover,omitempty"`
	Problems   []string  `json:"problems"`

	asked   []Asked
	marks   []Mark
	options Options
}

// judge compares decisions with what is right for a bucket that was full when the first
// was asked for. It knows nothing of the limiter.
func judge(count, burst int64, per time.Duration, asked []Asked) *Report {
	asked = sortedByAnswer(asked)
	r := &Report{}
	var decided, admitted spread
	for _, a := range asked {
		r.Decisions++
		if a.Failed {
			r.Failed++
			if a.Unknown {
				r.Unknown++
			}
			continue
		}
		decided.add(a.Answered)
		if a.Admitted {
			r.Admitted++
			admitted.add(a.Answered)
		}
	}
	if decided.n == 0 {
		return r
	}
	admitted.add(decided.last)
	first := asked[0].Sent
	for _, a := range asked {
		first = min(first, a.Sent)
	}
	r.Right = float64(burst) + float64(count)*float64(decided.last-first)/float64(per)
	if r.Right > 0 {
		r.Ratio = float64(r.Admitted) / r.Right
	}
	r.LongestGap = max(0, float64(admitted.gap-decided.gap)/1e6)
	return r
}

// spread keeps the longest time between two instants that follow each other.
type spread struct {
	n    int
	last algo.Mono
	gap  algo.Mono
}

func (s *spread) add(t algo.Mono) {
	if s.n > 0 {
		s.gap = max(s.gap, t-s.last)
	}
	s.n, s.last = s.n+1, t
}

func sortedByAnswer(asked []Asked) []Asked {
	asked = slices.Clone(asked)
	slices.SortFunc(asked, func(a, b Asked) int { return cmp.Compare(a.Answered, b.Answered) })
	return asked
}
