package main

import (
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/memstore"
)

// ours are measured through the calls that a program makes: Limiter.Take.
var ours = []peer{
	{name: "escapement", oneKey: true, build: func(m mode) func(string) bool {
		plan := compile(m)
		return take(escapement.NewLimiter(memstore.NewSingle(plan), plan))
	}},
	{name: "escapement", keyed: true, flood: true, build: func(m mode) func(string) bool {
		return take(escapement.NewLimiter(memstore.New(memstore.WithMaxKeys(20_000_000)), compile(m)))
	}},
	{name: "escapement with keys kept", keyed: true, memoryOnly: true, build: func(m mode) func(string) bool {
		return take(escapement.NewLimiter(memstore.New(memstore.WithMaxKeys(20_000_000), memstore.WithKeys()), compile(m)))
	}},
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
