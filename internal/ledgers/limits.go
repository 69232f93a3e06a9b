package ledgers

import (
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// limit is everything known about one name.
type limit struct {
	name   string
	mix    uint64 // part of the hash of its keys
	latest atomic.Pointer[escapement.Plan]
	full   error

	base     atomic.Int64 // the interval asked for, in microseconds
	longest  atomic.Int64
	interval atomic.Int64 // in force
	ticking  atomic.Int64 // keys that sync

	mu  sync.Mutex
	top tops
}

// tops are the largest figures seen.
type tops struct {
	over   int64 // units above the limit in one window of one key
	unseen [2]int64
	since  algo.Mono // when the first of unseen began
	begun  bool
	late   int64
	lost   int64
}

// limits finds the limit of a plan, without a lock once it is known.
type limits struct {
	known atomic.Pointer[numbers]
	mu    sync.Mutex
	names map[string]*limit // guarded by mu
}

// numbers is a table from the numbers of the newest plans to their limits, replaced as a
// whole; a power of two long and at most half full.
type numbers []numbered

type numbered struct {
	id uint32
	l  *limit // nil if empty
}

func (n numbers) find(id uint32) *limit {
	mask := uint32(len(n) - 1)
	for i := id & mask; ; i = (i + 1) & mask {
		if e := &n[i]; e.l == nil || e.id == id {
			return e.l
		}
	}
}

func number(names map[string]*limit) *numbers {
	size := 8
	for size < 2*len(names) {
		size *= 2
	}
	n := make(numbers, size)
	for _, l := range names {
		id := l.latest.Load().ID()
		i := id & uint32(size-1)
		for n[i].l != nil {
			i = (i + 1) & uint32(size-1)
		}
		n[i] = numbered{id, l}
	}
	return &n
}

// limitOf is the limit that a plan belongs to; a plan not seen before is taken up.
func (s *Store[L, M, R, P]) limitOf(p *escapement.Plan) *limit {
	if l := s.limits.known.Load().find(p.ID()); l != nil {
		return l
	}
	return s.takeUp(p)
}

func (s *Store[L, M, R, P]) takeUp(p *escapement.Plan) *limit {
	t := &s.limits
	t.mu.Lock()
	defer t.mu.Unlock()
	name := p.Limit().Name
	l := t.names[name]
	if l == nil {
		l = &limit{name: name, mix: maphash.String(s.seed, name)}
		l.full = fmt.Errorf("%w: limit %s: %d keys are in use here; raise the cap of keys", escapement.ErrFull, name, s.cfg.MaxKeys)
		t.names[name] = l
	}
	if newest := l.latest.Load(); newest != nil && newest.ID() >= p.ID() {
		return l
	}
	l.latest.Store(p)
	base := int64(p.Limit().Sync.Microseconds())
	l.base.Store(base)
	l.longest.Store(max(base, int64(s.cfg.Longest(p))))
	l.interval.Store(base)
	t.known.Store(number(t.names))
	return l
}

// all are the limits of a moment.
func (s *Store[L, M, R, P]) all() []*limit {
	known := *s.limits.known.Load()
	list := make([]*limit, 0, len(known)/2)
	for _, n := range known {
		if n.l != nil {
			list = append(list, n.l)
		}
	}
	return list
}

// ruling is the plan that judges a claim: its own, or the one that replaced it.
func (l *limit) ruling(p *escapement.Plan) *escapement.Plan {
	if newest := l.latest.Load(); p.ID() < newest.ID() {
		return newest
	}
	return p
}
