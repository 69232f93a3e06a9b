package sim

import (
	"context"
	"math/rand"
	"time"
)

// Random is a world in which anything may happen, drawn from a seed: the instances, the
// limit, the mode, the demand, and every fault there is.
func Random(seed int64) *Setup {
	r := rand.New(rand.NewSource(seed))
	s := &Setup{Name: "random", Instances: 1 + r.Intn(20), Limit: 1 + r.Int63n(1000), Seeds: 1}
	if r.Intn(3) == 0 {
		s.Limit = 1 + r.Int63n(30)
	}
	s.Per = []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second}[r.Intn(4)]
	s.Sync = max(20*time.Millisecond, s.Per/time.Duration(3+r.Intn(30)))
	s.For = 8 * s.Per
	s.Phases = []Phases{Spread, Hashed, Hashed, Aligned}[r.Intn(4)]
	s.Mode, s.Window = Leased, []Window{Fixed, Rolling, Bucket}[r.Intn(3)]
	if r.Intn(4) == 0 {
		s.Mode, s.Window = Delayed, []Window{FirstUse, Fixed, Sliding}[r.Intn(3)]
	}
	if s.Window == Bucket {
		least := s.Limit*int64(s.Sync)/int64(s.Per) + 1
		s.Burst = least + r.Int63n(max(1, s.Limit)*[]int64{1, 1, 10}[r.Intn(3)])
		if r.Intn(3) == 0 {
			s.Burst = least
		}
	}
	if s.Mode == Leased {
		s.Extras, s.SkipDry, s.Buckets = r.Intn(7)-1, r.Intn(2) == 0, 32<<r.Intn(4)
		if r.Intn(4) == 0 {
			s.Exact = r.Intn(s.Instances)
		}
	}
	s.Load = randomLoad(r, s)
	s.Network = Network{Latency: 200 * time.Microsecond, Jitter: 100 * time.Microsecond, Timeout: 50 * time.Millisecond}
	if r.Intn(2) == 0 {
		s.Network.Latency = time.Duration(r.Int63n(int64(10 * time.Millisecond)))
		s.Network.Jitter = time.Duration(r.Int63n(int64(10 * time.Millisecond)))
	}
	s.faults(r)
	if s.Mode == Leased {
		s.Share, s.Fence = r.Intn(3) == 0, r.Intn(3) == 0
	}
	return s
}

func randomLoad(r *rand.Rand, s *Setup) Load {
	fair := float64(s.Limit) / s.Per.Seconds()
	l := Load{Kind: []LoadKind{Constant, Poisson, OnOff, Ramp, Burst}[r.Intn(5)], Rate: max(1, fair*(0.3+4*r.Float64())), To: max(1, fair*4*r.Float64()),
		On: s.Per / time.Duration(1+r.Intn(5)), Off: s.Per / time.Duration(1+r.Intn(5)), Each: 1 + r.Intn(int(s.Limit)+1),
		Every: s.Per/2 + time.Duration(r.Int63n(int64(s.Per))), Start: time.Duration(r.Int63n(int64(s.Per)))}
	if r.Intn(3) == 0 {
		l.Skew = 0.95
	}
	if r.Intn(4) == 0 {
		l.Cost = 1 + r.Int63n(max(1, s.Limit/5))
		l.Rate, l.Each = max(1, l.Rate*2/float64(l.Cost+1)), 1+l.Each*2/int(l.Cost+1)
	}
	return l
}

// faults gives each kind of fault to some worlds and none to many.
func (s *Setup) faults(r *rand.Rand) {
	anywhere := func() time.Duration { return time.Duration(r.Int63n(int64(s.For))) }
	if r.Intn(3) == 0 {
		s.Network.Loss = 0.2 * r.Float64()
	}
	if r.Intn(3) == 0 {
		s.Store.Outages = []Outage{{At: anywhere(), For: time.Duration(r.Int63n(int64(2 * s.Per)))}}
	}
	if r.Intn(3) == 0 && s.Instances > 2 {
		s.Crashes = []Crash{{0, anywhere()}, {1, anywhere()}}
	}
	if r.Intn(4) == 0 {
		s.Pauses = []Pause{{r.Intn(s.Instances), anywhere(), time.Duration(r.Int63n(int64(s.Per)))}}
	}
	if r.Intn(6) == 0 {
		lost := time.Duration(r.Int63n(int64(s.Per)))
		s.Store.Failovers = []Failover{{At: lost + time.Duration(r.Int63n(int64(s.For-lost))), Loses: lost}}
	}
	if r.Intn(6) == 0 {
		s.Store.Steps = []Step{{anywhere(), time.Duration(r.Int63n(int64(4*s.Per))) - 2*s.Per}}
	}
	s.Store.Offset = time.Duration(r.Int63n(int64(s.Per)))
	for i := range s.Instances {
		s.Clocks = append(s.Clocks, Clock{Instance: i, Offset: time.Duration(r.Int63n(int64(2*time.Second))) - time.Second, PPM: r.Int63n(401) - 200,
			Steps: []Step{{anywhere(), time.Duration(r.Int63n(int64(2*time.Second))) - time.Second}}})
	}
}

// Proof is what came of many random worlds.
type Proof struct {
	Runs       int     `json:"runs"`
	Violations int     `json:"violations"` // worlds in which a promise was broken
	Seed       int64   `json:"seed"`       // the first of them, or the one the runs began with; --runs 1 replays it
	Found      []Found `json:"found,omitempty"`
}

// Found is a world in which a promise was broken.
type Found struct {
	Seed     int64    `json:"seed"`
	Problems []string `json:"problems"`
}

// Prove runs random worlds of consecutive seeds and reports those that break a promise.
func Prove(ctx context.Context, runs int, seed int64, progress func(done int)) (*Proof, error) {
	p := &Proof{Runs: runs, Seed: seed}
	for i := range runs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := Random(seed + int64(i)).Run(seed + int64(i))
		if err != nil {
			return nil, err
		}
		if len(r.Violations) > 0 {
			if p.Violations++; p.Violations == 1 {
				p.Seed = seed + int64(i)
			}
			if len(p.Found) < 10 {
				p.Found = append(p.Found, Found{seed + int64(i), r.Violations})
			}
		}
		progress(i + 1)
	}
	return p, nil
}
