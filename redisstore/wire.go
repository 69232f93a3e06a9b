package redisstore

import (
	"slices"
	"strconv"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// wire is a plan as the scripts read it. text names what a state depends on: it is kept
// in every record, and a record whose text differs is converted before it is judged.
// What a state does not depend on, such as the count of a window, follows in numbers.
type wire struct {
	plan     *escapement.Plan
	kind     byte   // which script: b, p, f, s, r or l
	text     string // a letter and the first of the numbers
	numbers  []int64
	calendar algo.Calendar
	since    algo.Store // on the line, when it replaced another definition
}

// newWire is the wire of a plan that records adopt as of the call that meets them.
func newWire(p *escapement.Plan) *wire {
	n := p.Core().Numbers()
	w := &wire{plan: p, calendar: n.Calendar, since: algo.MaxInstant}
	per, count, most := int64(n.Per), n.Count, n.Most
	switch a := p.Core().Algorithm(); {
	case a == algo.TokenBucket || a == algo.GCRA:
		w.set('b', "b", 4, n.N, n.P, n.Full, int64(n.Tick))
	case a == algo.Pacing:
		w.set('p', "p", 4, n.N, n.P, n.Full, int64(n.Tick))
	case a == algo.SlidingWindow:
		w.set('s', "s", 2, per, int64(n.Tick), count, most)
	case a == algo.RollingWindow && n.Width > 0:
		w.set('r', "r", 3, per, int64(n.Width), n.Buckets, count)
	case a == algo.RollingWindow:
		w.set('l', "l", 2, per, count)
	case n.Calendar != nil:
		w.set('f', "c", 0, count, most)
		l := p.Limit()
		w.text = "c " + l.Align.String() + "@UTC"
		if l.Zone != nil {
			w.text = "c " + l.Align.String() + "@" + l.Zone.String()
		}
	case n.FirstUse:
		w.set('f', "u", 1, per, count, most)
	default:
		w.set('f', "f", 1, per, count, most)
	}
	return w
}

func (w *wire) set(kind byte, letter string, inText int, numbers ...int64) {
	w.kind, w.text = kind, letter
	w.numbers = append(w.numbers, numbers...)
	for _, n := range numbers[:inText] {
		w.text += " " + strconv.FormatInt(n, 10)
	}
}

// rolling reports whether the script sends a verdict instead of the state's words.
func (w *wire) rolling() bool { return w.kind == 'r' || w.kind == 'l' }

// all is the numbers with, for a calendar, the boundaries around an instant: of the
// window that holds it and of its neighbours.
func (w *wire) all(around algo.Store) []int64 {
	if w.calendar == nil {
		return w.numbers
	}
	start, end := w.calendar.Around(around)
	before, _ := w.calendar.Around(start - 1)
	_, after := w.calendar.Around(end)
	all := slices.Clip(w.numbers)
	for _, t := range [...]algo.Store{before, start, end, after} {
		all = append(all, int64(t))
	}
	return all
}
