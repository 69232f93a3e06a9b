package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/fallback"
	"github.com/escapement-io/escapement/internal/config"
	"github.com/escapement-io/escapement/memstore"
	"github.com/escapement-io/escapement/redisstore"
)

// shared is a store of the configuration in use. It opens itself in the background, as
// often as it takes; until then nothing runs, and the limits' own policies answer.
type shared struct {
	spec   *config.Store
	policy *fallback.Policy
	logger *slog.Logger
	calls  calls
	bound  func() clock.Interval // nil: none

	phase   *time.Duration // of agreements within their interval; nil: spread
	maxKeys int            // cap of the keys on which this instance agrees with others; 0: the default

	store atomic.Pointer[tiers] // nil until it is open
	tried chan struct{}         // closed once the first attempt has ended
	stop  context.CancelFunc
	done  chan struct{}

	mu    sync.Mutex
	plans []*escapement.Plan // to announce when it opens
}

// errNotOpen says that a store was not reached yet.
var errNotOpen = fmt.Errorf("%w: it was not reached yet", escapement.ErrStoreUnavailable)

// again is the longest pause between two attempts to open a store.
const again = 2 * time.Second

func (g *Gateway) newShared(spec *config.Store) *shared {
	s := &shared{
		spec: spec, logger: g.logger.With("store", spec.Name), bound: g.opts.bound, phase: g.opts.phase, maxKeys: g.maxKeys(),
		tried: make(chan struct{}), done: make(chan struct{}),
	}
	s.policy = fallback.NewPolicy(g.store, s.instances)
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.reach(ctx)
	return s
}

// maxKeys is the cap of the memory of the process, which holds for what it knows of shared
// stores too; 0 if it has none.
func (g *Gateway) maxKeys() int {
	if m, ok := g.store.(*memstore.Store); ok {
		return int(m.Stats().MaxKeys)
	}
	return 0
}

// reach opens the store, and says once that it could not.
func (s *shared) reach(ctx context.Context) {
	defer close(s.done)
	pause := 100 * time.Millisecond
	for attempt := 1; ; attempt++ {
		err := s.openOnce()
		if attempt == 1 {
			if err != nil {
				s.logger.Warn("the store cannot be used; its limits follow on_failure until it can", "at", s.spec.String(), "error", err)
			}
			close(s.tried)
		}
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, again)
	}
}

func (s *shared) openOnce() error {
	c, err := s.config()
	if err != nil {
		return err
	}
	store, err := redisstore.Open(c)
	if err != nil {
		return err
	}
	for _, f := range store.Findings() {
		s.logger.Warn("the store works and should be changed", "finding", f)
	}
	s.mu.Lock()
	store.Adopt(s.plans...)
	s.store.Store(s.newTiers(store))
	s.mu.Unlock()
	s.logger.Info("the store is in use", "at", s.spec.String())
	return nil
}

// instances is how many instances share the store: as configured, or as it was last heard
// of; 0 if that is not known.
func (s *shared) instances() int {
	if s.spec.Instances > 0 {
		return s.spec.Instances
	}
	if store := s.store.Load(); store != nil {
		n, _ := store.redis.Instances()
		return n
	}
	return 0
}

func (s *shared) config() (redisstore.Config, error) {
	c := s.spec
	out := redisstore.Config{
		Mode: redisstore.Mode(c.Mode), Addrs: c.Addrs, Primary: c.Primary, Username: c.Username, Password: c.Password,
		SentinelUsername: c.SentinelUsername, SentinelPassword: c.SentinelPassword, DB: c.DB, Prefix: c.Prefix,
		Deadline: c.Deadline, ExpiryMargin: c.ExpiryMargin, Connections: c.Connections, Logger: s.logger, Observer: &s.calls, Bound: s.bound,
	}
	var err error
	out.TLS, err = tlsOf(c.TLS)
	return out, err
}

// tlsOf reads the files of a store's TLS, each time it is opened.
func tlsOf(t *config.StoreTLS) (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, InsecureSkipVerify: !t.Verify}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("tls: ca: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls: ca: %s holds no certificate in PEM", t.CA)
		}
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("tls: cert: %w", err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}

// Decide asks the store; what cannot be asked is not run.
func (s *shared) Decide(ctx context.Context, requests []escapement.Request, answers []escapement.Answer) {
	if store := s.store.Load(); store != nil {
		store.Decide(ctx, requests, answers)
		return
	}
	for i := range answers[:min(len(requests), len(answers))] {
		answers[i] = escapement.Answer{Err: errNotOpen, Parts: answers[i].Parts[:0]}
	}
}

// Adopt announces plans, now or when the store opens.
func (s *shared) Adopt(plans ...*escapement.Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plans = plans
	if store := s.store.Load(); store != nil {
		store.redis.Adopt(plans...)
	}
}

// Close ends the connections, or the attempts at them.
func (s *shared) Close() error {
	s.stop()
	<-s.done
	if store := s.store.Load(); store != nil {
		return store.Close()
	}
	return nil
}

// attach gives every limit of next its store, taking over from old those that are the
// same, and waits a moment for the new ones to be reached. They are next's from then on.
func (g *Gateway) attach(next, old *snapshot) {
	by, rank := map[*config.Store]*shared{}, map[*config.Store]int{}
	for i, spec := range next.config.Stores {
		rank[spec] = i
		by[spec] = old.sharedLike(spec)
		if by[spec] == nil {
			by[spec] = g.newShared(spec)
		}
		next.stores = append(next.stores, by[spec])
	}
	for _, l := range next.limits {
		if l.Store != nil {
			l.shared, l.rank = by[l.Store], 1+rank[l.Store]
		}
	}
	patience := time.NewTimer(openPatience)
	defer patience.Stop()
	for _, s := range next.stores {
		select {
		case <-s.tried:
		case <-patience.C:
			return
		}
	}
}

// openPatience is how long a start or a reload waits for stores to be reached.
const openPatience = 3 * time.Second

// sharedLike is the store of a snapshot that is the same as spec, if there is one.
func (s *snapshot) sharedLike(spec *config.Store) *shared {
	if s == nil {
		return nil
	}
	for _, sh := range s.stores {
		if sh.spec.Same(spec) {
			return sh
		}
	}
	return nil
}

// enter is the snapshot in force. Its stores stay open until it is left.
func (g *Gateway) enter() *snapshot {
	for {
		s := g.current.Load()
		if len(s.stores) == 0 {
			return s
		}
		s.users.Add(1)
		if g.current.Load() == s {
			return s
		}
		g.leave(s)
	}
}

func (g *Gateway) leave(s *snapshot) {
	if s.users.Add(-1) == 0 {
		g.closeUnused(s)
	}
}

// replaced marks that next took the place of s: what only s used is closed when the last
// request has left it.
func (g *Gateway) replaced(s, next *snapshot) {
	var unused []*shared
	for _, sh := range s.stores {
		if next.sharedLike(sh.spec) != sh {
			unused = append(unused, sh)
		}
	}
	s.unused.Store(&unused)
	if s.users.Load() == 0 {
		g.closeUnused(s)
	}
}

func (g *Gateway) closeUnused(s *snapshot) {
	list := s.unused.Load()
	if list == nil || !s.closed.CompareAndSwap(false, true) {
		return
	}
	for _, sh := range *list {
		g.closing.Go(func() {
			if err := sh.Close(); err != nil {
				sh.logger.Warn("the store was not closed cleanly", "error", err)
			}
		})
	}
}

// closeStores closes the stores of the snapshot in force, and waits for all.
func (g *Gateway) closeStores() error {
	var errs []error
	for _, sh := range g.current.Load().stores {
		errs = append(errs, sh.Close())
	}
	g.closing.Wait()
	return errors.Join(errs...)
}
