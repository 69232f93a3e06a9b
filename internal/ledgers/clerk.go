package ledgers

import (
	"context"
	"errors"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// clerk is what the goroutine that collects messages knows. Nobody else touches it.
type clerk[L any] struct {
	due      []alarm[L]  // off the heaps, not sent yet; the first came first
	urgent   []*entry[L] // not sent yet
	soon     algo.Mono   // the first alarm that was set while others were sent
	adjusted algo.Mono
	swept    algo.Mono
	part     int // the shard that is swept next
}

// A message is an Item on its way, with where its reply goes.
type message[L, M any] struct {
	e    *entry[L]
	item Item[M]
}

// run is the clerk.
func (s *Store[L, M, R, P]) run() {
	defer close(s.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		// Whoever sets an earlier alarm from here on nudges.
		s.wake.Store(int64(forever))
		next := s.collect(s.now())
		s.wake.Store(int64(next))
		now := s.now()
		timer.Reset(time.Duration(max(0, min(next, now+algo.Mono(time.Hour))-now)))
		select {
		case <-timer.C:
		case <-s.kick:
		case <-s.quit:
			return
		}
	}
}

// collect sends what is urgent and what is due, and returns when to look again.
func (s *Store[L, M, R, P]) collect(now algo.Mono) (next algo.Mono) {
	s.adjust(now)
	s.sweep(now)
	next, s.clerk.soon = forever, forever
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		for len(sh.due) > 0 && sh.due[0].at <= now {
			s.clerk.due = append(s.clerk.due, sh.pop())
		}
		if len(sh.due) > 0 {
			next = min(next, sh.due[0].at)
		}
		sh.mu.Unlock()
	}
	if s.keys.Load() > 0 {
		next = min(next, now+sweepEvery)
	}
	later := s.dispatch(now)
	return min(next, later, s.clerk.soon)
}

// dispatch sends what is urgent and what is due, and returns when to look again if
// something is held back, or forever.
func (s *Store[L, M, R, P]) dispatch(now algo.Mono) (later algo.Mono) {
	c := &s.clerk
	s.mu.Lock()
	c.urgent = append(c.urgent, s.urgent...)
	clear(s.urgent)
	s.urgent = s.urgent[:0]
	s.mu.Unlock()
	if len(c.urgent) == 0 && len(c.due) == 0 {
		return forever
	}
	began := s.now()
	var batch []message[L, M]
	if s.flying.Load() < urgentCalls*int64(s.cfg.Calls) {
		batch = s.pollUrgent(now)
	}
	later = s.sendDue(now, batch)
	s.calls.busy.Add(int64(s.now() - began))
	return later
}

// urgentCalls is how many times the calls of ticks may be under way in all before what
// requests wait for waits too: under a flood calls then fill up.
const urgentCalls = 4

// pollUrgent polls the entries that requests wait at, sends full calls, and returns what
// does not fill one.
func (s *Store[L, M, R, P]) pollUrgent(now algo.Mono) (batch []message[L, M]) {
	c := &s.clerk
	for _, e := range c.urgent {
		sh := s.shard(e.hash)
		sh.mu.Lock()
		e.urgent = false
		if m, send := P(&e.ledger).Poll(now); send {
			batch = append(batch, message[L, M]{e, Item[M]{e.plan, e.key, m}})
		}
		s.queue(sh, e)
		sh.mu.Unlock()
		if len(batch) == CallKeys {
			s.send(batch)
			batch = nil
		}
	}
	clear(c.urgent)
	c.urgent = c.urgent[:0]
	return batch
}

// sendDue sends the ticks that are due, behind what is in the batch already, in calls that
// are full. With many keys a rest waits for company, so that calls are few; it returns when
// it has waited long enough, or forever if nothing waits or a call that ends will wake the
// clerk.
func (s *Store[L, M, R, P]) sendDue(now algo.Mono, batch []message[L, M]) (later algo.Mono) {
	c := &s.clerk
	sent := 0
	for sent < len(c.due) {
		if len(batch) == 0 {
			if s.flying.Load() >= int64(s.cfg.Calls) {
				break
			}
			if rest := len(c.due) - sent; rest < CallKeys && s.patient(now, c.due[sent]) {
				break
			}
		}
		e := c.due[sent].e
		sent++
		if item, send := s.tick(e, now); send {
			batch = append(batch, message[L, M]{e, item})
		}
		if len(batch) == CallKeys {
			s.send(batch)
			batch = nil
		}
	}
	s.send(batch)
	n := copy(c.due, c.due[sent:])
	clear(c.due[n:])
	c.due = c.due[:n]
	if n == 0 || s.flying.Load() >= int64(s.cfg.Calls) {
		return forever
	}
	return c.due[0].at + s.grace(c.due[0].e)
}

// grace is how long a tick may wait for company: a part of its interval if phases are
// many, else not at all.
func (s *Store[L, M, R, P]) grace(e *entry[L]) algo.Mono {
	if s.slots.Load() == 1 {
		return 0
	}
	return algo.Mono(e.interval) * 1000 / 8
}

func (s *Store[L, M, R, P]) patient(now algo.Mono, a alarm[L]) bool { return now < a.at+s.grace(a.e) }

// tick polls an entry that is due, and sets its next alarm if it goes on ticking.
func (s *Store[L, M, R, P]) tick(e *entry[L], now algo.Mono) (item Item[M], send bool) {
	sh := s.shard(e.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	m, send := P(&e.ledger).Poll(now)
	item = Item[M]{e.plan, e.key, m}
	interval := algo.Span(e.limit.interval.Load())
	if phase := s.phase(interval, e.hash); interval != e.interval || phase != e.phase {
		e.interval, e.phase = interval, phase
		P(&e.ledger).Retime(now, interval, phase)
	}
	if at, ok := P(&e.ledger).Next(); ok {
		sh.push(alarm[L]{at, e})
		s.clerk.soon = min(s.clerk.soon, at)
		return item, send
	}
	e.queued = false
	s.ticking.Add(-1)
	e.limit.ticking.Add(-1)
	return item, send
}

// send makes one call, and hands its replies to the ledgers when it ends.
func (s *Store[L, M, R, P]) send(batch []message[L, M]) {
	if len(batch) == 0 {
		return
	}
	s.under.Add(1)
	s.flying.Add(1)
	go func() {
		defer s.under.Done()
		s.exchange(context.Background(), batch)
		if n := s.flying.Add(-1) + 1; n == int64(s.cfg.Calls) || n == urgentCalls*int64(s.cfg.Calls) {
			s.nudge() // it may wait for that
		}
	}()
}

// exchange is one call and what comes of it.
func (s *Store[L, M, R, P]) exchange(ctx context.Context, batch []message[L, M]) (known int) {
	items := make([]Item[M], len(batch))
	for i := range batch {
		items[i] = batch[i].item
	}
	results := make([]Result[R], len(batch))
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Deadline)
	s.cfg.Call(ctx, items, results)
	cancel()
	began := s.now()
	for i := range batch {
		e, r := batch[i].e, &results[i]
		sh := s.shard(e.hash)
		sh.mu.Lock()
		now := s.now()
		if r.Known {
			known++
			P(&e.ledger).Absorb(now, &r.Reply)
			s.note(e.limit, now, P(&e.ledger).Figures())
			if i == 0 {
				s.learn(now, e)
			}
		} else if errors.Is(r.Err, escapement.ErrRequest) || errors.Is(r.Err, escapement.ErrCost) {
			s.forget(e, now)
		} else {
			P(&e.ledger).Failed(now)
		}
		s.answer(sh, e, now)
		s.queue(sh, e)
		sh.mu.Unlock()
	}
	s.calls.end(len(batch), known)
	s.calls.busy.Add(int64(s.now() - began))
	return known
}

// forget begins an entry anew whose message the store will never take: its limit has been
// given other windows, or its key is none. What it held or counted is of no use then.
func (s *Store[L, M, R, P]) forget(e *entry[L], now algo.Mono) {
	for _, w := range e.waiters {
		P(&e.ledger).Withdraw(&w.request)
	}
	set := s.setting(e.limit, e.hash)
	e.interval, e.phase = set.Interval, set.Phase
	P(&e.ledger).Open(e.plan, set)
	P(&e.ledger).Failed(now) // and again: so that asking pauses
	P(&e.ledger).Failed(now)
}

// sweepEvery is how often each shard is searched for silent keys. One that was silent
// twice is dropped.
const sweepEvery algo.Mono = 5_000_000_000

// sweep looks at some shards, so that all have had their turn once in sweepEvery.
func (s *Store[L, M, R, P]) sweep(now algo.Mono) {
	c := &s.clerk
	parts := int((now - c.swept) / (sweepEvery / shards))
	if parts < 1 || s.keys.Load() == 0 {
		c.swept = max(c.swept, now-sweepEvery)
		return
	}
	parts = min(parts, shards)
	c.swept = now
	for range parts {
		sh := &s.shards[c.part]
		c.part = (c.part + 1) % shards
		sh.mu.Lock()
		var old []*entry[L]
		for _, slot := range sh.slots {
			if e := slot.e; e != nil && s.silent(e) {
				if e.aged {
					old = append(old, e)
				}
				e.aged = true
			}
		}
		for _, e := range old {
			s.drop(sh, e)
		}
		sh.mu.Unlock()
	}
}
