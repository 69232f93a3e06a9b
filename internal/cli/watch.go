package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"

	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/clock/ntp"
	"github.com/escapement-io/escapement/internal/doctor"
	"github.com/escapement-io/escapement/internal/gateway"
	"github.com/escapement-io/escapement/internal/metrics"
	"github.com/escapement-io/escapement/memstore"
)

// watched is a guard that watches the clocks beside a gateway, and what it is shown as.
type watched struct {
	guard   *clock.Guard
	sources []string // what this machine's time comes from
	end     func()   // ends the watch, and waits
}

// watchClocks follows the system clock and the NTP servers until it is ended or ctx ends, and logs every
// event.
func watchClocks(ctx context.Context, servers []string, logger *slog.Logger) (*watched, error) {
	w := &watched{sources: doctor.HostFacts(os.DirFS("/")).Sources()}
	follow := []clock.Follow{{Reference: clock.System()}}
	for _, host := range servers {
		ref := ntp.Server(host)
		follow = append(follow, clock.Follow{Reference: ref})
		w.sources = append(w.sources, "server "+host)
	}
	var err error
	if w.guard, err = clock.NewGuard(clock.Config{References: follow}); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	w.guard.Subscribe(metrics.Log(logger))
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { w.guard.Run(ctx) })
	w.end = func() { stop(); running.Wait() }
	return w, nil
}

// observed is a gateway with its store, as far as its metrics need them. The gateway is
// set after its admin listener has been told what to serve.
type observed struct {
	gateway *gateway.Gateway
	store   *memstore.Store
	clocks  *watched
}

// admin is what the admin listener serves beside the gateway's own pages.
func (o *observed) admin() []gateway.Option {
	sources := metrics.Sources{Clock: o.clocks.guard.Snapshot, Gateway: o.counts, Store: o.records}
	serve := func(pattern string, h http.Handler) gateway.Option { return gateway.WithAdmin("GET "+pattern, h) }
	return []gateway.Option{
		serve("/metrics", metrics.Handler(sources)),
		serve("/v1/clock", metrics.Clock(o.clocks.guard.Snapshot, o.clocks.sources)),
	}
}

func (o *observed) counts() metrics.Gateway {
	s := o.gateway.Status()
	g := metrics.Gateway{Held: s.Held, ReloadsOK: s.ReloadsOK, ReloadsFailed: s.ReloadsFailed}
	for _, l := range s.Limits {
		g.Limits = append(g.Limits, metrics.Limit{
			Name: l.Name, Decided: l.Decided, Refused: l.DecidedRefused, ShadowRefused: l.ShadowRefused,
			Fallback: l.Fallback, FallbackRefused: l.FallbackRefused, Invalid: l.Invalid, Delayed: l.Delayed,
		})
	}
	return g
}

func (o *observed) records() metrics.Store {
	s := o.store.Stats()
	return metrics.Store{Keys: s.Keys, MaxKeys: s.MaxKeys, Bytes: s.Bytes, RefusedAtCap: s.Refused}
}
