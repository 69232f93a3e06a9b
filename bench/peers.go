package main

import (
	"context"
	"sync"
	"time"

	tollbooth "github.com/didip/tollbooth/v7"
	tblimiter "github.com/didip/tollbooth/v7/limiter"
	"github.com/juju/ratelimit"
	"github.com/mennanov/limiters"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	ululemem "github.com/ulule/limiter/v3/drivers/store/memory"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

var ctx = context.Background()

// mode says which limit a peer is built with.
type mode int

const (
	open   mode = iota // effectively never denies
	closed             // one token, then denied for an hour
	tenPS              // 10/s burst 10: the memory workloads
)

// peer is one row. build returns the decision function.
type peer struct {
	name   string
	oneKey bool // has no keys of its own and is measured bare
	keyed  bool // ours: measured where there are many keys
	floor  bool
	noDeny bool // has no non-blocking denial
	coarse bool // ours, on a clock that ticks each millisecond

	memoryOnly bool // measured for its memory alone
	flood      bool // measured with ten million keys
	build      func(m mode) func(key string) bool
}

// others are the limiters that ours are measured beside.
var others = []peer{
	{name: "x/time/rate", oneKey: true, build: func(m mode) func(string) bool {
		l := xrate(m)
		return func(string) bool { return l.Allow() }
	}},
	{name: "x/time/rate in one mutex map", build: func(m mode) func(string) bool {
		var mu sync.Mutex
		mp := map[string]*rate.Limiter{}
		return func(k string) bool {
			mu.Lock()
			l := mp[k]
			if l == nil {
				l = xrate(m)
				mp[k] = l
			}
			mu.Unlock()
			return l.Allow()
		}
	}},
	{name: "x/time/rate in 256-shard map", build: func(m mode) func(string) bool {
		x := newShards[*rate.Limiter]()
		return func(k string) bool { return x.get(k, func() *rate.Limiter { return xrate(m) }).Allow() }
	}},
	{name: "uber ratelimit (Take)", oneKey: true, noDeny: true, build: func(m mode) func(string) bool {
		l := uber.New(1e9, uber.WithoutSlack)
		return func(string) bool { l.Take(); return true }
	}},
	{name: "juju/ratelimit", oneKey: true, build: func(m mode) func(string) bool {
		b := juju(m)
		return func(string) bool { return b.TakeAvailable(1) == 1 }
	}},
	{name: "juju/ratelimit in 256-shard map", build: func(m mode) func(string) bool {
		x := newShards[*ratelimit.Bucket]()
		return func(k string) bool {
			return x.get(k, func() *ratelimit.Bucket { return juju(m) }).TakeAvailable(1) == 1
		}
	}},
	{name: "sethvargo memorystore", flood: true, build: func(m mode) func(string) bool {
		c := &memorystore.Config{Tokens: 1 << 40, Interval: time.Hour}
		switch m {
		case closed:
			c.Tokens = 1
		case tenPS:
			c.Tokens, c.Interval, c.SweepInterval, c.SweepMinTTL = 10, time.Second, 2*time.Second, 2*time.Second
		}
		s, err := memorystore.New(c)
		must(err)
		return func(k string) bool { _, _, _, ok, _ := s.Take(ctx, k); return ok }
	}},
	{name: "throttled memstore", build: func(m mode) func(string) bool {
		s, err := memstore.NewCtx(0)
		must(err)
		q := throttled.RateQuota{MaxRate: throttled.PerSec(1e9), MaxBurst: 1e9}
		switch m {
		case closed:
			q = throttled.RateQuota{MaxRate: throttled.PerHour(1)}
		case tenPS:
			q = throttled.RateQuota{MaxRate: throttled.PerSec(10), MaxBurst: 9}
		}
		l, err := throttled.NewGCRARateLimiterCtx(s, q)
		must(err)
		return func(k string) bool { d, _, err := l.RateLimitCtx(ctx, k, 1); return err == nil && !d }
	}},
	{name: "ulule memory", build: func(m mode) func(string) bool {
		o, r := ulule.StoreOptions{Prefix: "l", CleanUpInterval: 30 * time.Second}, ulule.Rate{Period: time.Hour, Limit: 1 << 40}
		switch m {
		case closed:
			r.Limit = 1
		case tenPS:
			r.Limit, r.Period, o.CleanUpInterval = 10, time.Second, 2*time.Second
		}
		l := ulule.New(ululemem.NewStoreWithOptions(o), r)
		return func(k string) bool { c, err := l.Get(ctx, k); return err == nil && !c.Reached }
	}},
	{name: "mennanov TokenBucket local", oneKey: true, build: func(m mode) func(string) bool {
		b := menn(m)
		return func(string) bool { _, err := b.Limit(ctx); return err == nil }
	}},
	{name: "mennanov TokenBucket + Registry", build: func(m mode) func(string) bool {
		r, ttl := limiters.NewRegistry(), time.Hour
		if m == tenPS {
			ttl = time.Second
			go func() { // the library leaves sweeping to its user
				for now := range time.Tick(2 * time.Second) {
					r.DeleteExpired(now)
				}
			}()
		}
		return func(k string) bool {
			b := r.GetOrCreate(k, func() any { return menn(m) }, ttl, time.Now()).(*limiters.TokenBucket)
			_, err := b.Limit(ctx)
			return err == nil
		}
	}},
	{name: "tollbooth v7", build: func(m mode) func(string) bool {
		o := &tblimiter.ExpirableOptions{DefaultExpirationTTL: time.Hour}
		r, b := 1e9, 1<<40
		switch m {
		case closed:
			r, b = 1.0/3600, 1
		case tenPS:
			r, b, o.DefaultExpirationTTL = 10, 10, 2*time.Second
		}
		l := tollbooth.NewLimiter(r, o).SetBurst(b)
		return func(k string) bool { return tollbooth.LimitByKeys(l, []string{k}) == nil }
	}},
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func xrate(m mode) *rate.Limiter {
	switch m {
	case closed:
		return rate.NewLimiter(rate.Every(time.Hour), 1)
	case tenPS:
		return rate.NewLimiter(10, 10)
	}
	return rate.NewLimiter(1e9, 1<<40)
}

func juju(m mode) *ratelimit.Bucket {
	switch m {
	case closed:
		return ratelimit.NewBucket(time.Hour, 1)
	case tenPS:
		return ratelimit.NewBucket(100*time.Millisecond, 10)
	}
	return ratelimit.NewBucket(1, 1<<40)
}

func menn(m mode) *limiters.TokenBucket {
	c, r := int64(1<<40), time.Nanosecond
	switch m {
	case closed:
		c, r = 1, time.Hour
	case tenPS:
		c, r = 10, 100*time.Millisecond
	}
	return limiters.NewTokenBucket(c, r, limiters.NewLockNoop(), limiters.NewTokenBucketInMemory(), limiters.NewSystemClock(), noLog{})
}

type noLog struct{}

func (noLog) Log(...any) {}
