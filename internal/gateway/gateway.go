package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/fallback"
	"github.com/escapement-io/escapement/internal/config"
)

// Gateway serves one configuration after another. Make one with New.
type Gateway struct {
	store    escapement.Store
	fast     escapement.FastStore // store, if it has the shorter way
	policy   *fallback.Policy     // where store has no answer
	logger   *slog.Logger
	quiet    *quiet
	opts     options
	hostname string
	port     string // of the listener

	current   atomic.Pointer[snapshot]
	reloading sync.Mutex
	reloads   reloads

	exchanges sync.Pool
	inflight  sync.WaitGroup
	closing   sync.WaitGroup // stores that no configuration uses any more
	held      atomic.Int64   // requests waiting for their turn
	ready     atomic.Bool

	listener, admin net.Listener
}

type options struct {
	grace         time.Duration
	clientTimeout time.Duration
	headerTimeout time.Duration
	maxConns      int
	h2c           bool
	stamps        bool
	phase         *time.Duration
	admin         map[string]http.Handler
	bound         func() clock.Interval
}

// Option configures a Gateway.
type Option func(*options)

// WithGrace is how long requests in flight may take to end at shutdown; 10 s by default.
func WithGrace(d time.Duration) Option { return func(o *options) { o.grace = d } }

// WithClientTimeout is how long a client may pause while it sends a body or takes in a
// response; 60 s by default.
func WithClientTimeout(d time.Duration) Option { return func(o *options) { o.clientTimeout = d } }

// WithHeaderTimeout is how long a client may take to send the header of a request; 10 s
// by default.
func WithHeaderTimeout(d time.Duration) Option { return func(o *options) { o.headerTimeout = d } }

// WithMaxConns bounds the connections of clients; further ones wait to be accepted. By
// default they are not bounded.
func WithMaxConns(n int) Option { return func(o *options) { o.maxConns = n } }

// WithH2C also speaks HTTP/2 without TLS to clients that begin with it.
func WithH2C() Option { return func(o *options) { o.h2c = true } }

// WithAdmin serves h under a pattern of http.ServeMux on the admin listener.
func WithAdmin(pattern string, h http.Handler) Option {
	return func(o *options) { o.admin[pattern] = h }
}

// WithBound lets stores whose scripts may not ask for the time be dated by this process's
// own clock, as far as bound vouches for it.
func WithBound(bound func() clock.Interval) Option { return func(o *options) { o.bound = bound } }

// WithSyncPhase puts all agreements with stores at d within their interval, for drills that
// place their instances beside each other.
func WithSyncPhase(d time.Duration) Option { return func(o *options) { o.phase = &d } }

// Bounds of what a client may send and hold.
const (
	maxHeader   = 64 << 10
	idleClients = 75 * time.Second
)

// New compiles a configuration and opens its listeners; Run serves them. The error joins
// every problem. The gateway owns the store from then on and closes it, if it can be
// closed, at the end of Run.
func New(c *config.Config, store escapement.Store, logger *slog.Logger, opts ...Option) (*Gateway, error) {
	g := &Gateway{store: store, logger: logger, quiet: &quiet{to: logger}}
	g.opts = options{grace: 10 * time.Second, clientTimeout: time.Minute, headerTimeout: 10 * time.Second, admin: map[string]http.Handler{}}
	for _, o := range opts {
		o(&g.opts)
	}
	g.fast, _ = store.(escapement.FastStore)
	g.policy = fallback.NewPolicy(nil, fallback.Fixed(0))
	g.hostname, _ = os.Hostname() // without one the variable does not resolve
	g.exchanges.New = g.newExchange
	s, err := compile(c, nil)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	if g.listener, err = net.Listen("tcp", c.Listen); err != nil {
		return nil, fmt.Errorf("gateway: listen: %w", err)
	}
	_, g.port, _ = net.SplitHostPort(g.listener.Addr().String())
	if c.Admin != "" {
		if g.admin, err = net.Listen("tcp", c.Admin); err != nil {
			return nil, errors.Join(fmt.Errorf("gateway: admin: %w", err), g.listener.Close())
		}
	}
	g.attach(s, nil)
	g.install(s)
	return g, nil
}

// Addr is where the gateway listens.
func (g *Gateway) Addr() net.Addr { return g.listener.Addr() }

// AdminAddr is where the admin listener is, or nil without one.
func (g *Gateway) AdminAddr() net.Addr {
	if g.admin == nil {
		return nil
	}
	return g.admin.Addr()
}

// Run serves until ctx ends, then stops accepting, lets requests in flight end within
// the grace period, cuts off what is left, and closes the store. It must be called once.
func (g *Gateway) Run(ctx context.Context) error {
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	sampling, enough := context.WithCancel(requests)
	var sampler sync.WaitGroup
	sampler.Go(func() { g.sampleAlways(sampling) })
	defer func() { enough(); sampler.Wait() }()
	front, listener := g.frontServer(requests)
	servers := []*http.Server{front}
	failed := make(chan error, 2)
	go func() { failed <- front.Serve(listener) }()
	if g.admin != nil {
		back := &http.Server{
			Handler: g.adminHandler(), ReadHeaderTimeout: g.opts.headerTimeout, ReadTimeout: g.opts.clientTimeout,
			IdleTimeout: idleClients, MaxHeaderBytes: maxHeader, ErrorLog: g.quiet.logger(),
		}
		servers = append(servers, back)
		go func() { failed <- back.Serve(g.admin) }()
		g.logger.Info("admin listening", "addr", g.admin.Addr().String())
	}
	g.ready.Store(true)
	g.logger.Info("gateway listening", "addr", g.listener.Addr().String(), "tls", g.current.Load().cert != nil)
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		err = fmt.Errorf("gateway: serve: %w", err)
	}
	g.ready.Store(false)
	g.logger.Info("shutting down", "grace", g.opts.grace)
	return errors.Join(err, g.shutdown(servers, cut))
}

func (g *Gateway) frontServer(requests context.Context) (*http.Server, net.Listener) {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(g.opts.h2c)
	s := &http.Server{
		Handler: g, Protocols: &protocols, ReadHeaderTimeout: g.opts.headerTimeout, IdleTimeout: idleClients,
		MaxHeaderBytes: maxHeader, ErrorLog: g.quiet.logger(), DisableGeneralOptionsHandler: true,
		BaseContext: func(net.Listener) context.Context { return requests },
	}
	l := g.listener
	if g.opts.maxConns > 0 {
		l = netutil.LimitListener(l, g.opts.maxConns)
	}
	l = watchedListener{l, g.opts.clientTimeout}
	if g.current.Load().cert != nil {
		l = tls.NewListener(l, &tls.Config{
			MinVersion: tls.VersionTLS12,
			NextProtos: []string{"h2", "http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				return g.current.Load().cert, nil
			},
		})
	}
	return s, l
}

// shutdown ends the servers in order: requests first, the store last.
func (g *Gateway) shutdown(servers []*http.Server, cut context.CancelFunc) error {
	grace, cancel := context.WithTimeout(context.Background(), g.opts.grace)
	defer cancel()
	var errs []error
	for _, s := range servers {
		if err := s.Shutdown(grace); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			errs = append(errs, err)
		}
	}
	done := make(chan struct{})
	go func() {
		g.inflight.Wait() // upgraded connections too, which Shutdown does not know
		close(done)
	}()
	select {
	case <-done:
	case <-grace.Done():
		g.logger.Warn("requests in flight were cut off at the end of the grace period")
		cut()
		for _, s := range servers {
			errs = append(errs, s.Close())
		}
		<-done
	}
	g.current.Load().retire(nil)
	errs = append(errs, g.closeStores())
	if c, ok := g.store.(io.Closer); ok {
		errs = append(errs, c.Close())
	}
	g.logger.Info("stopped")
	return errors.Join(errs...)
}
