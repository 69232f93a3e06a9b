package main

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
	_ "unsafe" // go:linkname
)

//go:linkname nanotime runtime.nanotime
func nanotime() int64

func cachedClock() *atomic.Int64 {
	c := &new(struct {
		_ [64]byte
		n atomic.Int64
		_ [64]byte
	}).n
	c.Store(nanotime())
	go func() {
		for range time.Tick(time.Millisecond) {
			c.Store(nanotime())
		}
	}()
	return c
}

// shards is the map that a careful user would write around a one-key limiter.
type shards[T any] struct {
	seed maphash.Seed
	s    [256]struct {
		mu sync.RWMutex
		m  map[string]T
		_  [32]byte
	}
}

func newShards[T any]() *shards[T] {
	x := &shards[T]{seed: maphash.MakeSeed()}
	for i := range x.s {
		x.s[i].m = map[string]T{}
	}
	return x
}

func (x *shards[T]) get(key string, mk func() T) T {
	s := &x.s[maphash.String(x.seed, key)&255]
	s.mu.RLock()
	v, ok := s.m[key]
	s.mu.RUnlock()
	if ok {
		return v
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok = s.m[key]; !ok {
		v = mk()
		s.m[key] = v
	}
	return v
}

// floors are what the parts of any limiter cost here.
var floors = []peer{
	{name: "noop", floor: true, build: func(mode) func(string) bool {
		return func(string) bool { return true }
	}},
	{name: "nanotime", floor: true, oneKey: true, build: func(mode) func(string) bool {
		return func(string) bool { return nanotime() != 0 }
	}},
	{name: "time.Since(base)", floor: true, oneKey: true, build: func(mode) func(string) bool {
		base := time.Now()
		return func(string) bool { return time.Since(base) >= 0 }
	}},
	{name: "time.Now()", floor: true, oneKey: true, build: func(mode) func(string) bool {
		return func(string) bool { return !time.Now().IsZero() }
	}},
	{name: "load + CAS", floor: true, oneKey: true, build: func(mode) func(string) bool {
		v := new(struct {
			_ [64]byte
			n atomic.Int64
			_ [64]byte
		})
		return func(string) bool {
			for {
				if o := v.n.Load(); v.n.CompareAndSwap(o, o+1) {
					return true
				}
			}
		}
	}},
	{name: "nanotime + CAS", floor: true, oneKey: true, build: func(mode) func(string) bool {
		v := new(struct {
			_ [64]byte
			n atomic.Int64
			_ [64]byte
		})
		return func(string) bool {
			now := nanotime()
			for {
				if o := v.n.Load(); v.n.CompareAndSwap(o, max(o, now)+1) {
					return true
				}
			}
		}
	}},
	{name: "map lookup + shard mutex", floor: true, build: func(mode) func(string) bool {
		x := newShards[int64]()
		return func(k string) bool {
			s := &x.s[maphash.String(x.seed, k)&255]
			s.mu.Lock()
			_, ok := s.m[k]
			if !ok {
				s.m[k] = 1
			}
			s.mu.Unlock()
			return ok
		}
	}},
	{name: "cached clock (1 ms ticker)", floor: true, oneKey: true, build: func(mode) func(string) bool {
		c := cachedClock()
		return func(string) bool { return c.Load() != 0 }
	}},
}
