package redisstore

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/redistest"
	"github.com/escapement-io/escapement/lease"
)

var shared = flag.Duration("shared", 2*time.Second, "how long leased and exact callers share records in a test")

// usage counts what was admitted by window or bucket.
type usage struct {
	mu sync.Mutex
	at map[int64]int64
	n  int64
}

func (c *usage) add(at, units int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil {
		c.at = map[int64]int64{}
	}
	c.at[at] += units
	if units > 0 {
		c.n++
	}
}

// most is the most that was admitted in so many neighbours.
func (c *usage) most(span int64) (most int64) {
	for last := range c.at {
		sum := int64(0)
		for j := last - span + 1; j <= last; j++ {
			sum += c.at[j]
		}
		most = max(most, sum)
	}
	return most
}

// holder drives a ledger against a store. Some answers are lost.
type holder struct {
	t      *testing.T
	store  *Store
	plan   *escapement.Plan
	ledger *lease.Ledger
	r      *rand.Rand
	loss   int // of so many answers one is lost; 0: none
	failed int
}

func newHolder(t *testing.T, s *Store, p *escapement.Plan, r *rand.Rand, loss int) *holder {
	l, ok := p.Lease()
	if !ok {
		t.Fatalf("limit %s is not leased", p.Limit().Name)
	}
	s.Adopt(p)
	return &holder{t: t, store: s, plan: p, r: r, loss: loss,
		ledger: lease.New(lease.Config{Lease: l, Phase: algo.Mono(r.Int64N(int64(l.Interval) * 1000))})}
}

// ask puts a request to the ledger and returns where it was admitted.
func (h *holder) ask(cost int64) (at int64, ok bool) {
	req := lease.Request{Cost: cost, Since: clock.Mono()}
	for {
		a := h.ledger.Admit(clock.Mono(), &req)
		switch a.Verdict {
		case lease.Admitted:
			return a.Window, true
		case lease.Refused, lease.Unavailable:
			return 0, false
		case lease.Waiting:
		}
		if !h.poll() {
			time.Sleep(time.Millisecond)
		}
	}
}

// poll sends what is due.
func (h *holder) poll() bool {
	a, due := h.ledger.Poll(clock.Mono())
	if !due {
		return false
	}
	answers := make([]escapement.Granted, 1)
	h.store.Lend(context.Background(), []escapement.Loan{{Plan: h.plan, Key: "k", Ask: a}}, answers)
	if answers[0].Outcome != escapement.Decided || h.loss > 0 && h.r.IntN(h.loss) == 0 {
		h.failed++
		h.ledger.Failed(clock.Mono())
	} else {
		h.ledger.Absorb(clock.Mono(), &answers[0].Grant)
	}
	return true
}

// run makes requests until stop.
func (h *holder) run(c *usage, costs int64, stop *atomic.Bool) {
	for !stop.Load() {
		if next, ok := h.ledger.Next(); ok && clock.Mono() >= next {
			h.poll()
		}
		cost := 1 + h.r.Int64N(costs)
		if at, ok := h.ask(cost); ok {
			c.add(at, cost)
		}
		time.Sleep(time.Duration(h.r.IntN(4)) * time.Millisecond)
	}
}

// exactly makes exact requests until stop; at says where one at an instant counts.
func exactly(t *testing.T, s *Store, p *escapement.Plan, r *rand.Rand, c *usage, costs int64, at func(algo.Store) int64, stop *atomic.Bool) {
	s.Adopt(p)
	for !stop.Load() {
		claim := escapement.Claim{Plan: p, Key: "k", Cost: 1 + r.Int64N(costs)}
		if r.IntN(4) == 0 {
			claim.Mode = escapement.TakeUpTo
		}
		d, err := s.DecideOne(context.Background(), claim)
		if err != nil {
			t.Error(err)
			return
		}
		if !d.Allowed || d.Units() == 0 {
			time.Sleep(time.Duration(2+r.IntN(6)) * time.Millisecond)
			continue
		}
		if r.IntN(8) > 0 {
			c.add(at(d.At()), d.Units())
		} else if _, err := s.DecideOne(context.Background(), escapement.Claim{Plan: p, Key: "k", Mode: escapement.Refund, Receipt: d.Receipt()}); err != nil {
			t.Error(err) // else given back unused
			return
		}
		time.Sleep(time.Duration(2+r.IntN(6)) * time.Millisecond)
	}
}

// Leased and exact callers of a limit share its record, with two counts of it and whatever
// they make of it: never is more admitted than the larger count, in any window.
func TestLeasedAndExactShareARecord(t *testing.T) {
	sd := *seed
	if sd == 0 {
		sd = rand.Uint64()
	}
	t.Logf("replay: go test ./redisstore -run TestLeasedAndExactShareARecord -seed %d", sd)
	srv := redistest.Start(t, redistest.Options{})
	rolling, sliding := escapement.RollingWindow, escapement.SlidingWindow
	for i, tt := range []struct {
		name          string
		leased, exact escapement.Algorithm
		counts        [4]int64 // of two leased and two exact callers
		costs         int64
	}{
		{"fixed", escapement.FixedWindow, escapement.FixedWindow, [4]int64{100, 80, 100, 90}, 3},
		{"ring", rolling, rolling, [4]int64{200, 150, 200, 170}, 3},
		{"log", rolling, rolling, [4]int64{40, 40, 40, 30}, 2},
		{"ring-and-log", rolling, rolling, [4]int64{100, 60, 60, 100}, 2},
		{"sliding", sliding, sliding, [4]int64{200, 150, 200, 170}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var c usage
			var stop atomic.Bool
			var wg sync.WaitGroup
			var holders []*holder
			var l algo.Lease
			largest := int64(0)
			for k, count := range tt.counts {
				s := open(t, Config{Addrs: []string{srv.Addr()}})
				largest = max(largest, count)
				limit := escapement.Limit{Name: tt.name, Algorithm: tt.exact, Rate: escapement.Rate{Count: count, Per: 500 * time.Millisecond}}
				if k >= 2 {
					p, mine := plan(t, limit), rand.New(rand.NewPCG(sd, uint64(10*i+k)))
					at := func(now algo.Store) int64 { return int64(now) / int64(max(l.Width, 1)) }
					if l.Width == 0 {
						at = func(now algo.Store) int64 { return int64(now) / int64(l.Per) }
					}
					wg.Go(func() { exactly(t, s, p, mine, &c, tt.costs, at, &stop) })
					continue
				}
				limit.Algorithm, limit.Sync = tt.leased, 50*time.Millisecond
				h := newHolder(t, s, plan(t, limit), rand.New(rand.NewPCG(sd, uint64(10*i+k))), 20)
				h.ask(1) // so that the record is a lent one from the start
				holders = append(holders, h)
				l, _ = h.plan.Lease()
			}
			for _, h := range holders {
				wg.Go(func() { h.run(&c, tt.costs, &stop) })
			}
			time.Sleep(*shared)
			stop.Store(true)
			wg.Wait()
			span := int64(1)
			if l.Width > 0 {
				span = l.Buckets + 1
			}
			if tt.exact == sliding {
				// A sliding_window tells the instant of the call. Its units count where the record
				// is, which may be ahead of that by the error of the line.
				span -= 16
			}
			most := c.most(span)
			t.Logf("%d requests admitted, at most %d units in a window of %d; seed %d", c.n, most, largest, sd)
			if most > largest || most < largest/10 {
				t.Errorf("%d in a window, want up to %d", most, largest)
			}
		})
	}
}

// Delayed and exact callers of a limit share its record: every count arrives, and none
// twice.
func TestDelayedAndExactShareARecord(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	for _, align := range []escapement.Align{escapement.Epoch, escapement.FirstUse, escapement.Month} {
		for _, a := range []escapement.Algorithm{escapement.FixedWindow, escapement.SlidingWindow} {
			if a == escapement.SlidingWindow && align != escapement.Epoch {
				continue
			}
			l := reported(fmt.Sprintf("late-%d-%d", a, align), a, 100_000)
			if l.Align = align; align == escapement.Month {
				l.Rate.Per = 0
			}
			late := plan(t, l)
			l.Sync = 0
			exact := plan(t, l)
			var sum atomic.Int64
			var wg sync.WaitGroup
			for i := range 3 {
				s := open(t, Config{Addrs: []string{srv.Addr()}})
				wg.Go(func() {
					for n := range int64(60) {
						f := report(late, "k", int64(1+i), n+1, algo.Spent{Window: algo.MaxInstant / 2, Units: n})
						sum.Add(n)
						for range 1 + n%3 {
							if r := collectAll(s, f)[0]; r.Outcome != escapement.Decided {
								t.Errorf("%v, %v", r.Outcome, r.Err)
							}
						}
					}
				})
				e := open(t, Config{Addrs: []string{srv.Addr()}})
				wg.Go(func() {
					for n := range int64(60) {
						take(t, e, exact, "k", n)
						sum.Add(n)
					}
				})
			}
			wg.Wait()
			s := open(t, Config{Addrs: []string{srv.Addr()}})
			r := collectAll(s, report(late, "k", 99, 1))[0]
			d := take(t, open(t, Config{Addrs: []string{srv.Addr()}}), exact, "k", 0)
			if want := sum.Load(); r.Flushed.Used != want || r.Flushed.Remaining != 100_000-want || d.Remaining() != 100_000-want {
				t.Errorf("%s: %d used, %d remaining, exactly %d; want %d used", l.Name, r.Flushed.Used, r.Flushed.Remaining, d.Remaining(), want)
			}
		}
	}
}
