package memstore

import (
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// limit is everything the store knows about one name.
type limit struct {
	name   string
	mix    uint64        // told apart from other names by this part of the hash
	newest *generation   // read under any shard's lock, written under all of them
	chain  []*generation // oldest first, ends with newest; guarded as newest is
	latest atomic.Uint32 // newest.id, for those who hold no lock
	full   error         // what an unknown key is told at the cap
}

// generation is one definition of a limit.
type generation struct {
	id     uint32
	plan   *escapement.Plan
	bucket bool       // a token_bucket or gcra
	slots  int        // words of ring, 0 unless a rolling window
	since  algo.Store // when it replaced the one before
}

func newGeneration(p *escapement.Plan, since algo.Store) *generation {
	a := p.Core().Algorithm()
	return &generation{id: p.ID(), plan: p, bucket: a == algo.TokenBucket || a == algo.GCRA, slots: p.Core().Slots(), since: since}
}

// plans finds the limit of a plan, without a lock once it is known.
type plans struct {
	known atomic.Pointer[numbers]
	names sync.Map // string to *limit

	mu   sync.Mutex // held by the one who adds; taken before any shard's
	seed maphash.Seed
	all  []*limit // guarded by mu
}

// numbers is a table from numbers of plans to limits. It is never changed, only replaced.
type numbers struct {
	mask    uint32
	entries []entry
}

type entry struct {
	id  uint32 // 0 if empty: plans are numbered from 1
	lim *limit
}

func (n *numbers) find(id uint32) *limit {
	for i := id & n.mask; ; i = (i + 1) & n.mask {
		switch e := &n.entries[i]; e.id {
		case id:
			return e.lim
		case 0:
			return nil
		}
	}
}

// number makes the table of every generation that some record may refer to.
func number(all []*limit) *numbers {
	count := 0
	for _, l := range all {
		count += len(l.chain)
	}
	size := 8
	for size < 2*count {
		size *= 2
	}
	n := &numbers{mask: uint32(size - 1), entries: make([]entry, size)}
	for _, l := range all {
		for _, g := range l.chain {
			i := g.id & n.mask
			for n.entries[i].id != 0 {
				i = (i + 1) & n.mask
			}
			n.entries[i] = entry{g.id, l}
		}
	}
	return n
}

// limitOf is the limit that a plan belongs to; a plan not seen before is taken up.
func (s *Store) limitOf(p *escapement.Plan) *limit {
	if l := s.plans.known.Load().find(p.ID()); l != nil {
		return l
	}
	if l, ok := s.plans.names.Load(p.Limit().Name); ok {
		if l := l.(*limit); p.ID() <= l.latest.Load() {
			return l
		}
	}
	return s.takeUp(p)
}

// takeUp makes a plan the newest of its name, unless a newer one is known. From that
// instant on no decision rests on the older plan: every shard is held meanwhile.
func (s *Store) takeUp(p *escapement.Plan) *limit {
	s.plans.mu.Lock()
	defer s.plans.mu.Unlock()
	name := p.Limit().Name
	known, ok := s.plans.names.Load(name)
	if !ok {
		g := newGeneration(p, 0)
		l := &limit{name: name, mix: maphash.String(s.plans.seed, name), newest: g, chain: []*generation{g}}
		l.full = fmt.Errorf("%w: limit %s: %d keys still count; raise the cap or shorten the limits", escapement.ErrFull, name, s.max)
		l.latest.Store(g.id)
		s.plans.all = append(s.plans.all, l)
		s.plans.known.Store(number(s.plans.all))
		s.plans.names.Store(name, l)
		return l
	}
	l := known.(*limit)
	if p.ID() <= l.latest.Load() {
		return l
	}
	now := s.lockAll()
	defer s.unlockAll()
	l.newest = newGeneration(p, now)
	l.chain = append(l.chain, l.newest)
	l.latest.Store(p.ID())
	s.plans.known.Store(number(s.plans.all))
	return l
}

// Adopt announces plans, so that they replace older ones of their names now and not when
// they are first asked for: what a reload of a configuration wants. Records adopt the new
// plan as of this instant, whenever they are next touched (algo.Plan.Adopt). A claim that
// still carries an older plan is decided under the new one.
func (s *Store) Adopt(plans ...*escapement.Plan) {
	for _, p := range plans {
		s.limitOf(p)
	}
}

// newest numbers each limit's current generation.
func (s *Store) newest() map[*limit]uint32 {
	s.plans.mu.Lock()
	defer s.plans.mu.Unlock()
	m := make(map[*limit]uint32, len(s.plans.all))
	for _, l := range s.plans.all {
		m[l] = l.latest.Load()
	}
	return m
}

// retire forgets generations older than those given. No record may refer to them any more.
func (s *Store) retire(older map[*limit]uint32) {
	s.plans.mu.Lock()
	defer s.plans.mu.Unlock()
	var due []*limit
	for _, l := range s.plans.all {
		// Only holders of mu write the chain.
		if l.chain[0].id < older[l] {
			due = append(due, l)
		}
	}
	if len(due) == 0 {
		return
	}
	s.lockAll()
	defer s.unlockAll()
	for _, l := range due {
		var kept []*generation
		for _, g := range l.chain {
			if g.id >= older[l] {
				kept = append(kept, g)
			}
		}
		l.chain = kept
	}
	s.plans.known.Store(number(s.plans.all))
}

// adopt brings the record at i up to the newest generation of its limit. What was as good
// as new when its plan was replaced is as good as new under the next: the record might as
// well have been dropped.
func (sh *shard) adopt(i int, l *limit) {
	sl := &sh.slots[i]
	from := sl.tag()
	k := 0
	for k < len(l.chain)-1 && l.chain[k].id < from {
		k++
	}
	old := l.chain[k]
	ref := uint32(0)
	var st algo.State
	if old.slots > 0 {
		ref = sl.ref()
		st = sl.rolling(&sh.rings)
	} else {
		st = sl.state()
	}
	for _, g := range l.chain[k+1:] {
		if core := g.plan.Core(); !core.Same(old.plan.Core()) {
			var ring []uint32
			next := uint32(0)
			if g.slots > 0 {
				next = sh.rings.take(g.slots)
				ring = sh.rings.at(next)
			}
			if old.plan.Core().Fresh(&st, g.since) {
				st = algo.State{Ring: ring}
			} else {
				st = core.Adopt(old.plan.Core(), st, g.since, ring)
			}
			if old.slots > 0 {
				sh.rings.give(ref)
			}
			ref = next
		}
		old = g
	}
	if old.slots > 0 {
		sl.putRolling(&st, old.id, ref)
	} else {
		sl.put(&st, old.id)
	}
	sh.adopted++
}
