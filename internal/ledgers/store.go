package ledgers

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

// Store answers claims from ledgers. Make one with New.
type Store[L, M, R any, P Ledger[L, M, R]] struct {
	cfg    Config[M, R]
	exact  escapement.Store
	fast   escapement.FastStore // exact, if it has the shorter way
	born   algo.Mono            // instants count from here: ledgers want none below zero
	seed   maphash.Seed
	shards []shard[L]
	limits limits

	numbers atomic.Int64 // see Setting
	keys    atomic.Int64
	ticking atomic.Int64
	slots   atomic.Int64 // phases within an interval, a power of two
	line    atomic.Int64 // the store's line less the monotonic clock, in nanoseconds
	lined   atomic.Bool  // line means something
	kick    chan struct{}
	wake    atomic.Int64 // when the clerk will look by itself

	mu     sync.Mutex
	urgent []*entry[L] // guarded by mu: at each of them a request waits

	clerk   clerk[L]
	calls   counters
	closing sync.Once
	quit    chan struct{}
	done    chan struct{}
	under   sync.WaitGroup // calls under way
	flying  atomic.Int64   // as many
}

const shards = 256

const forever algo.Mono = math.MaxInt64

// errClosed is what a claim is told after Close.
var errClosed = fmt.Errorf("%w: this instance shuts down and keeps no ledgers any more", escapement.ErrStoreUnavailable)

// errAway is what a claim is told whose ledger is spent while the store does not answer.
var errAway = fmt.Errorf("%w: it did not answer, and what was known of the limit is used up or over", escapement.ErrStoreUnavailable)

// New makes a store of ledgers before an exact one, and starts its clerk; Close ends it.
func New[L, M, R any, P Ledger[L, M, R]](exact escapement.Store, cfg Config[M, R]) *Store[L, M, R, P] {
	cfg.Options = cfg.filled()
	s := &Store[L, M, R, P]{cfg: cfg, exact: exact, seed: maphash.MakeSeed(), shards: make([]shard[L], shards),
		kick: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	s.fast, _ = exact.(escapement.FastStore)
	s.limits.names = map[string]*limit{}
	s.limits.known.Store(number(nil))
	s.slots.Store(1)
	s.born = clock.Mono()
	go s.run()
	return s
}

// owns reports whether claims of a plan are answered from ledgers.
func (s *Store[L, M, R, P]) owns(p *escapement.Plan) bool {
	l := p.Limit()
	return l.Sync > 0 && l.SyncMode == s.cfg.Mode
}

func (s *Store[L, M, R, P]) now() algo.Mono { return clock.Mono() - s.born }

func (s *Store[L, M, R, P]) hash(l *limit, key string) uint64 {
	return maphash.String(s.seed, key) ^ l.mix
}

func (s *Store[L, M, R, P]) shard(hash uint64) *shard[L] { return &s.shards[hash&(shards-1)] }

// setting is when a new ledger syncs.
func (s *Store[L, M, R, P]) setting(l *limit, hash uint64) Setting {
	interval := algo.Span(l.interval.Load())
	return Setting{Instance: s.cfg.Instance, Numbers: &s.numbers, Interval: interval, Phase: s.phase(interval, hash), MaxWait: algo.Mono(s.cfg.MaxWait)}
}

// open is the entry of a key, made if there is none and ready for the plan. The caller
// holds the shard.
func (s *Store[L, M, R, P]) open(sh *shard[L], l *limit, hash uint64, p *escapement.Plan, key string) (*entry[L], error) {
	if sh.closed {
		return nil, errClosed
	}
	e := sh.find(hash)
	if e != nil {
		return s.replan(sh, e, p), nil
	}
	if s.keys.Add(1) > int64(s.cfg.MaxKeys) {
		s.keys.Add(-1)
		if !s.reclaim(sh, hash) {
			sh.full++
			return nil, l.full
		}
		s.keys.Add(1)
	}
	e = s.make(l, hash, p, strings.Clone(key))
	sh.insert(e)
	return e, nil
}

// replan brings an entry to the plan of a claim: a variant, or one that came after. If
// that needs a new ledger, the old one says what it has left to say and falls silent.
func (s *Store[L, M, R, P]) replan(sh *shard[L], e *entry[L], p *escapement.Plan) *entry[L] {
	if e.plan == p {
		return e
	}
	if P(&e.ledger).Replan(p) {
		e.plan = p
		return e
	}
	fresh := s.make(e.limit, e.hash, p, e.key)
	sh.remove(e)
	sh.insert(fresh)
	return fresh
}

func (s *Store[L, M, R, P]) make(l *limit, hash uint64, p *escapement.Plan, key string) *entry[L] {
	e := &entry[L]{plan: p, hash: hash, limit: l, key: key}
	set := s.setting(l, hash)
	e.interval, e.phase = set.Interval, set.Phase
	P(&e.ledger).Open(p, set)
	return e
}

// reclaimLook is how many places of a shard are searched for a silent key: what a claim
// costs is bounded however full the table is. The sweep finds the others.
const reclaimLook = 64

// reclaim drops one key of the shard that is silent, near the place of a hash.
func (s *Store[L, M, R, P]) reclaim(sh *shard[L], hash uint64) bool {
	for i := range min(reclaimLook, len(sh.slots)) {
		if e := sh.slots[(sh.home(hash)+i)&(len(sh.slots)-1)].e; e != nil && s.silent(e) {
			s.drop(sh, e)
			return true
		}
	}
	return false
}

func (s *Store[L, M, R, P]) silent(e *entry[L]) bool {
	return !e.queued && !e.urgent && len(e.waiters) == 0 && P(&e.ledger).Idle()
}

func (s *Store[L, M, R, P]) drop(sh *shard[L], e *entry[L]) {
	sh.remove(e)
	s.keys.Add(-1)
}

// check is what is wrong with a claim of a plan that is this store's own.
func check(c *escapement.Claim) error {
	name := c.Plan.Limit().Name
	switch {
	case uint64(c.Cost) > uint64(algo.MaxInt):
		return fmt.Errorf("%w: %d for limit %s; use 0 to 2^53-1", escapement.ErrCost, c.Cost, name)
	case uint64(c.Receipt.Units) > uint64(algo.MaxInt):
		return fmt.Errorf("%w: limit %s: a receipt for %d units; use the one of a decision", escapement.ErrCost, name, c.Receipt.Units)
	case c.Mode > escapement.Peek:
		return fmt.Errorf("%w: limit %s: unknown mode %d", escapement.ErrRequest, name, c.Mode)
	case c.Receipt.At < 0:
		return fmt.Errorf("%w: limit %s: a receipt from before the epoch; use the one of a decision", escapement.ErrRequest, name)
	}
	return nil
}

// behind asks the exact store about one claim.
func (s *Store[L, M, R, P]) behind(ctx context.Context, c escapement.Claim) (escapement.Decision, error) {
	if s.fast != nil {
		return s.fast.DecideOne(ctx, c)
	}
	requests := [1]escapement.Request{{Claims: []escapement.Claim{c}}}
	var answers [1]escapement.Answer
	s.exact.Decide(ctx, requests[:], answers[:])
	if a := &answers[0]; a.Outcome == escapement.Decided && len(a.Parts) > 0 {
		return a.Parts[0], nil
	} else if a.Err != nil {
		return escapement.Decision{}, a.Err
	}
	return escapement.Decision{}, errors.New("ledgers: the store behind answered nothing")
}
