package sim

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"time"
)

// Load is the demand.
type Load struct {
	Kind  LoadKind
	Rate  float64       // requests a second over all instances
	To    float64       // ramp: the rate at the end
	On    time.Duration // onoff
	Off   time.Duration
	Each  int           // burst: requests at each instance, within two milliseconds
	Every time.Duration // burst: 0 for one burst
	Start time.Duration
	Skew  float64       // the part that one instance gets; 0: all the same
	Turn  time.Duration // the skew moves to the next instance so often; 0: never
	Cost  int64         // the largest; costs are even from 1 on
}

// LoadKind is how requests come.
type LoadKind string

// The kinds of load.
const (
	Constant LoadKind = "constant" // in a fixed rhythm, round robin
	Poisson  LoadKind = "poisson"
	OnOff    LoadKind = "onoff"
	Ramp     LoadKind = "ramp"
	Burst    LoadKind = "burst"
)

// arrivals are the requests of a load, in order.
func (s *Setup) arrivals(seed int64) ([]request, error) {
	rng := rand.New(rand.NewSource(seed*7919 + 1))
	l := &s.Load
	var out []request
	var err error
	if l.Kind == Burst {
		out, err = l.bursts(s, rng)
	} else {
		out, err = l.stream(s, rng)
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(out, func(a, b request) int { return int(a.at - b.at) })
	if l.Cost > 1 {
		for i := range out {
			out[i].cost = 1 + rng.Int63n(l.Cost)
		}
	}
	return out, nil
}

func tooMany() error {
	return fmt.Errorf("sim: more than %d requests; use a lower rate or a shorter time", MaxRequests)
}

func (l *Load) bursts(s *Setup, rng *rand.Rand) ([]request, error) {
	var out []request
	for t := l.Start; t <= s.For; t += l.Every {
		if len(out)+s.Instances*l.Each > MaxRequests {
			return nil, tooMany()
		}
		for i := range s.Instances {
			for range l.Each {
				out = append(out, request{at: t + time.Duration(rng.Int63n(int64(2*time.Millisecond))), instance: i, cost: 1})
			}
		}
		if l.Every <= 0 {
			break
		}
	}
	return out, nil
}

func (l *Load) stream(s *Setup, rng *rand.Rand) ([]request, error) {
	var out []request
	t := float64(l.Start)
	for k := 0; ; k++ {
		rate := l.Rate
		if l.Kind == Ramp {
			rate += float64((l.To - l.Rate) * t / float64(s.For))
		}
		gap := 1e9 / rate
		if l.Kind != Constant {
			gap = float64(gap * rng.ExpFloat64())
		}
		t += gap
		if l.Kind == OnOff {
			period := float64(l.On + l.Off)
			if phase := math.Mod(t-float64(l.Start), period); phase > float64(l.On) {
				t += period - phase
			}
		}
		if t > float64(s.For) {
			return out, nil
		}
		if len(out) >= MaxRequests {
			return nil, tooMany()
		}
		at := time.Duration(t)
		i := k % s.Instances
		if l.Kind != Constant {
			i = rng.Intn(s.Instances)
		}
		out = append(out, request{at: at, instance: l.instance(i, s.Instances, at, rng), cost: 1})
	}
}

// instance moves a request to where the skew has it.
func (l *Load) instance(i, n int, at time.Duration, rng *rand.Rand) int {
	if l.Skew <= 0 || n < 2 {
		return i
	}
	hot := 0
	if l.Turn > 0 {
		hot = int(at/l.Turn) % n
	}
	if rng.Float64() < l.Skew {
		return hot
	}
	if i = rng.Intn(n - 1); i >= hot {
		i++
	}
	return i
}
