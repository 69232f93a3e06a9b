package redisstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/escapement-io/escapement"
)

// solo is what a claim that stands alone needs on its way, the commonest one. It is used
// again once its answer has come; one that was given up is left to whoever serves it.
type solo struct {
	ticket ticket
	item   item
	timer  *time.Timer

	claims [1]escapement.Claim
	wires  [1]*wire
	keys   [1]string
}

var solos = sync.Pool{New: func() any {
	a := &solo{timer: time.NewTimer(time.Hour)}
	a.timer.Stop()
	a.ticket.item, a.ticket.done = &a.item, make(chan struct{}, 1)
	return a
}}

// reset makes it as new, holding on to nothing of its caller.
func (o *solo) reset() {
	clear(o.claims[:])
	clear(o.wires[:])
	clear(o.keys[:])
	o.item = item{claims: o.claims[:0], wires: o.wires[:0], keys: o.keys[:0]}
	t := &o.ticket
	t.stage.Store(waiting)
	t.now, t.words, t.err, t.outcome = 0, nil, nil, escapement.NotRun
}

// one decides a claim that stands alone, into an answer that holds nothing yet.
func (s *Store) one(ctx context.Context, c *escapement.Claim, a *escapement.Answer) {
	if a.Err = check(c, 1); a.Err != nil {
		return
	}
	if a.Err = ctx.Err(); a.Err != nil {
		return
	}
	o := solos.Get().(*solo)
	o.reset()
	s.add(&o.item, *c)
	sh := s.topology.Load().shard(o.keys[0])
	if a.Err = sh.submit(&o.ticket); a.Err != nil {
		solos.Put(o)
		return
	}
	e := errand{store: s}
	o.timer.Reset(s.cfg.Deadline)
	answered := e.collect(ctx, sh, &o.ticket, o.timer.C, a)
	o.timer.Stop()
	if answered {
		solos.Put(o)
	}
}

// collect waits for a ticket's answer and reads it. It reports whether the ticket was
// answered: otherwise whoever serves it may still do so.
func (e *errand) collect(ctx context.Context, sh *shard, t *ticket, deadline <-chan time.Time, a *escapement.Answer) (answered bool) {
	a.Outcome, answered, a.Err = sh.wait(ctx, t, deadline)
	if a.Err != nil {
		e.late = errors.Is(a.Err, errTimeout) || errors.Is(a.Err, errWaiting)
		a.Err = unavailableBy(a.Err)
		return answered
	}
	if _, err := decode(t.item, t.now, t.words, a); err != nil {
		a.Outcome, a.Admitted, a.Err = escapement.Unknown, false, err
		if len(t.words) > 0 && t.words[0] < 0 {
			a.Outcome = escapement.NotRun
		}
	}
	return answered
}
