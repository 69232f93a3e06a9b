package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

// Store keeps limits on Redis. Safe for concurrent use; Close it.
type Store struct {
	cfg     Config
	line    *clock.Line
	caller  string // names this store object among the callers of the line
	machine string // names this machine, for votes
	calls   int    // calls under way to one primary
	unasked bool   // scripts may not ask for the time

	mu      sync.Mutex // guards witness
	witness *witness

	limits   sync.Map // name to *generation
	lanes    sync.Map // of a primary's name: what is under way of syncs, see shard.lanes
	topology atomic.Pointer[topology]
	links    sync.Mutex // held to change the topology
	findings []string

	stop      chan struct{}
	kick      chan struct{} // asks for a look at the topology
	done      sync.WaitGroup
	closed    atomic.Bool
	looking   atomic.Bool
	settling  atomic.Bool
	instances atomic.Int64 // as last heard of
}

var _ escapement.FastStore = (*Store)(nil)

// generation is the newest plan of a limit's name.
type generation struct {
	id   uint32
	plan *escapement.Plan
	wire *wire
}

// Adopt announces plans, so that they replace older ones of their names now and not when
// they are first asked for. A claim that still carries an older plan is decided under the
// new one. Records are converted when they are next met, as of this instant or as of their
// last writing, if that is later: buckets keep their level, the fraction scaled; counters
// of an equal window stay; of anything else what counts is charged to the new window. Two
// instances with two definitions of one limit convert to and fro, and together admit no
// more than the larger.
func (s *Store) Adopt(plans ...*escapement.Plan) {
	for _, p := range plans {
		s.newest(p)
	}
}

func (s *Store) newest(p *escapement.Plan) *generation {
	name := p.Limit().Name
	for {
		v, ok := s.limits.Load(name)
		if ok && v.(*generation).id >= p.ID() {
			return v.(*generation)
		}
		g := &generation{p.ID(), p, newWire(p)}
		g.wire.since = s.instant()
		if !ok {
			if _, raced := s.limits.LoadOrStore(name, g); !raced {
				return g
			}
		} else if s.limits.CompareAndSwap(name, v, g) {
			return g
		}
	}
}

// ruling is the plan that judges claims of p: its own variant, or what replaced it. It
// also reports whether receipts of p are void.
func (s *Store) ruling(p *escapement.Plan) (*wire, bool) {
	g := s.newest(p)
	switch {
	case g.plan == p:
		return g.wire, false
	case g.id == p.ID():
		w := newWire(p)
		w.since = g.wire.since
		return w, false
	}
	return g.wire, newWire(p).text != g.wire.text
}

// add appends a claim to an item.
func (s *Store) add(it *item, c escapement.Claim) {
	w, void := s.ruling(c.Plan)
	if void {
		if c.Mode == escapement.Refund {
			c.Receipt.Units = 0
		}
		if c.Mode == escapement.Charge && c.Receipt.At != 0 {
			c.Receipt.At = 0
		}
	}
	it.claims = append(it.claims, c)
	it.wires = append(it.wires, w)
	it.keys = append(it.keys, key(s.cfg.Prefix, w.plan.Limit().Name, c.Key))
}

// DecideOne answers a claim that stands alone.
func (s *Store) DecideOne(ctx context.Context, c escapement.Claim) (escapement.Decision, error) {
	var part [1]escapement.Decision
	a := escapement.Answer{Parts: part[:0]}
	s.one(ctx, &c, &a)
	if a.Outcome == escapement.Decided {
		return a.Parts[0], nil
	}
	return escapement.Decision{}, a.Err
}

// Decide answers each request in one script, all or nothing: whatever its keys on a
// single server; on a cluster those of one key, and across keys by giving back. It
// returns within the deadline of the configuration, or the caller's own if that is
// nearer. If requests and answers differ in number, what exceeds the shorter is not run.
func (s *Store) Decide(ctx context.Context, requests []escapement.Request, answers []escapement.Answer) {
	n := min(len(requests), len(answers))
	if n == 1 && len(requests[0].Claims) == 1 {
		answers[0] = escapement.Answer{Parts: answers[0].Parts[:0]}
		s.one(ctx, &requests[0].Claims[0], &answers[0])
		return
	}
	timer := time.NewTimer(s.cfg.Deadline)
	defer timer.Stop()
	var few [1]errand
	errands := few[:0]
	for i := range n {
		answers[i] = escapement.Answer{Parts: answers[i].Parts[:0]}
		errands = append(errands, s.errandFor(ctx, requests[i].Claims, &answers[i]))
	}
	send(errands, answers)
	for i := range errands {
		errands[i].await(ctx, timer.C, &answers[i])
		if errands[i].late {
			// Those after it have no time left either.
			timer.Reset(0)
		}
	}
}

// fail answers the errands to a primary that were not sent.
func fail(errands []errand, answers []escapement.Answer, sh *shard, err error) {
	for i := range errands {
		if errands[i].shard == sh {
			answers[i].Err = err
			errands[i] = errand{store: errands[i].store}
		}
	}
}

// errand is a request under way: one ticket, or one per slot of a cluster.
type errand struct {
	store  *Store
	shard  *shard
	ticket *ticket
	late   bool // the deadline has passed

	parts []*part // of a request that was split
}

// errandFor makes a request ready to be sent. Answers that need none are given at once.
func (s *Store) errandFor(ctx context.Context, claims []escapement.Claim, a *escapement.Answer) errand {
	e := errand{store: s}
	if a.Err = checkAll(claims); a.Err != nil {
		return e
	}
	if a.Err = ctx.Err(); a.Err != nil {
		return e
	}
	if s.cfg.Mode == Cluster && len(claims) > 1 {
		return s.split(claims)
	}
	it := &item{}
	for _, c := range claims {
		s.add(it, c)
	}
	it.sum()
	e.ticket, e.shard = newTicket(it), s.topology.Load().shard(it.keys[0])
	return e
}

// send puts errands on their way, those to one primary together, so that they are decided
// in their order as far as a call holds them.
func send(errands []errand, answers []escapement.Answer) {
	var together []*ticket
	for from := range errands {
		sh := errands[from].shard
		if sh == nil || errands[from].ticket.queued {
			continue
		}
		together = together[:0]
		for i := from; i < len(errands); i++ {
			if errands[i].shard == sh {
				errands[i].ticket.queued = true
				together = append(together, errands[i].ticket)
			}
		}
		if err := sh.submit(together...); err != nil {
			fail(errands[from:], answers[from:], sh, err)
		}
	}
}

func (e *errand) await(ctx context.Context, deadline <-chan time.Time, a *escapement.Answer) {
	switch {
	case len(e.parts) > 0:
		e.join(ctx, deadline, a)
	case e.ticket != nil:
		e.collect(ctx, e.shard, e.ticket, deadline, a)
	}
}

// bounds are what is vouched for of a call sent now.
func (s *Store) bounds(primary string, now algo.Store, items []*item) (bounds, error) {
	if s.unasked {
		return s.ownBounds(items)
	}
	s.mu.Lock()
	b, ok := s.witness.bounds(primary, int64(now))
	s.mu.Unlock()
	if !ok {
		return b, errNoLine
	}
	return b, nil
}

// replied hands a reading of a primary's clock to the witness.
func (s *Store) replied(primary string, send, receive, raw int64, b bounds) {
	s.mu.Lock()
	steps := s.witness.tally.Steps
	s.witness.reply(primary, send, receive, raw)
	stepped := s.witness.tally.Steps != steps
	by := s.witness.tally.LastStep
	if x := algo.Store(raw + b.adj); x < b.lo || x > b.hi {
		s.witness.tally.Clamped++
	}
	s.mu.Unlock()
	if stepped {
		s.stepped(primary, by)
	}
}

func (s *Store) stepped(primary string, by int64) {
	d := time.Duration(by) * time.Microsecond
	s.cfg.Logger.Warn("the store's clock stepped; its line goes on", "primary", primary, "step", d)
	if o := s.cfg.Observer; o != nil {
		o.Stepped(primary, d)
	}
}

func (s *Store) opened(sh *shard, open bool, err error) {
	if open {
		s.cfg.Logger.Warn("the store does not answer; it is left alone until a probe succeeds", "primary", sh.name, "error", err)
		s.look()
	} else {
		s.cfg.Logger.Info("the store answers again", "primary", sh.name)
	}
	if o := s.cfg.Observer; o != nil {
		o.Opened(sh.name, open)
	}
}

// Close ends the connections. Decisions under way are given up; later ones fail.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	close(s.stop)
	s.done.Wait()
	s.leave()
	s.links.Lock()
	defer s.links.Unlock()
	for _, sh := range s.topology.Load().shards {
		sh.close()
	}
	return nil
}
