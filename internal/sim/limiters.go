package sim

import (
	"slices"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/batch"
	"github.com/escapement-io/escapement/lease"
)

// begin dates a request when an instance first hears of it.
func (r *request) begin(now algo.Mono) {
	if r.leased.Cost == 0 {
		r.leased = lease.Request{Cost: r.cost, Since: now}
	}
}

// leased drives package lease.
type leased struct {
	*lease.Ledger
	count int64   // the limit
	told  []int64 // parts of it, in units, as the store told them
}

func (l *leased) admit(now algo.Mono, r *request) verdict {
	r.begin(now)
	a := l.Admit(now, &r.leased)
	v := verdict{admitted: a.Verdict == lease.Admitted, waits: a.Verdict == lease.Waiting,
		away: a.Verdict == lease.Unavailable || a.Fallback, stamp: a.Window, until: a.Until}
	if v.admitted && a.Fallback {
		v.part = l.Part()
	}
	return v
}

func send(a algo.Ask, ok bool) (func(*store) any, bool) {
	return func(s *store) any { return s.sync(&a) }, ok
}

func (l *leased) poll(now algo.Mono) (func(*store) any, bool)  { return send(l.Poll(now)) }
func (l *leased) leave(now algo.Mono) (func(*store) any, bool) { return send(l.Leave(now)) }
func (l *leased) absorb(now algo.Mono, reply any) {
	g := reply.(*algo.Grant)
	l.Absorb(now, g)
	if n := g.Share * l.count / 1_000_000; !slices.Contains(l.told, n) {
		l.told = append(l.told, n)
	}
}
func (l *leased) failed(now algo.Mono)    { l.Failed(now) }
func (l *leased) next() (algo.Mono, bool) { return l.Next() }

// delayed drives package batch.
type delayed struct{ *batch.Ledger }

func (l delayed) admit(now algo.Mono, r *request) verdict {
	r.begin(now)
	a := l.Admit(now, &batch.Request{Cost: r.cost, Since: r.leased.Since})
	return verdict{admitted: a.Verdict == batch.Admitted, waits: a.Verdict == batch.Waiting,
		away: a.Verdict == batch.Unavailable, stamp: int64(a.Window), until: a.Until}
}

func sendFlush(f algo.Flush, ok bool) (func(*store) any, bool) {
	return func(s *store) any { return s.flush(&f) }, ok
}

func (l delayed) poll(now algo.Mono) (func(*store) any, bool) { return sendFlush(l.Poll(now)) }
func (l delayed) leave(algo.Mono) (func(*store) any, bool)    { return sendFlush(l.Leave()) }
func (l delayed) absorb(now algo.Mono, reply any)             { l.Absorb(now, reply.(*algo.Flushed)) }
func (l delayed) failed(now algo.Mono)                        { l.Failed(now) }
func (l delayed) next() (algo.Mono, bool)                     { return l.Next() }

// exact asks the store about every request, on the record that leases use. It is driven
// beside the others and keeps to their way of answering: each call carries one request.
type exact struct {
	w *world
	n *node
}

func (e *exact) admit(_ algo.Mono, r *request) verdict {
	e.w.call(e.n, func(s *store) any { return s.sync(&algo.Ask{Exact: r.cost}) }, func(reply any) {
		g, ok := reply.(*algo.Grant)
		v := verdict{admitted: ok && g.Admitted, away: !ok}
		if v.admitted {
			v.stamp = int64(g.At) / int64(e.w.store.lease.Per)
			if width := int64(e.w.store.lease.Width); width > 0 {
				v.stamp = int64(g.At) / width
			}
		}
		e.w.book.decide(e.n, r, v)
	})
	r.queued = true
	e.w.book.waits()
	return verdict{elsewhere: true}
}

func (e *exact) poll(algo.Mono) (func(*store) any, bool)  { return nil, false }
func (e *exact) leave(algo.Mono) (func(*store) any, bool) { return nil, false }
func (e *exact) absorb(algo.Mono, any)                    {}
func (e *exact) failed(algo.Mono)                         {}
func (e *exact) next() (algo.Mono, bool)                  { return 0, false }
