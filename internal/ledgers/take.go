package ledgers

import (
	"context"
	"fmt"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// TakeOne answers a Take without patience. While the ledger of the key has what is asked
// for it allocates nothing and waits for nothing but a lock.
func (s *Store[L, M, R, P]) TakeOne(ctx context.Context, p *escapement.Plan, key string, cost int64) (escapement.Decision, error) {
	if p == nil || p.ID() == 0 || !s.owns(p) || uint64(cost-1) >= uint64(algo.MaxInt) {
		return s.DecideOne(ctx, escapement.Claim{Plan: p, Key: key, Cost: cost})
	}
	l := s.limitOf(p)
	h := s.hash(l, key)
	sh := s.shard(h)
	sh.mu.Lock()
	if e := sh.find(h); e != nil && e.plan == p {
		P(&e.ledger).Warm()
		now := s.now()
		if v, ok := P(&e.ledger).Decide(p.Core(), now, cost); ok {
			sh.admitted++
			if !e.queued {
				s.queue(sh, e)
			}
			sh.mu.Unlock()
			return escapement.Decide(p, v, s.cfg.Basis), nil
		}
	}
	sh.mu.Unlock()
	return s.take(ctx, l, h, l.ruling(p), key, cost)
}

// DecideOne answers a claim that stands alone.
func (s *Store[L, M, R, P]) DecideOne(ctx context.Context, c escapement.Claim) (escapement.Decision, error) {
	if c.Plan == nil || c.Plan.ID() == 0 || !s.owns(c.Plan) {
		return s.behind(ctx, c)
	}
	if err := check(&c); err != nil {
		return escapement.Decision{}, err
	}
	l := s.limitOf(c.Plan)
	h := s.hash(l, c.Key)
	p := l.ruling(c.Plan)
	switch c.Mode {
	case escapement.TakeUpTo:
		if c.Cost > 0 {
			return s.takeUpTo(ctx, l, h, p, c)
		}
	case escapement.Charge:
		if c.Cost > 0 {
			return s.charge(ctx, l, h, p, c)
		}
	case escapement.Refund:
		return s.refund(l, h, p, c), nil
	case escapement.Take:
		if c.Cost > 0 {
			return s.take(ctx, l, h, p, c.Key, c.Cost)
		}
	case escapement.Peek:
	}
	return s.peek(ctx, l, h, p, c)
}

// take admits or refuses a cost of at least 1, after waiting for the store if need be.
func (s *Store[L, M, R, P]) take(ctx context.Context, l *limit, h uint64, p *escapement.Plan, key string, cost int64) (escapement.Decision, error) {
	if err := ctx.Err(); err != nil {
		return escapement.Decision{}, err
	}
	sh := s.shard(h)
	sh.mu.Lock()
	e, err := s.open(sh, l, h, p, key)
	if err != nil {
		sh.mu.Unlock()
		return escapement.Decision{}, err
	}
	now := s.now()
	if stamp, ok := P(&e.ledger).Take(now, cost); ok {
		d := s.said(sh, e, p, now, Said{Admitted: true, None: cost == 0, Stamp: stamp, Units: cost})
		s.queue(sh, e)
		sh.mu.Unlock()
		return d, nil
	}
	w := waiter{plan: p, request: Request{Cost: cost, Since: now}}
	s.admit(sh, e, &w, now)
	s.queue(sh, e)
	if !w.waits {
		sh.mu.Unlock()
		return w.decision, w.err
	}
	w.again = make(chan struct{}, 1)
	sh.mu.Unlock()
	return s.await(ctx, sh, e, &w)
}

// said makes a decision, and counts it if it is about units.
func (s *Store[L, M, R, P]) said(sh *shard[L], e *entry[L], p *escapement.Plan, now algo.Mono, what Said) escapement.Decision {
	switch {
	case what.None:
	case what.Admitted:
		sh.admitted++
	default:
		sh.refused++
	}
	return escapement.Decide(p, P(&e.ledger).Verdict(p.Core(), now, what), s.cfg.Basis)
}

// peek answers from what the ledger knows. If there is none, or it was told nothing yet,
// the store is asked.
func (s *Store[L, M, R, P]) peek(ctx context.Context, l *limit, h uint64, p *escapement.Plan, c escapement.Claim) (escapement.Decision, error) {
	sh := s.shard(h)
	what := Said{Admitted: true, None: true, Units: c.Cost}
	for range 2 {
		sh.mu.Lock()
		e := sh.find(h)
		now := s.now()
		if e != nil && P(&e.ledger).Told(now) {
			what.Admitted = c.Cost <= P(&e.ledger).Remaining()
			v := P(&e.ledger).Verdict(p.Core(), now, what)
			sh.mu.Unlock()
			return escapement.Decide(p, v, s.cfg.Basis), nil
		}
		sh.mu.Unlock()
		if s.cfg.PeekBehind {
			c.Plan = p
			return s.behind(ctx, c)
		}
		// A request that costs nothing brings a reply.
		if _, err := s.take(ctx, l, h, p, c.Key, 0); err != nil {
			return escapement.Decision{}, err
		}
	}
	return escapement.Decision{}, errAway
}

// takeUpTo takes what is here; if that is nothing, it waits for a unit first.
func (s *Store[L, M, R, P]) takeUpTo(ctx context.Context, l *limit, h uint64, p *escapement.Plan, c escapement.Claim) (escapement.Decision, error) {
	if d, ok := s.takeHere(l, h, p, c.Key, c.Cost, 0); ok {
		return d, nil
	}
	first, err := s.take(ctx, l, h, p, c.Key, 1)
	if err != nil {
		return first, err
	}
	if first.Allowed {
		if d, ok := s.takeHere(l, h, p, c.Key, c.Cost-1, 1); ok {
			return d, nil
		}
		return first, nil
	}
	return s.peek(ctx, l, h, p, escapement.Claim{Plan: p, Key: c.Key})
}

// takeHere takes up to most of what the ledger has, and says that it is so much more than
// what was taken before; false if it has nothing.
func (s *Store[L, M, R, P]) takeHere(l *limit, h uint64, p *escapement.Plan, key string, most, before int64) (escapement.Decision, bool) {
	sh := s.shard(h)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := sh.find(h)
	if e == nil || e.plan != p || most == 0 {
		return escapement.Decision{}, false
	}
	now := s.now()
	n := min(most, P(&e.ledger).Usable(now))
	if n == 0 {
		return escapement.Decision{}, false
	}
	stamp, ok := P(&e.ledger).Take(now, n)
	if !ok {
		return escapement.Decision{}, false
	}
	s.queue(sh, e)
	if before > 0 {
		sh.admitted-- // it is counted already
	}
	return s.said(sh, e, p, now, Said{Admitted: true, Stamp: stamp, Units: before + n}), true
}

// charge counts what was spent: here as far as that goes, and the rest at the store.
func (s *Store[L, M, R, P]) charge(ctx context.Context, l *limit, h uint64, p *escapement.Plan, c escapement.Claim) (escapement.Decision, error) {
	sh := s.shard(h)
	sh.mu.Lock()
	e, err := s.open(sh, l, h, p, c.Key)
	if err != nil {
		sh.mu.Unlock()
		return escapement.Decision{}, err
	}
	if s.cfg.Spend == nil && !P(&e.ledger).Told(s.now()) {
		// It must be known which window this is.
		sh.mu.Unlock()
		if _, err := s.take(ctx, l, h, p, c.Key, 0); err != nil {
			return escapement.Decision{}, err
		}
		sh.mu.Lock()
		if e, err = s.open(sh, l, h, p, c.Key); err != nil {
			sh.mu.Unlock()
			return escapement.Decision{}, err
		}
	}
	now := s.now()
	stamp, charged := P(&e.ledger).Charge(now, c.Cost, c.Receipt.At)
	s.queue(sh, e)
	if charged < c.Cost && s.cfg.Spend != nil && c.Receipt.At == 0 {
		sh.mu.Unlock()
		more, err := s.cfg.Spend(ctx, p, c.Key, c.Cost-charged)
		if err != nil && charged == 0 {
			return escapement.Decision{}, err
		}
		charged += more
		sh.mu.Lock()
	}
	d := s.said(sh, e, p, now, Said{Admitted: true, None: charged == 0, Stamp: stamp, Units: charged})
	sh.mu.Unlock()
	return d, nil
}

// refund gives back what the ledger can still take back; what it cannot stays spent.
func (s *Store[L, M, R, P]) refund(l *limit, h uint64, p *escapement.Plan, c escapement.Claim) escapement.Decision {
	sh := s.shard(h)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.now()
	if e := sh.find(h); e != nil {
		back := P(&e.ledger).PutBack(now, c.Receipt.At, c.Receipt.Units)
		return escapement.Decide(p, P(&e.ledger).Verdict(p.Core(), now, Said{Admitted: true, None: true, Units: back}), s.cfg.Basis)
	}
	return s.nothing(l, h, p, now)
}

// nothing is a decision about a key that no ledger knows, which takes nothing.
func (s *Store[L, M, R, P]) nothing(l *limit, h uint64, p *escapement.Plan, now algo.Mono) escapement.Decision {
	var none L
	P(&none).Open(p, s.setting(l, h))
	return escapement.Decide(p, P(&none).Verdict(p.Core(), now, Said{Admitted: true, None: true}), s.cfg.Basis)
}

// stands is what a ledger knows of a key, without anything being taken.
func (s *Store[L, M, R, P]) stands(l *limit, h uint64, p *escapement.Plan) escapement.Decision {
	sh := s.shard(h)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.now()
	if e := sh.find(h); e != nil {
		return escapement.Decide(p, P(&e.ledger).Verdict(p.Core(), now, Said{Admitted: true, None: true}), s.cfg.Basis)
	}
	return s.nothing(l, h, p, now)
}

// undo puts back what a decision took.
func (s *Store[L, M, R, P]) undo(key string, d *escapement.Decision) {
	r := d.Receipt()
	if r.Units == 0 {
		return
	}
	p := d.Plan()
	l := s.limitOf(p)
	h := s.hash(l, key)
	s.refund(l, h, p, escapement.Claim{Plan: p, Key: key, Mode: escapement.Refund, Receipt: r})
}

// checkAll is what is wrong with a request of which a claim is this store's own.
func (s *Store[L, M, R, P]) checkAll(claims []escapement.Claim) error {
	if len(claims) > escapement.MaxClaims {
		return fmt.Errorf("%w: %d claims, want 1 to %d", escapement.ErrRequest, len(claims), escapement.MaxClaims)
	}
	for i := range claims {
		c := &claims[i]
		if c.Plan == nil || c.Plan.ID() == 0 {
			return fmt.Errorf("claim %d: %w: it has no compiled plan; use Limit.Compile", i, escapement.ErrRequest)
		}
		if err := check(c); err != nil {
			return fmt.Errorf("claim %d: %w", i, err)
		}
		if len(claims) > 1 && c.Mode != escapement.Take && c.Mode != escapement.Peek {
			return fmt.Errorf("%w: claim %d, limit %s: only takes and peeks go together; send it alone", escapement.ErrRequest, i, c.Plan.Limit().Name)
		}
	}
	return nil
}
