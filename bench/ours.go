package main

import (
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/memstore"
)

// ours are measured through the calls that a program makes: Single.Take where there is one
// limit and no key, Limiter.Take elsewhere.
var ours = []peer{
	{name: "escapement", oneKey: true, build: func(m mode) func(string) bool {
		return single(memstore.NewSingle(compile(m)))
	}},
	{name: "escapement, Limiter.Take", oneKey: true, build: func(m mode) func(string) bool {
		plan := compile(m)
		return take(escapement.NewLimiter(memstore.NewSingle(plan), plan))
	}},
	{name: "escapement", coarse: true, oneKey: true, build: func(m mode) func(string) bool {
		return single(memstore.NewSingle(compile(m), memstore.WithClock(memstore.NewCoarse())))
	}},
	{name: "escapement", keyed: true, flood: true, build: func(m mode) func(string) bool {
		return take(escapement.NewLimiter(memstore.New(room(m)...), keyed(m)))
	}},
	{name: "escapement with keys kept", keyed: true, memoryOnly: true, build: func(m mode) func(string) bool {
		return take(escapement.NewLimiter(memstore.New(append(room(m), memstore.WithKeys())...), keyed(m)))
	}},
}

// room is a cap above ten million keys, where so many come: the default is four million.
func room(m mode) []memstore.Option {
	if m == tenPS {
		return []memstore.Option{memstore.WithMaxKeys(20_000_000)}
	}
	return nil
}

// keyed is the plan of the workloads with many keys. Where nothing is to be denied its
// buckets are large and refill slowly: a bucket that is full again is as good as new,
// and our store would forget it between two visits.
func keyed(m mode) *escapement.Plan {
	if m != open {
		return compile(m)
	}
	p, err := escapement.Limit{Name: "bench", Rate: escapement.PerHour(1), Burst: 1 << 20}.Compile()
	must(err)
	return p
}

func single(s *memstore.Single) func(string) bool {
	return func(string) bool {
		d, err := s.Take(1)
		return err == nil && d.Allowed
	}
}

func take(l *escapement.Limiter) func(string) bool {
	return func(k string) bool {
		d, err := l.Take(ctx, k, 1)
		return err == nil && d.Allowed
	}
}

func compile(m mode) *escapement.Plan {
	l := escapement.Limit{Name: "bench", Rate: escapement.Rate{Count: 1e9, Per: time.Second}, Burst: 1 << 40}
	switch m {
	case closed:
		l.Rate, l.Burst = escapement.PerHour(1), 1
	case tenPS:
		l.Rate, l.Burst = escapement.PerSecond(10), 10
	case open:
	}
	p, err := l.Compile()
	must(err)
	return p
}
