package lease

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/memstore"
)

var seedFlag = flag.Uint64("lease.seed", 0, "repeat the random world of this seed")

// use is what was admitted, dated by the store's clock.
type use struct {
	at    algo.Store
	units int64
}

// world is instances, exact callers and a lender that share some keys.
type world struct {
	*testing.T
	r    *rand.Rand
	plan *escapement.Plan
	bank *bank

	mu   sync.Mutex
	uses map[string][]use
}

func (w *world) admitted(key string, units int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.uses[key] = append(w.uses[key], use{w.bank.now(), units})
}

// TestRandomWorlds has instances and exact callers ask at random, over a network that
// delays and loses, of a lender that goes away. In no window of the store's clock, and in
// no span of a rolling one, is more admitted than the limit.
func TestRandomWorlds(t *testing.T) {
	n := 40
	if testing.Short() {
		n = 10
	}
	if *seedFlag != 0 {
		n = 1
	}
	for range n {
		seed := *seedFlag
		if seed == 0 {
			seed = rand.Uint64N(1<<53-1) + 1
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{T: t, r: rand.New(rand.NewPCG(seed, 0)), bank: newBank(seed), uses: map[string][]use{}}
				w.run()
				if t.Failed() {
					t.Logf("to repeat: go test -run '^TestRandomWorlds$' ./lease -args -lease.seed=%d", seed)
				}
			})
		})
	}
}

func (w *world) run() {
	r := w.r
	per := []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second}[r.IntN(3)]
	count := []int64{1, 5, 50, 500}[r.IntN(4)]
	sync := per / time.Duration(2+r.IntN(8))
	l := fixedLimit(count, per, max(sync, 20*time.Millisecond).Truncate(time.Microsecond))
	switch r.IntN(3) {
	case 0:
		l = rollingLimit(count, per, l.Sync)
	case 1:
		l = escapement.Limit{Name: "bucket", Rate: l.Rate, Sync: l.Sync, Burst: count*int64(l.Sync)/int64(per) + 1 + r.Int64N(count)}
	}
	w.plan = compile(w, l)
	w.bank.delay = []time.Duration{0, time.Millisecond, 10 * time.Millisecond}[r.IntN(3)]
	w.bank.lose = []float64{0, 0.01, 0.2}[r.IntN(3)]
	w.bank.offset += time.Duration(r.Int64N(int64(per)))
	keys := []string{"a", "b", "c"}[:1+r.IntN(3)]
	var all []*Store
	m := memstore.New()
	defer m.Close()
	for range 1 + r.IntN(4) {
		all = append(all, NewStore(w.bank, m, Options{}))
	}
	w.callers(all, keys)
	if r.IntN(3) == 0 {
		time.Sleep(20 * time.Second) // all keys are dropped
		w.callers(all, keys)
	}
	for _, s := range all {
		if err := s.Close(context.Background()); err != nil {
			w.Error(err)
		}
	}
	for _, key := range keys {
		w.judge(key)
	}
}

// callers asks for some windows, in which the lender goes away once.
func (w *world) callers(all []*Store, keys []string) {
	lasts := 5 * w.plan.Limit().Rate.Per
	ctx, cancel := context.WithTimeout(w.Context(), lasts)
	defer cancel()
	var done sync.WaitGroup
	pause := lasts / time.Duration(100+w.r.IntN(400))
	for i, s := range all {
		for j := range 3 {
			r := rand.New(rand.NewPCG(w.r.Uint64(), uint64(10*i+j)))
			done.Go(func() {
				for ctx.Err() == nil {
					w.ask(ctx, s, keys[r.IntN(len(keys))], 1+r.Int64N(2)*r.Int64N(3), r)
					time.Sleep(time.Duration(r.Int64N(int64(2 * pause))))
				}
			})
		}
	}
	r := rand.New(rand.NewPCG(w.r.Uint64(), 3))
	done.Go(func() {
		for ctx.Err() == nil {
			key, cost := keys[r.IntN(len(keys))], 1+r.Int64N(3)
			if _, ok := w.bank.exact(w.plan, key, cost); ok {
				w.admitted(key, cost)
			}
			time.Sleep(time.Duration(r.Int64N(int64(20 * pause))))
		}
	})
	time.Sleep(lasts / 3)
	w.bank.set(true)
	time.Sleep(time.Duration(w.r.Int64N(int64(lasts / 4))))
	w.bank.set(false)
	done.Wait()
}

// ask asks in one of several ways; some that were admitted give back.
func (w *world) ask(ctx context.Context, s *Store, key string, cost int64, r *rand.Rand) {
	c := escapement.Claim{Plan: w.plan, Key: key, Cost: cost}
	switch r.IntN(10) {
	case 0:
		c.Mode = escapement.TakeUpTo
	case 1:
		var short context.CancelFunc
		ctx, short = context.WithTimeout(ctx, time.Duration(r.Int64N(int64(10*time.Millisecond))))
		defer short()
	}
	d, err := s.DecideOne(ctx, c)
	if err != nil && !errors.Is(err, escapement.ErrStoreUnavailable) && ctx.Err() == nil {
		w.Error(err)
	}
	if err != nil || !d.Allowed || d.Units() == 0 {
		return
	}
	if at, now := d.At(), w.bank.now(); at > now+100_000 || at < now-100_000 {
		w.Errorf("a decision at %d when the store is at %d", at, now)
	}
	if r.IntN(10) == 0 {
		back, err := s.DecideOne(context.WithoutCancel(ctx), escapement.Claim{Plan: w.plan, Key: key, Mode: escapement.Refund, Receipt: d.Receipt()})
		if err != nil || back.Units() > d.Units() {
			w.Errorf("a refund of %d gives back %d: %v", d.Units(), back.Units(), err)
		}
		if cost = d.Units() - back.Units(); cost > 0 {
			w.admitted(key, cost)
		}
		return
	}
	w.admitted(key, d.Units())
}

// judge counts what was admitted under a key.
func (w *world) judge(key string) {
	l := w.plan.Limit()
	per := algo.Store(l.Rate.Per.Microseconds())
	uses := w.uses[key]
	slices.SortStableFunc(uses, func(a, b use) int { return int(a.at - b.at) })
	if l.Algorithm == escapement.TokenBucket {
		w.judgeBucket(key, uses)
		return
	}
	inside, from := int64(0), 0
	for _, u := range uses {
		inside += u.units
		for ; l.Algorithm == escapement.FixedWindow && uses[from].at/per < u.at/per || uses[from].at <= u.at-per; from++ {
			inside -= uses[from].units
		}
		if inside > l.Rate.Count {
			w.Fatalf("key %s: %d admitted until %d, of a limit of %d per %v (%v, sync %v)", key, inside, u.at, l.Rate.Count, l.Rate.Per, l.Algorithm, l.Sync)
		}
	}
	w.Logf("key %s: %d admissions of %d per %v, %v", key, len(uses), l.Rate.Count, l.Rate.Per, l.Algorithm)
}

// judgeBucket charges a bucket with what was admitted: it is never in debt.
func (w *world) judgeBucket(key string, uses []use) {
	core := w.plan.Core()
	var s algo.State
	for _, u := range uses {
		core.Charge(&s, u.at, u.units, 0)
		if n := core.Numbers(); s.A > n.Full {
			w.Fatalf("key %s: at %d %d more than the burst of %d and what came back", key, u.at, (s.A-n.Full)/n.P, n.Count)
		}
	}
	w.Logf("key %s: %d admissions of a bucket of %d", key, len(uses), core.Capacity())
}
