package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/config"
)

// Options say what to look at.
type Options struct {
	Root   fs.FS          // the files of the machine, from / on
	Redis  string         // URL of the store; empty: none
	NTP    []string       // servers to compare with
	Watch  time.Duration  // how long to watch the clocks; 0: not at all
	Config *config.Config // whose limits are checked; nil: none
	Fleet  []string       // URLs of admin listeners
	Source clock.Source   // the clocks to watch; nil: this machine's
}

// maxServers is how many NTP servers are asked.
const maxServers = 32

// HostFacts reads what the files below root and the kernel tell, without a network.
func HostFacts(root fs.FS) *Facts {
	h := host{root}
	f := &Facts{
		Kernel: clock.Kernel(), Container: h.container(), Machine: h.machine(),
		ClockSource:  h.text(clockSources + "current_clocksource"),
		ClockSources: strings.Fields(h.text(clockSources + "available_clocksource")),
	}
	f.Daemons, f.ProcessesKnown = h.processes()
	f.Config = h.configuration(f)
	return f
}

// Gather collects the facts, all that takes time side by side. The error says, all at once,
// what is wrong with the options; what cannot be reached is a fact.
func Gather(ctx context.Context, o Options) (*Facts, error) {
	var errs []error
	var store *redisClock
	if o.Redis != "" {
		var err error
		if store, err = newRedisClock(o.Redis); err != nil {
			errs = append(errs, err)
		}
	}
	var fleet []*url.URL
	for _, address := range o.Fleet {
		u, err := clockURL(address)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		fleet = append(fleet, u)
	}
	if len(o.Fleet) > MaxFleet {
		errs = append(errs, fmt.Errorf("%d instances; ask about at most %d at once", len(o.Fleet), MaxFleet))
	}
	if len(o.NTP) > maxServers {
		errs = append(errs, fmt.Errorf("%d NTP servers; name at most %d", len(o.NTP), maxServers))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}

	f := HostFacts(o.Root)
	if o.Config != nil {
		f.Needs, f.NeedsKnown = Needs(o.Config), true
	}
	f.NTP = make([]Offset, len(o.NTP))
	var wg sync.WaitGroup

	if store != nil {
		wg.Go(func() {
			defer store.Close()
			m := measure(ctx, store.name, store)
			f.Store = &m
		})
	}
	for i, server := range o.NTP {
		wg.Go(func() { f.NTP[i] = measureNTP(ctx, server) })
	}
	wg.Go(func() { f.Fleet = askFleet(ctx, fleet) })
	if o.Watch > 0 {
		wg.Go(func() { f.Watch = watch(ctx, o.Source, o.Watch) })
	}
	wg.Wait()
	return f, ctx.Err()
}

// watch looks at the clocks for a while.
func watch(ctx context.Context, source clock.Source, d time.Duration) *Watch {
	w := &Watch{For: d}
	g, err := clock.NewGuard(clock.Config{Source: source})
	if err != nil {
		w.Failed = plain(err)
		return w
	}
	g.Subscribe(func(e clock.Event) { // by the goroutine of Run alone
		if len(w.Events) < maxProblems {
			w.Events = append(w.Events, e)
		}
	})
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	g.Run(ctx)
	g.Check() // what happened since the last look
	s := g.Snapshot()
	w.Tally, w.Boot = s.Tally, s.CountsSuspends
	return w
}
