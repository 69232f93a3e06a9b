package ledgers

import (
	"context"
	"slices"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// waiter is a request that a ledger is asked about, until it is decided. It is guarded by
// the shard's lock.
type waiter struct {
	plan     *escapement.Plan
	request  Request
	waits    bool
	until    algo.Mono
	again    chan struct{} // it was looked at
	decision escapement.Decision
	err      error
}

// tell wakes whoever waits. It never blocks: the caller holds the lock that the other one
// may be waiting for.
func (w *waiter) tell() {
	select {
	case w.again <- struct{}{}:
	default:
	}
}

// admit asks the ledger about a request. One that waits is put on the list.
func (s *Store[L, M, R, P]) admit(sh *shard[L], e *entry[L], w *waiter, now algo.Mono) {
	a := P(&e.ledger).Admit(now, &w.request)
	w.waits = a.Verdict == Waiting
	switch a.Verdict {
	case Waiting:
		w.until = a.Until
		e.waiters = append(e.waiters, w)
		s.hurry(e)
	case Unavailable:
		sh.unavailable++
		w.err = errAway
	case Admitted:
		w.decision = s.said(sh, e, w.plan, now, Said{Admitted: true, None: w.request.Cost == 0, Stamp: a.Stamp, Units: w.request.Cost})
	case Refused:
		w.decision = s.said(sh, e, w.plan, now, Said{Units: w.request.Cost, Stamp: a.Stamp, Wait: a.RetryAfter})
	}
	if a.Fallback {
		w.decision = w.decision.WithBasis(escapement.Fallback)
	}
	if a.Send {
		s.hurry(e)
	}
}

// await waits for the decision of a request that is on the list.
func (s *Store[L, M, R, P]) await(ctx context.Context, sh *shard[L], e *entry[L], w *waiter) (escapement.Decision, error) {
	sh.mu.Lock()
	left := w.until - s.now()
	sh.mu.Unlock()
	timer := time.NewTimer(time.Duration(max(0, left)))
	defer timer.Stop()
	for {
		select {
		case <-w.again:
		case <-timer.C:
		case <-ctx.Done():
			sh.mu.Lock()
			defer sh.mu.Unlock()
			if w.waits {
				e.waiters = slices.DeleteFunc(e.waiters, func(o *waiter) bool { return o == w })
				P(&e.ledger).Withdraw(&w.request)
				return escapement.Decision{}, ctx.Err()
			}
			return w.decision, w.err
		}
		sh.mu.Lock()
		if now := s.now(); w.waits && now >= w.until {
			e.waiters = slices.DeleteFunc(e.waiters, func(o *waiter) bool { return o == w })
			s.admit(sh, e, w, now)
			s.queue(sh, e)
		}
		waits, left := w.waits, w.until-s.now()
		sh.mu.Unlock()
		if !waits {
			return w.decision, w.err
		}
		timer.Reset(time.Duration(max(0, left)))
	}
}

// answer asks again about all requests that wait at an entry, in their order.
func (s *Store[L, M, R, P]) answer(sh *shard[L], e *entry[L], now algo.Mono) {
	if len(e.waiters) == 0 {
		return
	}
	again := e.waiters
	e.waiters = nil
	for _, w := range again {
		s.admit(sh, e, w, now)
		w.tell()
	}
}

// hurry has the clerk look at an entry now.
func (s *Store[L, M, R, P]) hurry(e *entry[L]) {
	if e.urgent {
		return
	}
	e.urgent = true
	s.mu.Lock()
	s.urgent = append(s.urgent, e)
	s.mu.Unlock()
	s.nudge()
}

func (s *Store[L, M, R, P]) nudge() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// queue sets the alarm of an entry that has begun to tick.
func (s *Store[L, M, R, P]) queue(sh *shard[L], e *entry[L]) {
	if e.queued {
		return
	}
	at, ok := P(&e.ledger).Next()
	if !ok {
		return
	}
	e.queued, e.aged = true, false
	s.ticking.Add(1)
	e.limit.ticking.Add(1)
	s.alarm(sh, alarm[L]{at, e})
}

func (s *Store[L, M, R, P]) alarm(sh *shard[L], a alarm[L]) {
	if sh.push(a) && int64(a.at) < s.wake.Load() {
		s.nudge()
	}
}
