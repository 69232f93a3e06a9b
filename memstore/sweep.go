package memstore

import (
	"time"

	"github.com/escapement-io/escapement/algo"
)

// A cycle visits every shard in sixteen ticks, 4 seconds, or in four when claims were
// refused at the cap.
const (
	tick       = 250 * time.Millisecond
	cycleTicks = 16
	hurryTicks = 4
)

// sweep drops records that are as good as new, brings the others up to their limit's
// newest generation, and after a whole cycle forgets the generations that were replaced
// before it began.
func (s *Store) sweep() {
	defer close(s.done)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	next := 0
	older := s.newest()
	for {
		select {
		case <-s.quit:
			return
		case <-ticker.C:
		}
		if c, ok := s.clock.(interface{ Sync() }); ok {
			c.Sync()
		}
		share := len(s.shards) / cycleTicks
		if s.hurry.Swap(false) {
			share = len(s.shards) / hurryTicks
		}
		for end := min(next+share, len(s.shards)); next < end; next++ {
			s.tidy(&s.shards[next])
		}
		if next == len(s.shards) {
			s.retire(older)
			next, older = 0, s.newest()
		}
	}
}

// tidy sweeps one shard and gives back memory it no longer needs.
func (s *Store) tidy(sh *shard) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.size == 0 && sh.text.data == nil {
		return
	}
	s.filter(sh, sh.instant(s.now()))
	sh.shrink(s.keyed)
}

// filter drops every record of a shard that is as good as new.
func (s *Store) filter(sh *shard, now algo.Store) {
	sh.swept = now
	sh.table.filter(func(i int) bool {
		if !s.stale(sh, i, now) {
			return true
		}
		s.release(sh, i)
		sh.dropped++
		return false
	})
	if s.keyed {
		sh.text.compact(&sh.table)
	}
}

// stale reports whether dropping the record at i changes no later answer. It brings the
// record up to date first.
func (s *Store) stale(sh *shard, i int, now algo.Store) bool {
	sl := &sh.slots[i]
	l := s.plans.known.Load().find(sl.tag())
	if sl.tag() != l.newest.id {
		sh.adopt(i, l)
	}
	st := sl.state()
	if l.newest.slots > 0 {
		st = sl.rolling(&sh.rings)
	}
	return l.newest.plan.Core().Fresh(&st, now)
}

// release gives back what the record at i holds besides its slot.
func (s *Store) release(sh *shard, i int) {
	sl := &sh.slots[i]
	if l := s.plans.known.Load().find(sl.tag()); l.newest.slots > 0 {
		sh.rings.give(sl.ref())
	}
	if s.keyed {
		sh.text.drop(sh.texts[i])
	}
	s.keys.Add(-1)
}
