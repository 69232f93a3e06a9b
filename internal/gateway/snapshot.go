package gateway

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/httplimit"
	"github.com/escapement-io/escapement/internal/config"
)

// snapshot is everything a configuration decides, compiled. It does not change.
type snapshot struct {
	config     *config.Config
	router     *router
	who        identities
	clients    httplimit.Clients
	limits     []*limit
	transports map[link]*http.Transport
	cert       *tls.Certificate // nil: plain HTTP

	stores []*shared // in the order of the configuration
	users  atomic.Int64
	unused atomic.Pointer[[]*shared] // set once another snapshot is in force
	closed atomic.Bool
}

// route is a route of the configuration, compiled.
type route struct {
	*config.Route
	limits   []*limit
	rules    []uint32 // of each limit: the bit of its list of rules, or 0
	shared   bool     // some limit's state is outside of this process
	strict   uint32   // lists of which at least one rule must apply
	upstream *upstream
}

// compile makes a snapshot, taking over from old what did not change: plans, counts and
// connections. old may be nil. Every problem is reported, joined; old is left as it is.
func compile(c *config.Config, old *snapshot) (*snapshot, error) {
	s := &snapshot{
		config: c, who: newIdentities(&c.Consumers),
		clients:    httplimit.Clients{Trusted: c.TrustedProxies},
		transports: map[link]*http.Transport{},
	}
	var errs []error
	before := map[string]*limit{}
	reused := map[link]*http.Transport{}
	if old != nil {
		for _, l := range old.limits {
			before[l.Name] = l
		}
		reused = old.transports
	}
	byConfig := make(map[*config.Limit]*limit, len(c.Limits))
	for _, cl := range c.Limits {
		l, err := compileLimit(cl, before[cl.Name])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		byConfig[cl] = l
		s.limits = append(s.limits, l)
	}
	routes := make([]*route, 0, len(c.Routes))
	for _, cr := range c.Routes {
		rt, err := s.route(cr, byConfig, reused)
		if err != nil {
			errs = append(errs, fmt.Errorf("route %s: %w", cr.ID, err))
			continue
		}
		routes = append(routes, rt)
	}
	var err error
	if s.router, err = newRouter(routes); err != nil {
		errs = append(errs, err)
	}
	if c.TLS != nil {
		cert, err := tls.LoadX509KeyPair(c.TLS.Cert, c.TLS.Key)
		if err != nil {
			errs = append(errs, fmt.Errorf("tls: %w", err))
		}
		s.cert = &cert
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *snapshot) route(c *config.Route, limits map[*config.Limit]*limit, reused map[link]*http.Transport) (*route, error) {
	rt := &route{Route: c}
	if len(c.Limits) > escapement.MaxClaims {
		return nil, fmt.Errorf("%d limits; use at most %d", len(c.Limits), escapement.MaxClaims)
	}
	sets := map[string]uint32{}
	for _, cl := range c.Limits {
		l := limits[cl]
		if l == nil {
			continue // its own error says why
		}
		bit := uint32(0)
		if cl.RuleSet != "" {
			if sets[cl.RuleSet] == 0 {
				sets[cl.RuleSet] = 1 << len(sets)
			}
			bit = sets[cl.RuleSet]
			if !cl.AllowDegradation {
				rt.strict |= bit
			}
		}
		rt.shared = rt.shared || cl.Store != nil
		rt.limits, rt.rules = append(rt.limits, l), append(rt.rules, bit)
	}
	if c.Upstream == nil {
		return nil, errors.New("no upstream; name one")
	}
	u, k, err := newUpstream(c.Upstream)
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	if s.transports[k] == nil {
		if s.transports[k] = reused[k]; s.transports[k] == nil {
			s.transports[k] = newTransport(k)
		}
	}
	u.rt = s.transports[k]
	rt.upstream = u
	return rt, nil
}

// plans are what a store should know of; nil stands for the memory of the process.
func (s *snapshot) plans(of *shared) []*escapement.Plan {
	var plans []*escapement.Plan
	for _, l := range s.limits {
		if l.plan != nil && l.shared == of {
			plans = append(plans, l.plan)
		}
	}
	return plans
}

// retire closes the idle connections that the next snapshot does not use.
func (s *snapshot) retire(next *snapshot) {
	for k, t := range s.transports {
		if next == nil || next.transports[k] != t {
			t.CloseIdleConnections()
		}
	}
}
