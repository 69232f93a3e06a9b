package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/replay/trace"
)

// Set is a configuration to try: limits that are charged together or not at all.
type Set struct {
	Name   string
	Limits []Counted
}

// Options say how a trace is replayed.
type Options struct {
	Top      int                     // keys to name per limit
	Strict   bool                    // stop at the first line that is broken or out of order
	Progress func(read, lines int64) // told now and then, from the calling goroutine; may be nil
}

// moment is when and where in the trace something happened.
type moment struct {
	time algo.Store
	line int64
}

// replay is a trace under way.
type replay struct {
	layout  *trace.Layout
	opts    Options
	keys    []*keys
	sets    []*setRun
	numbers []uint32 // of the entry's keys

	last  moment // the latest so far
	began bool
	in    Input
	flow  *flow
}

// ErrStrict is wrapped by the error that stops a strict replay.
var ErrStrict = errors.New("stopped, as asked")

// Run replays a trace through each of the sets by itself.
func Run(ctx context.Context, r *trace.Reader, layout *trace.Layout, sets []Set, opts Options) (*Report, error) {
	p := &replay{layout: layout, opts: opts, numbers: make([]uint32, len(layout.Keys)), flow: newFlow(len(sets))}
	for range layout.Keys {
		p.keys = append(p.keys, newKeys())
	}
	for i := range sets {
		p.sets = append(p.sets, newSetRun(&sets[i]))
	}
	end, err := r.Read(ctx, layout, p.block)
	if err != nil {
		return nil, err
	}
	if end.Damage != nil && opts.Strict {
		return nil, fmt.Errorf("replay: after line %d: %w: %w", end.Lines, end.Damage, ErrStrict)
	}
	p.flow.end()
	return p.report(r.Shape, end), nil
}

// block decides on the entries of a block, in order.
func (p *replay) block(b *trace.Block, read int64) error {
	p.in.broken(b)
	if p.opts.Strict && b.Faults > 0 {
		return fmt.Errorf("replay: line %d: %v: %w", b.Broken[0].Line, b.Broken[0].Fault, ErrStrict)
	}
	width := len(p.layout.Keys)
	for i := range b.Entries {
		e := &b.Entries[i]
		at := moment{algo.Store(e.At), b.Number(e)}
		if at.time < p.last.time && p.began {
			if p.opts.Strict {
				return fmt.Errorf("replay: line %d: %s before line %d: %w", at.line, span(algo.Span(p.last.time-at.time)), p.last.line, ErrStrict)
			}
			p.in.outOfOrder(at, p.last)
			at.time = p.last.time
		} else {
			p.last = at
		}
		if !p.began {
			p.in.First, p.began = at.time, true
		}
		for k := range width {
			n, isNew := p.keys[k].number(b.Keys[i*width+k])
			if isNew {
				p.grow(k)
			}
			p.numbers[k] = n
		}
		p.flow.second(at.time)
		p.flow.offered(e.Cost)
		for j, s := range p.sets {
			if s.decide(p.numbers, at, e.Cost) {
				p.flow.admitted(j, e.Cost)
			}
		}
	}
	p.in.Requests += int64(len(b.Entries))
	if p.opts.Progress != nil {
		p.opts.Progress(read, b.First+b.Lines-1)
	}
	return nil
}

// grow makes room for a new key under every limit that counts by its kind.
func (p *replay) grow(kind int) {
	n := len(p.keys[kind].names)
	for _, s := range p.sets {
		for _, l := range s.limits {
			if l.key == kind {
				l.recs.grow(n)
			}
		}
	}
}

// setRun is one set under way.
type setRun struct {
	name     string
	limits   []*limitRun
	admitted int64 // requests
	refused  int64
	units    int64 // refused
}

func newSetRun(s *Set) *setRun {
	r := &setRun{name: s.Name}
	for _, c := range s.Limits {
		r.limits = append(r.limits, newLimitRun(c))
	}
	return r
}

// decide charges the request to every limit, or to none: shadows refuse nobody, and are
// charged if they have room.
func (s *setRun) decide(numbers []uint32, at moment, cost int64) bool {
	admitted := true
	if len(s.limits) == 1 && !s.limits[0].shadow {
		admitted = s.limits[0].take(numbers[s.limits[0].key], at, cost)
	} else {
		for _, l := range s.limits {
			n := numbers[l.key]
			l.want(n, at.time, cost)
			st := l.state(n)
			if v := l.core.Peek(&st, at.time, cost); !v.Admitted {
				l.refuse(n, cost, at)
				admitted = admitted && l.shadow
			}
		}
		for _, l := range s.limits {
			if admitted {
				l.charge(numbers[l.key], at, cost)
			}
		}
	}
	if admitted {
		s.admitted++
	} else {
		s.refused++
		s.units += cost
	}
	return admitted
}

// take decides for a limit that stands alone.
func (l *limitRun) take(n uint32, at moment, cost int64) bool {
	l.want(n, at.time, cost)
	st := l.state(n)
	v := l.core.Take(&st, at.time, cost)
	if !v.Admitted {
		l.refuse(n, cost, at)
		return false
	}
	l.keep(n, &st)
	l.admit(n, &v, at)
	return true
}

// charge takes what was found to fit; a shadow may have no room.
func (l *limitRun) charge(n uint32, at moment, cost int64) {
	st := l.state(n)
	if v := l.core.Take(&st, at.time, cost); v.Admitted {
		l.keep(n, &st)
		l.admit(n, &v, at)
	}
}
