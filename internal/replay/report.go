package replay

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/replay/trace"
)

// Report is what the limits would have done.
type Report struct {
	Input Input       `json:"input"`
	Sets  []SetReport `json:"sets"`

	flow *flow
}

// SetReport is what came of one set of limits.
type SetReport struct {
	Name         string        `json:"name"`
	Admitted     int64         `json:"admitted"` // requests
	Refused      int64         `json:"refused"`
	RefusedUnits int64         `json:"refused_units"`
	Peak         Peak          `json:"peak_admitted_per_second"`
	Limits       []LimitReport `json:"limits"`
}

// LimitReport is one limit's part in it.
type LimitReport struct {
	Name         string      `json:"name"`
	Algorithm    string      `json:"algorithm"`
	Count        int64       `json:"count"` // as enforced
	Per          string      `json:"per,omitempty"`
	Capacity     int64       `json:"capacity"`
	Shadow       bool        `json:"shadow,omitempty"`
	Key          []string    `json:"key"` // the fields it counts by
	Keys         int64       `json:"keys"`
	KeysRefused  int64       `json:"keys_refused"`
	Admitted     int64       `json:"admitted"`
	Refused      int64       `json:"refused"` // requests that this limit had no room for
	RefusedUnits int64       `json:"refused_units"`
	First        *Refusal    `json:"first_refusal"`
	Last         *Refusal    `json:"last_refusal"`
	Least        *Tightest   `json:"least_remaining"`
	Delayed      int64       `json:"delayed"`
	LongestDelay string      `json:"longest_delay,omitempty"`
	Enough       *Enough     `json:"enough"` // null where it is not known
	Worst        []KeyReport `json:"worst_keys"`

	perSecond float64
}

// Refusal is a request that was refused.
type Refusal struct {
	Time string `json:"time"`
	Line int64  `json:"line"`
	Key  string `json:"key"`

	at  moment
	key uint32
}

// Tightest is the admitted request that left the least.
type Tightest struct {
	Remaining   int64   `json:"remaining"`
	Utilisation float64 `json:"utilisation"` // of the capacity, 0 to 1
	Time        string  `json:"time"`
	Line        int64   `json:"line"`
	Key         string  `json:"key"`

	at  moment
	key uint32
}

// Enough is the least enforced value that would have refused nobody, everything else
// unchanged and if no other limit had refused either.
type Enough struct {
	Field string `json:"field"` // count or burst
	Value int64  `json:"value"`
}

// KeyReport is what came of one key.
type KeyReport struct {
	Key      string `json:"key"`
	Refused  int64  `json:"refused"`
	Admitted int64  `json:"admitted"`

	number uint32
}

func (p *replay) report(shape *trace.Shape, end trace.End) *Report {
	p.in.Format, p.in.Lines = shape.Format.String(), end.Lines
	p.in.Last = p.last.time
	if p.began {
		p.in.From, p.in.To = instant(p.in.First), instant(p.in.Last)
	}
	p.in.BackMost = span(p.in.back)
	if end.Damage != nil {
		p.in.Damage = end.Damage.Error()
	}
	for _, k := range p.keys {
		p.in.Keys = max(p.in.Keys, int64(len(k.names)))
	}
	p.in.BrokenAt, p.in.OrderAt = orEmpty(p.in.BrokenAt), orEmpty(p.in.OrderAt)
	for i := range p.flow.peaks {
		if p.flow.peaks[i].Units > 0 {
			p.flow.peaks[i].At = instant(algo.Store(p.flow.peaks[i].second) * 1_000_000)
		}
	}
	p.in.Peak = p.flow.peaks[0]
	r := &Report{Input: p.in, flow: p.flow}
	for i, s := range p.sets {
		out := SetReport{Name: s.name, Admitted: s.admitted, Refused: s.refused, RefusedUnits: s.units, Peak: p.flow.peaks[i+1]}
		for _, l := range s.limits {
			out.Limits = append(out.Limits, p.limit(l))
		}
		r.Sets = append(r.Sets, out)
	}
	return r
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func (p *replay) limit(l *limitRun) LimitReport {
	names := p.keys[l.key].names
	count, per := l.core.Rate()
	r := LimitReport{Name: l.name, Algorithm: l.core.Algorithm().String(), Count: count, Capacity: l.core.Capacity(),
		Shadow: l.shadow, Key: orEmpty(p.layout.Keys[l.key]), Keys: int64(len(names)),
		Admitted: l.admitted, Refused: l.refused, RefusedUnits: l.units, Delayed: l.delayed}
	if per > 0 {
		r.Per = span(per)
		r.perSecond = float64(count) / (float64(per) / 1e6)
	}
	if l.longest > 0 {
		r.LongestDelay = span(l.longest)
	}
	if l.refused > 0 {
		r.First, r.Last = l.first.named(names), l.last.named(names)
	}
	if l.least.Remaining != math.MaxInt64 {
		t := l.least
		t.Time, t.Line, t.Key = instant(t.at.time), t.at.line, names[t.key]
		t.Utilisation = 1 - float64(t.Remaining)/float64(r.Capacity)
		r.Least = &t
	}
	if !l.unknown && l.wanted > 0 {
		r.Enough = &Enough{Field: "count", Value: l.wanted}
		if l.credits > 0 {
			r.Enough.Field = "burst"
		}
	}
	r.KeysRefused, r.Worst = worst(l, len(names), p.opts.Top)
	for i := range r.Worst {
		r.Worst[i].Key = names[r.Worst[i].number]
	}
	return r
}

func (r *Refusal) named(names []string) *Refusal {
	return &Refusal{Time: instant(r.at.time), Line: r.at.line, Key: names[r.key]}
}

// worst finds the keys with the most refusals.
func worst(l *limitRun, n, top int) (refused int64, keys []KeyReport) {
	h := leastFirst{}
	for i := range uint32(n) {
		r := l.recs.at(i)
		if r.refused == 0 {
			continue
		}
		refused++
		k := KeyReport{Refused: r.refused, Admitted: r.admitted, number: i}
		if len(h) < top {
			heap.Push(&h, k)
		} else if top > 0 && h.less(h[0], k) {
			h[0] = k
			heap.Fix(&h, 0)
		}
	}
	slices.SortFunc(h, func(a, b KeyReport) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.number, b.number))
	})
	return refused, h
}

// leastFirst is a heap with the key that suffers least on top.
type leastFirst []KeyReport

func (h leastFirst) less(a, b KeyReport) bool {
	return a.Refused < b.Refused || a.Refused == b.Refused && a.number > b.number
}

func (h leastFirst) Len() int           { return len(h) }
func (h leastFirst) Less(i, j int) bool { return h.less(h[i], h[j]) }
func (h leastFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *leastFirst) Push(x any)        { *h = append(*h, x.(KeyReport)) }
func (h *leastFirst) Pop() any {
	x := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return x
}

// Span is how long the trace lasted.
func (in *Input) Span() time.Duration { return time.Duration(in.Last-in.First) * time.Microsecond }
