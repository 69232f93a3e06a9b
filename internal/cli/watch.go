package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/clock/hook"
	"github.com/escapement-io/escapement/clock/ntp"
	"github.com/escapement-io/escapement/internal/config"
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

// checkServers refuses names of NTP servers that cannot be any, before they become labels.
func checkServers(servers []string) error {
	for _, s := range servers {
		if s == "" || len(s) > 300 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return usage("--ntp %q: write HOST, HOST:PORT or [ADDRESS]:PORT in plain ASCII", s)
		}
	}
	return nil
}

// watchClocks follows the system clock and the NTP servers until it is ended or ctx ends. It
// logs every event, and tells who wants to know of a step.
func watchClocks(ctx context.Context, c config.Clock, servers []string, logger *slog.Logger) (*watched, error) {
	if err := checkServers(servers); err != nil {
		return nil, err
	}
	w := &watched{sources: doctor.HostFacts(os.DirFS("/")).Sources()}
	follow := []clock.Follow{{Reference: clock.System()}}
	for _, host := range servers {
		ref := ntp.Server(host)
		follow = append(follow, clock.Follow{Reference: ref})
		w.sources = append(w.sources, "server "+host)
	}
	var errs [2]error
	w.guard, errs[0] = clock.NewGuard(clock.Config{References: follow, Warning: c.Warning, Critical: c.Critical, IgnoreSuspend: c.IgnoreSuspend})
	var onStep *hook.Hook
	if c.OnStep != nil {
		onStep, errs[1] = hook.New(hookConfig(c.OnStep, logger))
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	w.guard.Subscribe(metrics.Log(logger))
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	if onStep != nil {
		w.guard.Subscribe(onStep.Notify)
		running.Go(func() { onStep.Run(ctx) })
	}
	running.Go(func() { w.guard.Run(ctx) })
	w.end = func() { stop(); running.Wait() }
	return w, nil
}

func hookConfig(s *config.OnStep, logger *slog.Logger) hook.Config {
	c := hook.Config{Exec: s.Exec, Webhook: s.Webhook, MinSize: s.MinSize, Every: s.Every, Timeout: s.Timeout,
		Failed: func(err error) { logger.Error("nobody was told of the clock event", "error", err) }}
	for _, k := range s.Kinds {
		c.Kinds = append(c.Kinds, clock.Kind(k))
	}
	return c
}

// records makes the store of a gateway. Its line counts suspends because the store has it
// look; without credit for them it must not.
func records(c config.Clock, maxKeys int) *memstore.Store {
	opts := []memstore.Option{memstore.WithMaxKeys(maxKeys)}
	if c.IgnoreSuspend {
		opts = append(opts, memstore.WithClock(awake{clock.NewLine()}))
	}
	return memstore.New(opts...)
}

// awake is a line that nobody syncs, so that it counts no suspends.
type awake struct{ line *clock.Line }

func (a awake) Now() algo.Store { return a.line.Now() }

// loader reads the configuration of a gateway.
type loader func() (*config.Config, []config.Finding, error)

// fixedClock says in the log when a reload asks for a change of the section clock, which
// needs a restart; everything else is taken over.
func (load loader) fixedClock(first config.Clock, logger *slog.Logger) loader {
	return func() (*config.Config, []config.Finding, error) {
		cfg, findings, err := load()
		if cfg != nil && !reflect.DeepEqual(cfg.Clock, first) {
			logger.Warn("the section clock has changed; restart to change how clocks are watched")
		}
		return cfg, findings, err
	}
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
	sources := metrics.Sources{Clock: o.clocks.guard.Snapshot, Gateway: o.counts, Store: o.records, Shared: o.stores}
	serve := func(pattern string, h http.Handler) gateway.Option { return gateway.WithAdmin("GET "+pattern, h) }
	return []gateway.Option{
		gateway.WithBound(o.clocks.guard.Bound),
		serve("/metrics", metrics.Handler(sources)),
		serve("/v1/clock", metrics.Clock(o.clocks.guard.Snapshot, o.clocks.sources)),
	}
}

func (o *observed) counts() metrics.Gateway {
	s := o.gateway.Status()
	g := metrics.Gateway{Held: s.Held, ReloadsOK: s.ReloadsOK, ReloadsFailed: s.ReloadsFailed}
	for i := range s.Limits {
		l := &s.Limits[i]
		m := metrics.Limit{
			Name: l.Name, Fallback: l.Fallback, FallbackRefused: l.FallbackRefused, Invalid: l.Invalid, Delayed: l.Delayed,
			AdmittedUnits: l.AdmittedUnits, PerSecond: l.PerSecond, Bound: l.Bound, Overshoot: l.Overshoot, Lost: l.Lost,
			RefusedRatio: l.RefusedRatio, RefusedRatioMax: l.RefusedRatioMax,
		}
		for _, b := range l.Bases {
			m.Bases = append(m.Bases, metrics.Decisions(b))
		}
		g.Limits = append(g.Limits, m)
	}
	return g
}

func (o *observed) records() metrics.Store {
	s := o.store.Stats()
	return metrics.Store{Keys: s.Keys, MaxKeys: s.MaxKeys, Bytes: s.Bytes, RefusedAtCap: s.Refused, Dropped: s.Dropped}
}

func (o *observed) stores() []metrics.Shared {
	var all []metrics.Shared
	for _, s := range o.gateway.Stores() {
		shared := metrics.Shared{
			Name: s.Name, Reached: s.Reached, Instances: s.Instances, Bounds: gateway.CallBounds[:], Calls: s.Calls.Classes[:],
			Failed: s.Calls.Failed, Took: s.Calls.Took, State: s.State,
		}
		for _, y := range s.Sync {
			shared.Sync = append(shared.Sync, metrics.Sync{Mode: y.Mode, Calls: y.Calls, Failed: y.Failed, RefusedAtCap: y.Refused, Keys: y.Keys, Interval: y.Interval})
		}
		all = append(all, shared)
	}
	return all
}
