package memstore

import (
	"sync"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// shard is a part of the keys under one lock, which guards all the rest.
type shard struct {
	mu   sync.Mutex
	last algo.Store // the newest instant decided at: time does not go back
	table
	rings rings
	text  text
	swept algo.Store // when filter last ran

	dropped, adopted, full uint64

	_ [40]byte // keeps the locks of neighbours in different cache lines
}

// instant is a reading of the clock, taken under the lock, on the shard's line.
func (sh *shard) instant(now algo.Store) algo.Store {
	sh.last = max(sh.last, min(now, algo.MaxInstant))
	return sh.last
}

// locate is the record of a key, brought up to its limit's newest generation, or the place
// where it would stand.
func (s *Store) locate(sh *shard, l *limit, hash uint64, key string) (int, bool) {
	i, ok := sh.find(hash)
	if s.keyed {
		for ok && !s.owns(sh, i, l, key) {
			i++
			ok = sh.slots[i].hash == hash
		}
	}
	if ok && sh.slots[i].tag() != l.newest.id {
		sh.adopt(i, l)
	}
	return i, ok
}

// owns reports whether the record at i is that of the key, and not one of the same hash.
func (s *Store) owns(sh *shard, i int, l *limit, key string) bool {
	return s.plans.known.Load().find(sh.slots[i].tag()) == l && sh.text.is(sh.texts[i], key)
}

// decide answers one claim under the shard's lock. reserved says that the caller holds
// room for a new record. An error means that nothing was touched.
func (s *Store) decide(sh *shard, now algo.Store, l *limit, p *escapement.Plan, hash uint64, c *escapement.Claim, reserved bool) (algo.Verdict, error) {
	i, ok := s.locate(sh, l, hash, c.Key)
	if !ok {
		return s.first(sh, now, l, p, hash, c, reserved)
	}
	core := p.Core()
	sl := &sh.slots[i]
	if l.newest.slots > 0 {
		ref := sl.ref()
		st := sl.rolling(&sh.rings)
		v := c.Ask(core, &st, now)
		sl.putRolling(&st, l.newest.id, ref)
		return v, nil
	}
	st := sl.state()
	v := c.Ask(core, &st, now)
	if v.Admitted && c.Mode != escapement.Peek {
		sl.put(&st, l.newest.id)
	}
	return v, nil
}

// zeros is the ring of a state as new, for questions that change nothing.
var zeros [2 * algo.MaxBuckets]uint32

// first answers a claim on a key without a record, which is as new, and makes a record
// only if there is something to remember.
func (s *Store) first(sh *shard, now algo.Store, l *limit, p *escapement.Plan, hash uint64, c *escapement.Claim, reserved bool) (algo.Verdict, error) {
	core, slots := p.Core(), l.newest.slots
	st := algo.State{Ring: zeros[:slots]}
	if !keeps(core, &st, now, c) {
		return c.Ask(core, &st, now), nil
	}
	var ref uint32
	if slots > 0 {
		ref = sh.rings.take(slots)
		st.Ring = sh.rings.at(ref)
	}
	v := c.Ask(core, &st, now)
	var err error
	kept := st.At != 0 || st.A != 0 || st.B != 0
	if kept && !reserved {
		if kept = s.reserve(sh, now, hash); !kept {
			sh.full++
			err = l.full
		}
	}
	if kept {
		i := s.place(sh, now, hash, c.Key)
		if slots > 0 {
			sh.slots[i].putRolling(&st, l.newest.id, ref)
		} else {
			sh.slots[i].put(&st, l.newest.id)
		}
	} else if slots > 0 {
		sh.rings.give(ref)
	}
	return v, err
}

// place makes an empty slot for a key that has none. The caller writes it before it lets
// go of the lock.
func (s *Store) place(sh *shard, now algo.Store, hash uint64, key string) int {
	if sh.crowded() {
		s.widen(sh, now)
	}
	for {
		i, _ := sh.find(hash)
		if sh.insert(i, hash) {
			if s.keyed {
				sh.texts[i] = sh.text.add(key)
			}
			return i
		}
		sh.resize(sh.grown(), s.keyed)
	}
}

// The least time between two sweeps of one shard on behalf of claims: when its table is
// crowded, and when the store is at its cap.
const (
	crowdedPause algo.Span = 100_000
	fullPause    algo.Span = 1_000_000
)

// widen makes room in a crowded table: by dropping what is as good as new, and if that
// leaves little room or was done just now, by growing.
func (s *Store) widen(sh *shard, now algo.Store) {
	if algo.Span(now-sh.swept) >= crowdedPause {
		s.filter(sh, now)
	}
	if uint64(sh.used) >= sh.size*3/5 {
		sh.resize(sh.grown(), s.keyed)
	}
}

// reserve counts one more record, if the cap allows it or another can go.
func (s *Store) reserve(sh *shard, now algo.Store, hash uint64) bool {
	if s.count() {
		return true
	}
	s.hurry.Store(true)
	if s.reclaim(sh, now, hash) && s.count() {
		return true
	}
	s.filterDue(sh, now)
	for range otherShards {
		if s.count() {
			return true
		}
		// Never wait for a second lock: it may be held by one who waits for this.
		if o := &s.shards[s.hand.Add(1)&s.mask]; o.mu.TryLock() {
			s.filterDue(o, o.instant(now))
			o.mu.Unlock()
		}
	}
	return s.count()
}

// otherShards is how many other shards a claim at the cap looks at.
const otherShards = 4

func (s *Store) filterDue(sh *shard, now algo.Store) {
	if algo.Span(now-sh.swept) >= fullPause {
		s.filter(sh, now)
	}
}

// count counts one more record, if the cap allows it.
func (s *Store) count() bool {
	if s.keys.Add(1) <= s.max {
		return true
	}
	s.keys.Add(-1)
	return false
}

// reclaimReach is how many slots a claim at the cap looks at.
const reclaimReach = 16

// reclaim drops one record near a hash that is as good as new.
func (s *Store) reclaim(sh *shard, now algo.Store, hash uint64) bool {
	i, _ := sh.find(hash)
	end := min(i+reclaimReach, len(sh.slots))
	for ; i < end; i++ {
		if sh.slots[i].hash != 0 && s.stale(sh, i, now) {
			s.release(sh, i)
			sh.remove(i)
			sh.dropped++
			return true
		}
	}
	return false
}
