package memstore

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

// Clock dates the records of a store. Now must be cheap and safe for concurrent use. If
// the clock also has a method Sync, the store calls it four times a second.
type Clock interface {
	Now() algo.Store
}

// DefaultMaxKeys is the cap of a store that is not told another: at most 255 MB of records,
// rings of rolling windows not counted.
const DefaultMaxKeys = 1 << 22

// Store is an escapement.FastStore in memory. Make one with New.
type Store struct {
	clock  Clock
	line   *clock.Line // clock, if it is one: spares an indirect call
	seed   maphash.Seed
	max    int64
	keyed  bool
	mask   uint64
	shards []shard
	plans  plans

	keys  atomic.Int64
	hurry atomic.Bool   // someone met the cap
	hand  atomic.Uint64 // the shard that is looked at next at the cap

	closing sync.Once
	quit    chan struct{}
	done    chan struct{}
}

var _ escapement.Taker = (*Store)(nil)

// Option configures a Store.
type Option func(*Store)

// WithClock dates records by c instead of a new clock.Line. If c goes back, the store's
// time stands still until c has caught up.
func WithClock(c Clock) Option { return func(s *Store) { s.clock = c } }

// WithMaxKeys caps the number of records; a value below 1 means 1. Each takes up to 62 bytes.
func WithMaxKeys(n int) Option { return func(s *Store) { s.max = max(1, int64(n)) } }

// WithKeys keeps the keys beside the records, so that they can be listed and reset by
// prefix, and so that no two keys ever share a record. For keys of 16 bytes a record then
// takes up to 100 bytes. Of a key longer than escapement.MaxKey only so much is kept.
func WithKeys() Option { return func(s *Store) { s.keyed = true } }

const (
	minShards  = 256
	maxShards  = 1 << 16
	shardReach = 1 << 14 // keys in a shard at the cap: what one growth or sweep has to move
)

// New makes an empty store and starts the goroutine that sweeps it; Close ends it. A
// growing or swept shard is locked for the time it takes to move at most some 16,000
// records, whatever the cap.
func New(opts ...Option) *Store {
	s := &Store{max: DefaultMaxKeys, seed: maphash.MakeSeed(), quit: make(chan struct{}), done: make(chan struct{})}
	for _, o := range opts {
		o(s)
	}
	if s.clock == nil {
		s.clock = clock.NewLine()
	}
	s.line, _ = s.clock.(*clock.Line)
	n := minShards
	for n < maxShards && s.max/int64(n) > shardReach {
		n *= 2
	}
	s.mask = uint64(n - 1)
	s.shards = make([]shard, n)
	for i := range s.shards {
		s.shards[i].slots = noSlots[:]
	}
	s.plans.seed = maphash.MakeSeed()
	s.plans.known.Store(number(nil))
	go s.sweep()
	return s
}

// Close stops the sweeping and waits for it. Closing twice is harmless. The store still
// answers afterwards; it drops old records only when it needs their room.
func (s *Store) Close() error {
	s.closing.Do(func() { close(s.quit) })
	<-s.done
	return nil
}

func (s *Store) now() algo.Store {
	if s.line != nil {
		return s.line.Now()
	}
	return s.clock.Now()
}

// hash tells records apart: of all keys of all limits.
func (s *Store) hash(l *limit, key string) uint64 {
	h := maphash.String(s.seed, key) ^ l.mix
	if h == 0 {
		h = 1
	}
	return h
}

func (s *Store) shard(hash uint64) *shard { return &s.shards[hash&s.mask] }

// lockAll locks every shard and returns an instant not before any decision made so far.
func (s *Store) lockAll() algo.Store {
	for i := range s.shards {
		s.shards[i].mu.Lock()
	}
	now := s.now()
	for i := range s.shards {
		now = s.shards[i].instant(now)
	}
	for i := range s.shards {
		s.shards[i].last = now
	}
	return now
}

func (s *Store) unlockAll() {
	for i := range s.shards {
		s.shards[i].mu.Unlock()
	}
}
