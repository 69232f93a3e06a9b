package sim

import (
	"fmt"
	"math/rand"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/batch"
	"github.com/escapement-io/escapement/lease"
)

// Setup describes a world: everything but the seed.
type Setup struct {
	Name      string
	Instances int
	Limit     int64
	Per       time.Duration
	Burst     int64 // of a bucket; 0: Limit
	Window    Window
	Mode      Mode
	Exact     int // leases: how many of the instances ask about every request on the same record

	Sync    time.Duration
	Phases  Phases
	Extras  int
	Buckets int  // rolling: 0 for the default
	SkipDry bool // fixed leases: see lease.Config
	Over    int  // leases: per cent more than the limit that are handed out

	For    time.Duration
	Warmup time.Duration // not counted in what is measured as a mean
	Seeds  int           // how many worlds are averaged; 0: one

	Load    Load
	Network Network
	Clocks  []Clock
	Store   Store
	Crashes []Crash
	Pauses  []Pause
	OpenUp  bool // while the store does not answer and nothing is held: admit
	Share   bool // leases: admit then up to the instance's part of the limit
	Fence   bool // leases: a store that has lost writes lends nothing while what they promised may be in use
}

// Mode says how instances agree.
type Mode string

// The modes.
const (
	Delayed Mode = "delayed"
	Leased  Mode = "lease"
	Exact   Mode = "exact"
)

// Window says what the limit is about.
type Window string

// The windows: as in the configuration, a fixed one opened by its first use, and none but
// a bucket, of which a window is a span of the period.
const (
	Fixed    Window = "fixed"
	FirstUse Window = "fixed_first_use"
	Sliding  Window = "sliding"
	Rolling  Window = "rolling"
	Bucket   Window = "bucket"
)

// Phases says when in an interval the instances synchronise.
type Phases string

// The phases.
const (
	Spread  Phases = "spread" // instance i of N at i/N of the interval
	Hashed  Phases = "hashed" // by instance and key, as the product does
	Aligned Phases = "aligned"
)

// Network is what lies between an instance and the store.
type Network struct {
	Latency time.Duration // one way, at least
	Jitter  time.Duration // on top of it: the mean of an exponential distribution
	Loss    float64       // of the round trips, half of them before the store
	Timeout time.Duration
}

// Clock is the fault of one instance's clocks.
type Clock struct {
	Instance int
	Offset   time.Duration // of the wall clock
	PPM      int64         // of both
	Steps    []Step        // of the wall clock
}

// Step is one step of a clock.
type Step struct{ At, By time.Duration }

// Store is what happens to the store.
type Store struct {
	Offset    time.Duration // of its clock: where in a window the world begins
	Steps     []Step
	Outages   []Outage
	Failovers []Failover
}

// Outage is a time in which the store answers nobody.
type Outage struct{ At, For time.Duration }

// Failover takes the store back to what it held a while before.
type Failover struct{ At, Loses time.Duration }

// Crash is the end of an instance without a word.
type Crash struct {
	Instance int
	At       time.Duration
}

// Pause is a time in which an instance does nothing, and does not know.
type Pause struct {
	Instance int
	At, For  time.Duration
}

func (s *Store) down(t instant) bool {
	for _, o := range s.Outages {
		if t >= o.At && t < o.At+o.For {
			return true
		}
	}
	return false
}

// Bounds of a world.
const (
	MaxInstances = 1000
	MaxRequests  = 5_000_000
	MaxDuration  = 24 * time.Hour
)

// compiled is a Setup whose limit has been compiled.
type compiled struct {
	core  *algo.Plan
	lease algo.Lease
}

// compile checks the limit and everything that hangs on it. What a Setup says of time and
// number was checked where it was read.
func (s *Setup) compile() (compiled, error) {
	var c compiled
	limit := escapement.Limit{Name: "simulated", Rate: escapement.Rate{Count: s.Limit, Per: s.Per}}
	switch s.Window {
	case Fixed:
		limit.Algorithm = escapement.FixedWindow
	case FirstUse:
		limit.Algorithm, limit.Align = escapement.FixedWindow, escapement.FirstUse
	case Sliding:
		limit.Algorithm = escapement.SlidingWindow
	case Rolling:
		limit.Algorithm = escapement.RollingWindow
		if s.Limit > algo.LogMax {
			limit.Buckets = s.Buckets
		}
	case Bucket:
		limit.Algorithm, limit.Burst = escapement.TokenBucket, s.Burst
	default:
		return c, fmt.Errorf("sim: unknown window %q; use fixed, fixed_first_use, sliding, rolling or bucket", s.Window)
	}
	if s.Mode != Delayed && s.Over > 0 {
		limit.Rate.Count += s.Limit * int64(s.Over) / 100
	}
	p, err := limit.Compile()
	if err != nil {
		return c, fmt.Errorf("sim: %w", err)
	}
	c.core = p.Core()
	span := algo.Span(s.Sync / time.Microsecond)
	switch s.Mode {
	case Delayed:
		if s.Window == Rolling || s.Window == Bucket {
			return c, fmt.Errorf("sim: a %s window cannot be synchronised delayed: an instance cannot tell what is free; use sliding, or lease", s.Window)
		}
		if span < 1 || s.Sync >= s.Per {
			return c, fmt.Errorf("sim: sync of %v is not below the period of %v", s.Sync, s.Per)
		}
	case Exact:
		if span = algo.MinLeaseInterval; s.Window != Bucket {
			span = max(span, algo.Span(s.Per/time.Microsecond)/2)
		}
		fallthrough
	case Leased:
		if c.lease, err = c.core.Lease(span); err != nil {
			return c, fmt.Errorf("sim: %w", err)
		}
		c.lease.Fence = s.Fence
	default:
		return c, fmt.Errorf("sim: unknown mode %q; use delayed, lease or exact", s.Mode)
	}
	return c, nil
}

// build makes a world.
func (s *Setup) build(seed int64) (*world, error) {
	c, err := s.compile()
	if err != nil {
		return nil, err
	}
	w := &world{setup: s, rng: rand.New(rand.NewSource(seed))}
	w.book.setup = s
	w.store = &store{w: w, core: c.core, lease: c.lease, counted: map[algo.Store]int64{}, charged: map[int64]int64{}, applied: map[int64]int64{},
		clock: clockFault{offset: s.Store.Offset, steps: s.Store.Steps}}
	w.clocks = make([]clockFault, s.Instances)
	for i := range w.clocks {
		w.clocks[i].base = time.Duration(w.rng.Int63n(int64(100 * time.Second)))
	}
	for _, f := range s.Clocks {
		k := &w.clocks[f.Instance]
		k.offset, k.ppm, k.steps = f.Offset, f.PPM, f.Steps
	}
	for i := range s.Instances {
		n := &node{id: i, w: w, wakeAt: -1}
		phase := w.phase(i, seed)
		switch {
		case s.Mode == Delayed:
			n.limit = delayed{batch.New(batch.Config{Plan: c.core, Interval: algo.Span(s.Sync / time.Microsecond), Phase: phase, Instance: int64(i) + 1})}
		case s.Mode == Exact || i >= s.Instances-s.Exact:
			n.limit = &exact{w: w, n: n}
		default:
			n.limit = &leased{count: c.lease.Count, Ledger: lease.New(lease.Config{Lease: c.lease, Phase: phase, Extras: s.Extras, SkipDry: s.SkipDry, Share: s.Share})}
		}
		w.nodes = append(w.nodes, n)
	}
	return w, nil
}

// phase is on the instance's own monotonic clock, which begins anywhere.
func (w *world) phase(i int, seed int64) algo.Mono {
	s := w.setup
	start := w.clocks[i].mono(0)
	switch s.Phases {
	case Hashed:
		return algo.Phase(fmt.Sprintf("instance-%d-of-%d", i, seed), "key", algo.Span(max(s.Sync, time.Microsecond)/time.Microsecond))
	case Aligned:
		return start
	case Spread:
	}
	return start + algo.Mono(s.Sync)*algo.Mono(i)/algo.Mono(s.Instances)
}
