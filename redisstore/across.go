package redisstore

import (
	"context"
	"time"

	"github.com/escapement-io/escapement"
)

// split makes one ticket per slot of a cluster.
func (s *Store) split(claims []escapement.Claim, a *escapement.Answer) errand {
	e := errand{store: s}
	bySlot := map[uint16]int{}
	for i, c := range claims {
		var probe item
		s.add(&probe, c)
		sl := slot(probe.keys[0])
		k, ok := bySlot[sl]
		if !ok {
			k = len(e.tickets)
			bySlot[sl] = k
			e.tickets = append(e.tickets, newTicket(&item{}))
			e.places = append(e.places, nil)
			e.shards = append(e.shards, s.topology.Load().shard(probe.keys[0]))
		}
		s.add(e.tickets[k].item, c)
		e.places[k] = append(e.places[k], i)
	}
	for k, t := range e.tickets {
		t.item.sum()
		if err := e.shards[k].submit(t); err != nil {
			t.err, t.outcome = err, escapement.NotRun
			t.done <- struct{}{}
		}
	}
	return e
}

// join waits for all slots of a request. If one refuses or was not run, what the others
// took is given back; if one is unknown, it stays spent.
func (e *errand) join(ctx context.Context, deadline <-chan time.Time, a *escapement.Answer) {
	answers := make([]escapement.Answer, len(e.tickets))
	n := 0
	a.Outcome, a.Admitted = escapement.Decided, true
	for k, t := range e.tickets {
		wait := deadline
		if e.late {
			gone := make(chan time.Time)
			close(gone)
			wait = gone
		}
		e.collect(ctx, e.shards[k], t, wait, &answers[k])
		n += len(t.item.claims)
		a.Admitted = a.Admitted && answers[k].Admitted
		if answers[k].Err != nil && a.Outcome != escapement.Unknown {
			a.Outcome, a.Err = answers[k].Outcome, answers[k].Err
		}
	}
	if a.Outcome == escapement.Decided {
		a.Parts = append(a.Parts[:0], make([]escapement.Decision, n)...)
		for k := range answers {
			for j, i := range e.places[k] {
				a.Parts[i] = answers[k].Parts[j]
			}
		}
	}
	if !a.Admitted || a.Outcome != escapement.Decided {
		a.Admitted = false
		e.giveBack(answers)
	}
}

// giveBack refunds what was taken by the parts of a request that another part refused.
// It is not waited for: a refund that fails leaves the units spent, the strict side.
func (e *errand) giveBack(answers []escapement.Answer) {
	for k, t := range e.tickets {
		if !answers[k].Admitted {
			continue
		}
		for j := range answers[k].Parts {
			d := &answers[k].Parts[j]
			c := t.item.claims[j]
			if !d.Allowed || c.Mode != escapement.Take || d.Receipt().Units == 0 {
				continue
			}
			it := &item{}
			e.store.add(it, escapement.Claim{Plan: c.Plan, Key: c.Key, Mode: escapement.Refund, Receipt: d.Receipt()})
			it.sum()
			back := newTicket(it)
			if e.shards[k].submit(back) != nil {
				back.stage.Store(given)
			}
		}
	}
}
