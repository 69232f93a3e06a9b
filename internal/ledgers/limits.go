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
	known atomic.Pointer[map[uint32]*limit]
	mu    sync.Mutex
	names map[string]*limit // guarded by mu
}

// limitOf is the limit that a plan belongs to; a plan not seen before is taken up.
func (s *Store[L, M, R, P]) limitOf(p *escapement.Plan) *limit {
	if l := (*s.limits.known.Load())[p.ID()]; l != nil {
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
		l.full = fmt.Errorf("%w: limit %s: %d keys are in use here; raise the cap of keys", escapement.ErrStoreUnavailable, name, s.cfg.MaxKeys)
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
	known := make(map[uint32]*limit, len(t.names))
	for _, l := range t.names {
		known[l.latest.Load().ID()] = l
	}
	t.known.Store(&known)
	return l
}

// all are the limits of a moment.
func (s *Store[L, M, R, P]) all() []*limit {
	known := *s.limits.known.Load()
	list := make([]*limit, 0, len(known))
	for _, l := range known {
		list = append(list, l)
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
