package batch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/memstore"
)

var seedFlag = flag.Uint64("batch.seed", 0, "repeat the random world of this seed")

// world is instances and a collector that share some keys.
type world struct {
	*testing.T
	r      *rand.Rand
	plan   *escapement.Plan
	office *office

	mu       sync.Mutex
	admitted map[string]map[algo.Store]int64 // by key and window
}

// TestRandomWorlds has instances ask at random, over a network that delays and loses, of a
// collector that goes away. Everything that was admitted is recorded once, and no instance
// admits more than the limit in a window.
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
				w := &world{T: t, r: rand.New(rand.NewPCG(seed, 0)), office: newOffice(seed), admitted: map[string]map[algo.Store]int64{}}
				w.run()
				if t.Failed() {
					t.Logf("to repeat: go test -run '^TestRandomWorlds$' ./batch -args -batch.seed=%d", seed)
				}
			})
		})
	}
}

func (w *world) run() {
	r := w.r
	l := limits()[r.IntN(4)]
	l.Rate.Count = []int64{1, 5, 50, 500}[r.IntN(4)]
	w.plan = compile(w, l)
	w.office.delay = []time.Duration{0, time.Millisecond, 10 * time.Millisecond}[r.IntN(3)]
	w.office.lose = []float64{0, 0.01, 0.2}[r.IntN(3)]
	w.office.offset += time.Duration(r.Int64N(int64(10 * time.Second)))
	keys := []string{"a", "b", "c"}[:1+r.IntN(3)]
	for _, k := range keys {
		w.admitted[k] = map[algo.Store]int64{}
	}
	m := memstore.New()
	defer m.Close()
	var all []*Store
	for range 1 + r.IntN(4) {
		all = append(all, NewStore(w.office, m, Options{}))
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
	w.judge(keys, int64(len(all)))
}

// callers asks for some windows, in which the collector goes away once.
func (w *world) callers(all []*Store, keys []string) {
	const lasts = 25 * time.Second
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
	time.Sleep(lasts / 3)
	w.office.set(true)
	time.Sleep(time.Duration(w.r.Int64N(int64(lasts / 4))))
	w.office.set(false)
	done.Wait()
}

// ask asks in one of several ways; some that were admitted give back.
func (w *world) ask(ctx context.Context, s *Store, key string, cost int64, r *rand.Rand) {
	c := escapement.Claim{Plan: w.plan, Key: key, Cost: cost}
	if r.IntN(10) == 0 {
		c.Mode = escapement.TakeUpTo
	}
	d, err := s.DecideOne(ctx, c)
	if err != nil && !errors.Is(err, escapement.ErrStoreUnavailable) && ctx.Err() == nil {
		w.Error(err)
	}
	if err != nil || !d.Allowed || d.Units() == 0 {
		return
	}
	receipt := d.Receipt()
	units := receipt.Units
	if r.IntN(10) == 0 {
		back, err := s.DecideOne(context.WithoutCancel(ctx), escapement.Claim{Plan: w.plan, Key: key, Mode: escapement.Refund, Receipt: receipt})
		if err != nil || back.Units() > units {
			w.Errorf("a refund of %d gives back %d: %v", units, back.Units(), err)
		}
		units -= back.Units()
	}
	w.mu.Lock()
	w.admitted[key][receipt.At] += units
	w.mu.Unlock()
}

func (w *world) judge(keys []string, instances int64) {
	for _, key := range keys {
		sum := int64(0)
		for window, n := range w.admitted[key] {
			sum += n
			if most := instances * w.plan.Limit().Rate.Count; n > most {
				w.Errorf("key %s: %d admitted in the window from %d by %d instances, of a limit of %d", key, n, window, instances, w.plan.Limit().Rate.Count)
			}
		}
		w.Logf("key %s: %d admitted in %d windows", key, sum, len(w.admitted[key]))
	}
	w.office.mu.Lock()
	late := w.office.late
	w.office.mu.Unlock()
	admitted, counted := int64(0), late
	for _, key := range keys {
		for _, n := range w.admitted[key] {
			admitted += n
		}
		for _, n := range w.office.counted[w.plan.Limit().Name+"/"+key] {
			counted += n
		}
	}
	if admitted != counted {
		w.Errorf("%d were admitted, %d are recorded, %d of them late", admitted, counted, late)
	}
}
