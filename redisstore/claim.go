package redisstore

import (
	"errors"
	"fmt"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// checkAll refuses what no store can decide. Nothing has been touched by then.
func checkAll(claims []escapement.Claim) error {
	if len(claims) == 0 || len(claims) > escapement.MaxClaims {
		return fmt.Errorf("%w: %d claims, want 1 to %d", escapement.ErrRequest, len(claims), escapement.MaxClaims)
	}
	for i := range claims {
		if err := check(&claims[i], len(claims)); err != nil {
			if len(claims) > 1 {
				return fmt.Errorf("claim %d: %w", i, err)
			}
			return err
		}
	}
	return nil
}

func check(c *escapement.Claim, of int) error {
	if c.Plan == nil || c.Plan.Core().Algorithm() == 0 {
		return fmt.Errorf("%w: a claim has no plan; compile a Limit", escapement.ErrRequest)
	}
	name := c.Plan.Limit().Name
	switch {
	case c.Cost < 0 || c.Cost > algo.MaxInt:
		return fmt.Errorf("%w: %d for limit %s; use 0 to 2^53-1", escapement.ErrCost, c.Cost, name)
	case c.Mode > escapement.Peek:
		return fmt.Errorf("%w: limit %s: unknown mode %d", escapement.ErrRequest, name, c.Mode)
	case c.Receipt.Units < 0 || c.Receipt.Units > algo.MaxInt:
		return fmt.Errorf("%w: limit %s: a receipt for %d units; use the one of a decision", escapement.ErrCost, name, c.Receipt.Units)
	case c.Receipt.At < 0 || c.Receipt.At > algo.Store(algo.MaxInt):
		return fmt.Errorf("%w: limit %s: a receipt of instant %d; use the one of a decision", escapement.ErrRequest, name, c.Receipt.At)
	case len(c.Key) > escapement.MaxKey*128:
		return fmt.Errorf("%w: limit %s: a key of %d bytes; hash it first", escapement.ErrRequest, name, len(c.Key))
	case of > 1 && c.Mode != escapement.Take && c.Mode != escapement.Peek:
		return fmt.Errorf("%w: limit %s: only takes and peeks go together; send it alone", escapement.ErrRequest, name)
	}
	return nil
}

// unavailableBy makes an error of the connection one that escapement.ErrStoreUnavailable
// matches.
func unavailableBy(err error) error {
	if errors.Is(err, escapement.ErrStoreUnavailable) || errors.Is(err, ErrRecord) {
		return err
	}
	return fmt.Errorf("%w: %w", escapement.ErrStoreUnavailable, err)
}

// errBounds says that the caller's own clock is not good enough.
var errBounds = unavailable("scripts may not ask for the time, and the caller's own clock is not known to a tenth of the limit's emission interval; allow TIME, or configure time references")

// ownBounds dates calls by the caller's own clock: by its lower bound, so that its error
// gives nothing away, and only where the error is at most a tenth of the emission interval.
func (s *Store) ownBounds(items []*item) (bounds, error) {
	if s.cfg.Bound == nil {
		return bounds{}, errBounds
	}
	iv := s.cfg.Bound()
	if !iv.Bounded() {
		return bounds{}, errBounds
	}
	b := bounds{lo: algo.Store(iv.Earliest / 1000), hi: algo.Store((iv.Latest + 999) / 1000), unasked: true}
	for _, it := range items {
		for _, w := range it.wires {
			if algo.Span(b.hi-b.lo) > interval(w, b.lo)/10 {
				return bounds{}, errBounds
			}
		}
	}
	return b, nil
}

// interval is the time that one unit takes to come back.
func interval(w *wire, at algo.Store) algo.Span {
	if w.calendar == nil {
		return w.plan.Core().EmissionInterval()
	}
	start, end := w.calendar.Around(at)
	return algo.Span(end-start) / algo.Span(w.plan.Core().Capacity())
}

// instant is now on the line, as far as this caller knows it.
func (s *Store) instant() algo.Store {
	if s.unasked {
		if s.cfg.Bound != nil {
			if iv := s.cfg.Bound(); iv.Bounded() {
				return algo.Store(iv.Earliest / 1000)
			}
		}
		return algo.MaxInstant
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.witness.known {
		return algo.MaxInstant
	}
	return max(0, algo.Store(s.witness.line(int64(s.line.Now()))))
}
