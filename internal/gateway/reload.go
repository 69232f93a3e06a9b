package gateway

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/config"
)

// reloads counts how configurations were taken over.
type reloads struct{ ok, failed atomic.Int64 }

// adopter is a store that wants to know of new plans at the moment they come into force.
type adopter interface{ Adopt(...*escapement.Plan) }

// Reload puts another configuration in force, or none of it: on an error the old one
// stays as it was. Limits that did not change keep their counters, those that did take
// over what was used; requests in flight end under the old configuration.
func (g *Gateway) Reload(c *config.Config) error {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	old := g.current.Load()
	err := g.movable(c, old)
	if err == nil {
		var next *snapshot
		if next, err = compile(c, old); err == nil {
			g.attach(next, old)
			g.install(next)
			old.retire(next)
			g.replaced(old, next)
			g.reloads.ok.Add(1)
			g.logger.Info("configuration reloaded", "routes", len(c.Routes), "limits", len(c.Limits))
			return nil
		}
	}
	g.refuseReload(err)
	return fmt.Errorf("gateway: reload: %w", err)
}

func (g *Gateway) refuseReload(err error) {
	g.reloads.failed.Add(1)
	g.logger.Error("configuration not reloaded; the one before stays in force", "error", err)
}

// install announces the plans of s to the stores and puts s in force.
func (g *Gateway) install(s *snapshot) {
	if a, ok := g.store.(adopter); ok {
		a.Adopt(s.plans(nil)...)
	}
	for _, sh := range s.stores {
		sh.Adopt(s.plans(sh)...)
	}
	g.current.Store(s)
}

// movable refuses what only a restart can change.
func (g *Gateway) movable(c *config.Config, old *snapshot) error {
	var errs []error
	moved := func(what, from, to string) {
		if from != to {
			errs = append(errs, fmt.Errorf("%s changes from %q to %q; restart to move a listener", what, from, to))
		}
	}
	moved("listen", old.config.Listen, c.Listen)
	moved("admin", old.config.Admin, c.Admin)
	if (old.config.TLS == nil) != (c.TLS == nil) {
		errs = append(errs, errors.New("tls comes or goes; restart to change how the listener speaks"))
	}
	return errors.Join(errs...)
}
