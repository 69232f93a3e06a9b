package memstore

import (
	"errors"
	"iter"
	"strings"
)

// ErrNoKeys says that a store without WithKeys was asked for the text of keys.
var ErrNoKeys = errors.New("memstore: the store keeps no keys; make it with WithKeys")

// Reset forgets what a key has used of the limit of a name, so that it is as new. It
// reports whether there was a record.
func (s *Store) Reset(limit, key string) bool {
	l := s.named(limit)
	if l == nil {
		return false
	}
	h := s.hash(l, key)
	sh := s.shard(h)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	i, ok := s.locate(sh, l, h, key)
	if ok {
		s.release(sh, i)
		sh.remove(i)
	}
	return ok
}

// ResetPrefix forgets every key of the limit of a name that begins with prefix, and
// returns how many there were. Of a key longer than escapement.MaxKey only so much is
// compared. It needs WithKeys. Keys that arrive meanwhile may stay.
func (s *Store) ResetPrefix(limit, prefix string) (int, error) {
	if !s.keyed {
		return 0, ErrNoKeys
	}
	count := 0
	if l := s.named(limit); l != nil {
		for i := range s.shards {
			count += s.resetShard(&s.shards[i], l, prefix)
		}
	}
	return count, nil
}

func (s *Store) resetShard(sh *shard, l *limit, prefix string) (count int) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.table.filter(func(i int) bool {
		if !s.begins(sh, i, l, prefix) {
			return true
		}
		s.release(sh, i)
		count++
		return false
	})
	return count
}

// Keys lists the keys of the limit of a name that have a record and begin with prefix, in
// no order: those that have used something, and some whose use no longer counts. Of a key
// longer than escapement.MaxKey it gives the beginning. It needs WithKeys. The store is
// not held while the caller looks at a key.
func (s *Store) Keys(limit, prefix string) (iter.Seq[string], error) {
	if !s.keyed {
		return nil, ErrNoKeys
	}
	return func(yield func(string) bool) {
		l := s.named(limit)
		if l == nil {
			return
		}
		for i := range s.shards {
			for _, key := range s.keysOf(&s.shards[i], l, prefix) {
				if !yield(key) {
					return
				}
			}
		}
	}, nil
}

func (s *Store) keysOf(sh *shard, l *limit, prefix string) (keys []string) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for i := range sh.slots {
		if sh.slots[i].hash != 0 && s.begins(sh, i, l, prefix) {
			_, kept, _ := sh.text.entry(sh.texts[i])
			keys = append(keys, string(kept))
		}
	}
	return keys
}

// begins reports whether the record at i is one of the limit, under a key with the prefix.
func (s *Store) begins(sh *shard, i int, l *limit, prefix string) bool {
	_, kept, _ := sh.text.entry(sh.texts[i])
	return strings.HasPrefix(string(kept), prefix) && s.plans.known.Load().find(sh.slots[i].tag()) == l
}

// named is the limit of a name, nil if no plan of it was seen.
func (s *Store) named(name string) *limit {
	l, ok := s.plans.names.Load(name)
	if !ok {
		return nil
	}
	return l.(*limit)
}
