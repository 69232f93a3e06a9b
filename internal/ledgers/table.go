package ledgers

import (
	"sync"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// entry is a key with its ledger. All but the identity is guarded by the shard's lock.
// What most requests touch stands first.
type entry[L any] struct {
	plan   *escapement.Plan
	queued bool // in the heap of its shard, or among what is due
	urgent bool // on the list of those a request waits at
	aged   bool // idle when last looked at
	ledger L

	waiters  []*waiter
	interval algo.Span
	phase    algo.Mono

	hash  uint64
	limit *limit
	key   string
}

// shard is a part of the keys under one lock, which guards all the rest.
type shard[L any] struct {
	mu     sync.Mutex
	slots  []slot[L] // open-addressed; a power of two long
	used   int
	due    []alarm[L] // a heap, the earliest first
	closed bool

	admitted, refused, unavailable, full uint64

	_ [64]byte
}

type slot[L any] struct {
	hash uint64
	e    *entry[L]
}

// alarm is when an entry ticks.
type alarm[L any] struct {
	at algo.Mono
	e  *entry[L]
}

func (sh *shard[L]) home(hash uint64) int { return int(hash>>32) & (len(sh.slots) - 1) }

// find is the entry of a key, nil if there is none. As in memory, a hash is a key: it has
// 64 bits and a seed that nobody knows.
func (sh *shard[L]) find(hash uint64) *entry[L] {
	if len(sh.slots) == 0 {
		return nil
	}
	for i := sh.home(hash); ; i = (i + 1) & (len(sh.slots) - 1) {
		s := &sh.slots[i]
		if s.e == nil {
			return nil
		}
		if s.hash == hash {
			return s.e
		}
	}
}

func (sh *shard[L]) insert(e *entry[L]) {
	if 4*(sh.used+1) > 3*len(sh.slots) {
		old := sh.slots
		sh.slots = make([]slot[L], max(8, 2*len(old)))
		for _, s := range old {
			if s.e != nil {
				sh.put(s)
			}
		}
	}
	sh.put(slot[L]{e.hash, e})
	sh.used++
}

func (sh *shard[L]) put(s slot[L]) {
	i := sh.home(s.hash)
	for sh.slots[i].e != nil {
		i = (i + 1) & (len(sh.slots) - 1)
	}
	sh.slots[i] = s
}

// remove takes an entry out and closes the gap.
func (sh *shard[L]) remove(e *entry[L]) {
	mask := len(sh.slots) - 1
	i := sh.home(e.hash)
	for sh.slots[i].e != e {
		if sh.slots[i].e == nil {
			return
		}
		i = (i + 1) & mask
	}
	sh.used--
	for j := (i + 1) & mask; sh.slots[j].e != nil; j = (j + 1) & mask {
		// What stands at j may move to i unless its home lies behind i.
		if h := sh.home(sh.slots[j].hash); (j-h)&mask >= (j-i)&mask {
			sh.slots[i] = sh.slots[j]
			i = j
		}
	}
	sh.slots[i] = slot[L]{}
}

// push sets an alarm and reports whether it is the first to ring.
func (sh *shard[L]) push(a alarm[L]) bool {
	sh.due = append(sh.due, a)
	i := len(sh.due) - 1
	for i > 0 {
		up := (i - 1) / 2
		if sh.due[up].at <= a.at {
			break
		}
		sh.due[i], i = sh.due[up], up
	}
	sh.due[i] = a
	return i == 0
}

func (sh *shard[L]) pop() alarm[L] {
	first, last := sh.due[0], sh.due[len(sh.due)-1]
	sh.due[len(sh.due)-1] = alarm[L]{}
	sh.due = sh.due[:len(sh.due)-1]
	n := len(sh.due)
	if n == 0 {
		return first
	}
	i := 0
	for {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && sh.due[c+1].at < sh.due[c].at {
			c++
		}
		if sh.due[c].at >= last.at {
			break
		}
		sh.due[i], i = sh.due[c], c
	}
	sh.due[i] = last
	return first
}
