package redisstore

import (
	"context"
	"fmt"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

var _ escapement.Lender = (*Store)(nil)

// Lend hands quota out in advance, on the record that exact claims of the limit use as
// well; see escapement.Lender. Up to 64 loans ride in one script, on a cluster those of one
// slot. A loan is sent at most once. It is of the newest plan of its limit's name; where
// that has other windows than the plan that the loan was made for, the loan is not run.
func (s *Store) Lend(ctx context.Context, loans []escapement.Loan, answers []escapement.Granted) {
	n := min(len(loans), len(answers))
	list := s.newSyncList(lendScript, leaseArgs)
	for i := range n {
		l := &loans[i]
		answers[i] = escapement.Granted{}
		w, err := s.lending(l)
		switch {
		case err != nil:
		case s.unasked:
			err = errLeaseTime
		default:
			err = ctx.Err()
		}
		if err != nil {
			answers[i].Err = err
			continue
		}
		c := list.add(i, w, key(s.cfg.Prefix, w.plan.Limit().Name, l.Key))
		c.body = appendAsk(c.body, w, &l.Ask)
	}
	list.run(ctx, func(c *syncCall) {
		c.each(func(i int, r *reader) {
			answers[i].Outcome = escapement.Decided
			g := &answers[i].Grant
			readGrant(r, loans[i].Plan, g)
			g.Ver, g.Lost = r.next(), r.next()
			g.Held = c.held(g.At)
		}, func(i int, o escapement.Outcome, err error) {
			answers[i] = escapement.Granted{Outcome: o, Err: err}
		})
	})
}

// errLeaseTime says why quota is not handed out: its holder would never learn where the
// line is, and so never use it.
var errLeaseTime = unavailable("scripts may not ask for the time, without which leases cannot be dated; allow TIME, or let every request ask")

// lending is the plan that a loan is judged by.
func (s *Store) lending(l *escapement.Loan) (*wire, error) {
	a := &l.Ask
	numbers := []int64{a.Exact, a.Rate, a.Epoch, a.LastRate, a.Ver, a.Window, a.Return, a.Spent, a.Want, a.WantNext, a.Have, a.HaveNext,
		int64(a.Past), a.Base, a.Horizon, a.Upto, a.Carry}
	for _, list := range [][]algo.Amount{a.Settle, a.Used} {
		for _, m := range list {
			numbers = append(numbers, m.Bucket, m.Units)
		}
	}
	if err := checkSync(l.Plan, l.Key, max(len(a.Settle), len(a.Used)), numbers...); err != nil {
		return nil, err
	}
	was, ok := l.Plan.Lease()
	name := l.Plan.Limit().Name
	if !ok {
		return nil, fmt.Errorf("%w: limit %s is not leased; set Sync", escapement.ErrRequest, name)
	}
	w, _ := s.ruling(l.Plan)
	is, ok := w.plan.Lease()
	if !ok || is.IsBucket() != was.IsBucket() || is.Per != was.Per && !is.IsBucket() || is.Width != was.Width || is.Buckets != was.Buckets {
		return nil, fmt.Errorf("%w: limit %s has other windows by now; drop what is held of it", escapement.ErrRequest, name)
	}
	return w, nil
}

// leaseArgs is what follows the numbers of a leased plan.
func leaseArgs(w *wire) []string {
	l, _ := w.plan.Lease()
	fence := int64(0)
	if l.Fence {
		fence = 1
	}
	return appendInts(nil, int64(l.Interval), int64(l.Width), l.Buckets, fence)
}

func appendAsk(args []string, w *wire, a *algo.Ask) []string {
	args = appendInts(args, a.Exact, a.Rate, a.Epoch, a.LastRate, a.Want, a.Have, a.Ver)
	if l, _ := w.plan.Lease(); l.Width == 0 {
		return appendInts(args, a.Window, a.Return, a.Spent, a.WantNext, a.HaveNext)
	}
	args = appendInts(args, int64(a.Past), a.Base, a.Horizon, a.Upto, a.Carry)
	for _, list := range [][]algo.Amount{a.Settle, a.Used} {
		args = appendInts(args, int64(2*len(list)))
		for _, m := range list {
			args = appendInts(args, m.Bucket, m.Units)
		}
	}
	return args
}

func readGrant(r *reader, p *escapement.Plan, g *algo.Grant) {
	*g = algo.Grant{At: algo.Store(r.next()), Admitted: r.next() == 1, Epoch: r.next(), Instances: r.next(), Share: r.next(),
		Available: r.next(), Free: algo.Store(r.next())}
	if l, _ := p.Lease(); l.Width == 0 {
		g.Window, g.Units, g.Next = r.next(), r.next(), r.next()
		return
	}
	g.Upto, g.Carry = r.next(), r.next()
	newest, n := r.next(), r.next()
	if n < 0 || n > int64(len(r.words)) {
		r.short = true
		return
	}
	l, _ := p.Lease()
	expiry := l.Expiry(newest, g.Upto)
	for j := newest; j < newest+n; j++ {
		if units := r.next(); units > 0 {
			g.Lots = append(g.Lots, algo.Lot{From: j, Units: units, Expiry: expiry})
		}
	}
}
