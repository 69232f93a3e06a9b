package replay

import (
	"slices"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/plot"
)

// maxSteps bounds the series for pictures: a day in seconds fits; longer traces have
// wider steps.
const maxSteps = 1 << 17

// flow is units per second over the trace: what was offered, and what each set admitted.
type flow struct {
	current int64 // second since 1970
	began   bool
	now     []int64 // units in it: offered, then admitted by each set
	peaks   []Peak

	start, width int64     // of the series, seconds
	steps        [][]int64 // units per step, in the order of now
}

// Peak is the busiest second.
type Peak struct {
	Units int64  `json:"units"`
	At    string `json:"at"`

	second int64
}

func newFlow(sets int) *flow {
	return &flow{now: make([]int64, sets+1), peaks: make([]Peak, sets+1), steps: make([][]int64, sets+1), width: 1}
}

func (f *flow) offered(units int64) { f.now[0] += units }

func (f *flow) admitted(set int, units int64) { f.now[set+1] += units }

// second begins the second of an instant if it is not the current one. Instants do not
// go back.
func (f *flow) second(at algo.Store) {
	s := int64(at) / 1_000_000
	if f.began && s == f.current {
		return
	}
	if f.began {
		f.end()
	} else {
		f.start, f.began = s, true
	}
	f.current = s
}

// end closes the current second.
func (f *flow) end() {
	if !f.began {
		return
	}
	i := (f.current - f.start) / f.width
	for i >= maxSteps {
		f.coarsen()
		i = (f.current - f.start) / f.width
	}
	for j, units := range f.now {
		if units > f.peaks[j].Units {
			f.peaks[j] = Peak{Units: units, second: f.current}
		}
		s := f.steps[j]
		if grow := int(i) + 1 - len(s); grow > 0 {
			s = append(slices.Grow(s, grow), make([]int64, grow)...)
		}
		s[i] += units
		f.steps[j] = s
	}
	clear(f.now)
}

// coarsen joins steps by twos.
func (f *flow) coarsen() {
	f.width *= 2
	for j, s := range f.steps {
		half := s[:(len(s)+1)/2]
		for i := range half {
			sum := s[2*i]
			if 2*i+1 < len(s) {
				sum += s[2*i+1]
			}
			half[i] = sum
		}
		f.steps[j] = half
	}
}

// maxPoints is what a picture shows: more could not be told apart.
const maxPoints = 1200

// Chart is what was offered and admitted per second. The rate of a limit is drawn where
// all requests were counted together, so that it can be compared.
func (r *Report) Chart() *plot.Chart {
	c := &plot.Chart{Title: r.Input.File, X: "time (UTC)", Y: "units per second", Clock: true}
	f := r.flow
	for len(f.steps[0]) > maxPoints {
		f.coarsen()
	}
	names := []string{"offered"}
	for i := range r.Sets {
		name := "admitted"
		if len(r.Sets) > 1 {
			name += " by " + r.Sets[i].Name
		}
		names = append(names, name)
	}
	for j, name := range names {
		if len(f.steps[0]) == 0 {
			break
		}
		s := plot.Steps{Name: name}
		for i, units := range f.steps[j] {
			s.X = append(s.X, float64(f.start+int64(i)*f.width))
			s.Y = append(s.Y, float64(units)/float64(f.width))
		}
		c.Steps = append(c.Steps, s)
	}
	for i := range r.Sets {
		for _, l := range r.Sets[i].Limits {
			if l.Keys == 1 && l.perSecond > 0 {
				c.Levels = append(c.Levels, plot.Level{Name: l.Name, Y: l.perSecond})
			}
		}
	}
	return c
}
