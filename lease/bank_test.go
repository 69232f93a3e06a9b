package lease

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

var errLost = errors.New("a message was lost")

// bank is a lender in this process: the records of all keys, and the store's clock.
type bank struct {
	mu      sync.Mutex
	random  *rand.Rand
	fixed   map[string]*algo.FixedLease
	rolling map[string]*algo.RollingLease
	buckets map[string]*algo.BucketLease
	offset  time.Duration // of the store's line from the monotonic clock
	delay   time.Duration // the longest each way
	lose    float64       // part of the calls, half of them before the store, half after it
	away    bool
	calls   int
	largest int
	keys    int
	windows map[string]map[int64]int64 // of exact callers: units by window or bucket
}

func newBank(seed uint64) *bank {
	return &bank{random: rand.New(rand.NewPCG(seed, 1)), offset: 20_000*24*time.Hour - time.Duration(clock.Mono()),
		fixed: map[string]*algo.FixedLease{}, rolling: map[string]*algo.RollingLease{}, buckets: map[string]*algo.BucketLease{}, windows: map[string]map[int64]int64{}}
}

func (b *bank) now() algo.Store {
	return algo.Store((time.Duration(clock.Mono()) + b.offset) / time.Microsecond)
}

// set takes the lender away, or brings it back.
func (b *bank) set(away bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = away
}

// pass lets a message travel, and reports whether it arrives.
func (b *bank) pass() bool {
	b.mu.Lock()
	d, ok := time.Duration(0), !b.away && b.random.Float64() >= b.lose/2
	if b.delay > 0 {
		d = time.Duration(b.random.Int64N(int64(b.delay)))
	}
	b.mu.Unlock()
	if d > 0 {
		time.Sleep(d)
	}
	return ok
}

func (b *bank) Lend(_ context.Context, loans []escapement.Loan, answers []escapement.Granted) {
	b.mu.Lock()
	b.calls++
	b.keys += len(loans)
	b.largest = max(b.largest, len(loans))
	b.mu.Unlock()
	lost := func() {
		for i := range answers {
			answers[i] = escapement.Granted{Outcome: escapement.Unknown, Err: errLost}
		}
	}
	if !b.pass() {
		lost()
		return
	}
	b.mu.Lock()
	for i := range loans {
		answers[i] = escapement.Granted{Outcome: escapement.Decided, Grant: b.sync(&loans[i])}
	}
	b.mu.Unlock()
	if !b.pass() {
		lost()
	}
}

func (b *bank) sync(l *escapement.Loan) algo.Grant {
	lease, _ := l.Plan.Lease()
	name := l.Plan.Limit().Name + "/" + l.Key
	if lease.IsBucket() {
		r := b.buckets[name]
		if r == nil {
			r = &algo.BucketLease{}
			b.buckets[name] = r
		}
		return lease.SyncBucket(r, b.now(), &l.Ask)
	}
	if lease.Width > 0 {
		r := b.rolling[name]
		if r == nil {
			r = &algo.RollingLease{}
			b.rolling[name] = r
		}
		return lease.SyncRolling(r, b.now(), &l.Ask)
	}
	r := b.fixed[name]
	if r == nil {
		r = &algo.FixedLease{}
		b.fixed[name] = r
	}
	return lease.SyncFixed(r, b.now(), &l.Ask)
}

// exact is a request decided at the store, on the record that leases use.
func (b *bank) exact(p *escapement.Plan, key string, cost int64) (at algo.Store, admitted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.sync(&escapement.Loan{Plan: p, Key: key, Ask: algo.Ask{Exact: cost}})
	return g.At, g.Admitted
}

// generous is a lender that hands out far more than is asked for.
type generous struct{ *bank }

func (g generous) Lend(_ context.Context, loans []escapement.Loan, answers []escapement.Granted) {
	const plenty = 1 << 40
	now := g.now()
	for i := range loans {
		if loans[i].Ask.Want == 0 {
			answers[i] = escapement.Granted{Outcome: escapement.Decided, Grant: algo.Grant{At: now}}
			continue
		}
		l, _ := loans[i].Plan.Lease()
		grant := algo.Grant{At: now, Available: plenty, Window: int64(now) / int64(l.Per), Units: plenty}
		if l.Width > 0 {
			from := int64(now) / int64(l.Width)
			grant.Units, grant.Lots = 0, []algo.Lot{{From: from, Units: plenty, Expiry: from + l.Buckets}}
		}
		answers[i] = escapement.Granted{Outcome: escapement.Decided, Grant: grant}
	}
}
