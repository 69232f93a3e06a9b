package redisstore

import (
	"context"
	"time"

	"github.com/escapement-io/escapement"
)

// A cluster decides the claims of one slot in one step. A request over several slots is
// looked at first everywhere: if a part has no room it is refused and nothing was taken,
// which keeps refused traffic from using up what others could have. Then all parts take.
// If one is beaten to it in between, what the others took is given back; if one is
// unknown, it stays spent.

// split makes a looking ticket for each slot.
func (s *Store) split(claims []escapement.Claim) errand {
	e := errand{store: s}
	bySlot := map[uint16]int{}
	for i, c := range claims {
		w, _ := s.ruling(c.Plan)
		k := key(s.cfg.Prefix, w.plan.Limit().Name, c.Key)
		j, ok := bySlot[slot(k)]
		if !ok {
			j = len(e.parts)
			bySlot[slot(k)] = j
			e.parts = append(e.parts, &part{shard: s.topology.Load().shard(k)})
		}
		e.parts[j].claims = append(e.parts[j].claims, c)
		e.parts[j].places = append(e.parts[j].places, i)
	}
	return e
}

// part is what a request asks of one slot.
type part struct {
	shard  *shard
	claims []escapement.Claim
	places []int // in the request
	ticket *ticket
	answer escapement.Answer
}

// ask sends the claims of every part, changed by mode, and waits for all.
func (e *errand) ask(ctx context.Context, deadline <-chan time.Time, mode func(escapement.Claim) escapement.Claim) (escapement.Outcome, bool, error) {
	for _, p := range e.parts {
		it := &item{}
		for _, c := range p.claims {
			e.store.add(it, mode(c))
		}
		it.sum()
		p.ticket, p.answer = newTicket(it), escapement.Answer{}
		if p.answer.Err = p.shard.submit(p.ticket); p.answer.Err != nil {
			p.ticket = nil
		}
	}
	outcome, admitted, failed := escapement.Decided, true, error(nil)
	for _, p := range e.parts {
		if p.ticket != nil {
			e.collect(ctx, p.shard, p.ticket, e.left(deadline), &p.answer)
		}
		admitted = admitted && p.answer.Admitted
		if p.answer.Err != nil && outcome != escapement.Unknown {
			outcome, failed = p.answer.Outcome, p.answer.Err
		}
	}
	return outcome, admitted, failed
}

// left is the deadline, or one that has passed, if it has.
func (e *errand) left(deadline <-chan time.Time) <-chan time.Time {
	if !e.late {
		return deadline
	}
	gone := make(chan time.Time)
	close(gone)
	return gone
}

// join decides a request over several slots.
func (e *errand) join(ctx context.Context, deadline <-chan time.Time, a *escapement.Answer) {
	look := func(c escapement.Claim) escapement.Claim {
		if c.Mode == escapement.Take && c.Patience <= 0 {
			c.Mode = escapement.Peek
		}
		return c
	}
	patient := false
	for _, p := range e.parts {
		for _, c := range p.claims {
			patient = patient || c.Patience > 0
		}
	}
	if !patient {
		// A look at what a caller would wait for is a take; such requests take at once.
		outcome, admitted, err := e.ask(ctx, deadline, look)
		if err != nil {
			// A look takes nothing, whatever became of it.
			a.Err = err
			return
		}
		if !admitted {
			a.Outcome = outcome
			e.fill(a, true)
			return
		}
	}
	a.Outcome, a.Admitted, a.Err = e.ask(ctx, deadline, func(c escapement.Claim) escapement.Claim { return c })
	if a.Outcome == escapement.Decided {
		e.fill(a, false)
	}
	if !a.Admitted || a.Outcome != escapement.Decided {
		a.Admitted = false
		e.giveBack()
	}
}

// fill puts the decisions of all parts in their places. Those of a refused request that
// had room are shown as a look for nothing, as stores in one step do.
func (e *errand) fill(a *escapement.Answer, refused bool) {
	n := 0
	for _, p := range e.parts {
		n += len(p.places)
	}
	a.Parts = append(a.Parts[:0], make([]escapement.Decision, n)...)
	for _, p := range e.parts {
		if refused && p.answer.Admitted {
			it := p.ticket.item
			for i := range it.claims {
				it.claims[i].Cost = 0
			}
			again := escapement.Answer{}
			if _, err := decode(it, p.ticket.now, p.ticket.words, &again); err == nil && len(again.Parts) == len(p.places) {
				for i := range again.Parts {
					if !p.answer.Parts[i].Allowed {
						again.Parts[i] = p.answer.Parts[i]
					}
				}
				p.answer.Parts = again.Parts
			}
		}
		for j, i := range p.places {
			a.Parts[i] = p.answer.Parts[j]
		}
	}
}

// giveBack refunds what was taken by the parts of a request that another part refused. It
// is not waited for: a refund that fails leaves the units spent, the strict side.
func (e *errand) giveBack() {
	for _, p := range e.parts {
		if !p.answer.Admitted {
			continue
		}
		for j := range p.answer.Parts {
			d, c := &p.answer.Parts[j], p.claims[j]
			if !d.Allowed || c.Mode != escapement.Take || d.Receipt().Units == 0 {
				continue
			}
			it := &item{}
			e.store.add(it, escapement.Claim{Plan: c.Plan, Key: c.Key, Mode: escapement.Refund, Receipt: d.Receipt()})
			it.sum()
			// Not waited for; a queue that is full keeps the units spent.
			_ = p.shard.submit(newTicket(it))
		}
	}
}
