package memstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

// Single is a store for one limit without keys: whatever the key of a claim, there is one
// record. A token_bucket or gcra limit on a clock.Line or a Coarse clock is one word, changed
// without a lock unless its numbers are extreme; everything else stands under a mutex. It needs no Close
// and, unlike a Store, does not count the time the machine is suspended: that refills less.
//
//	limiter := escapement.NewLimiter(memstore.NewSingle(plan), plan)
type Single struct {
	plan  *escapement.Plan
	clock Clock
	line  *clock.Line // clock, if it is one: spares an indirect call
	cell  cell
	_     [40]byte // keeps the word and the crowd in a cache line of their own
	word  atomic.Int64
	crowd atomic.Int64 // claims that are still to queue at mu
	_     [48]byte

	mu    sync.Mutex
	state algo.State // guarded by mu; unused with a cell
	last  algo.Store // guarded by mu
}

var _ escapement.Taker = (*Single)(nil)

// cell says how a bucket's state is one word: the credits drained between start and the
// instant of the state, plus its backlog. Less what has drained until now, that is the
// backlog of now.
type cell struct {
	used  bool
	start int64 // in ticks
	tick  int64
	n     int64 // credits drained in a tick
	p     int64 // credits of a unit
	full  int64 // capacity in credits
	most  int64 // capacity in units, 0 unless used
}

// NewSingle makes a store for the limit of a plan, on a new clock.Line unless told
// another clock. Options about keys mean nothing to it.
func NewSingle(plan *escapement.Plan, opts ...Option) *Single {
	var o Store
	for _, opt := range opts {
		opt(&o)
	}
	if o.clock == nil {
		o.clock = clock.NewLine()
	}
	s := &Single{plan: plan, clock: o.clock}
	s.state.Ring = make([]uint32, plan.Core().Slots())
	s.line, _ = o.clock.(*clock.Line)
	if _, coarse := o.clock.(*Coarse); coarse || s.line != nil {
		s.cell = newCell(plan.Core(), s.now())
	}
	return s
}

func (s *Single) now() algo.Store {
	if s.line != nil {
		return s.line.Now()
	}
	return s.clock.Now()
}

func newCell(p *algo.Plan, now algo.Store) cell {
	if a := p.Algorithm(); a != algo.TokenBucket && a != algo.GCRA {
		return cell{}
	}
	q := p.Numbers()
	c := cell{start: int64(now) / int64(q.Tick), tick: int64(q.Tick), n: q.N, p: q.P, full: q.Full, most: q.Count}
	// From now until the last instant the word must hold what drains beside a full backlog.
	ticks := int64(algo.MaxInstant)/c.tick - c.start
	if ticks <= 0 || c.n > (1<<62)/ticks {
		return cell{}
	}
	c.used = true
	return c
}

// drained is the credits drained between start and an instant.
func (c *cell) drained(now algo.Store) int64 {
	t := int64(now)
	if c.tick != 1 {
		t /= c.tick
	}
	return (t - c.start) * c.n
}

// unpack is the state that a word stands for, at now.
func (c *cell) unpack(word, drained int64, now algo.Store) algo.State {
	if c.tick != 1 {
		now -= now % algo.Store(c.tick)
	}
	return algo.State{At: now, A: max(0, word-drained)}
}

// suits reports whether the claim is one of the plan that the Single was made for, or of a
// variant of it.
func (s *Single) suits(c *escapement.Claim) bool { return valid(c) && c.Plan.ID() == s.plan.ID() }

func (s *Single) explain(c *escapement.Claim) error {
	if !valid(c) {
		return explain(c)
	}
	return fmt.Errorf("%w: limit %s on a Single that was made for another plan of %s; make one for it", escapement.ErrRequest, c.Plan.Limit().Name, s.plan.Limit().Name)
}

// DecideOne answers a claim that stands alone, without allocating.
func (s *Single) DecideOne(ctx context.Context, c escapement.Claim) (escapement.Decision, error) {
	if c.Mode == escapement.Take && c.Patience == 0 && c.Receipt == (algo.Receipt{}) {
		return s.TakeOne(ctx, c.Plan, c.Key, c.Cost)
	}
	return s.decideOne(&c)
}

func (s *Single) decideOne(c *escapement.Claim) (escapement.Decision, error) {
	if !s.suits(c) {
		return escapement.Decision{}, s.explain(c)
	}
	return escapement.Decide(c.Plan, s.one(c), escapement.Exact), nil
}

// Take is Limiter.Take without a context, a key or an observer: nothing a program can ask
// of this package is cheaper. A shadow limit is not heeded. A cost that is not valid is an
// error with a refusal, and nothing is taken.
func (s *Single) Take(cost int64) (escapement.Decision, error) {
	c := &s.cell
	if uint64(cost-1) >= uint64(c.most) {
		return s.decideOne(&escapement.Claim{Plan: s.plan, Cost: cost})
	}
	if s.crowd.Load() > 0 {
		return s.queue(cost), nil
	}
	if d, ok := s.swap(cost); ok {
		return d, nil
	}
	s.crowd.Store(crowd)
	return s.queue(cost), nil
}

// swap judges as algo does, where the word stands, without a copy of the state. The word is
// loaded before the clock is read, so that nothing on it lies ahead of the reading. It is
// false if another claim came in between.
func (s *Single) swap(cost int64) (escapement.Decision, bool) {
	c := &s.cell
	word := s.word.Load()
	now := s.now()
	drained := c.drained(now)
	backlog := max(0, word-drained)
	if backlog > c.full-cost*c.p {
		return escapement.DecideDrawn(s.plan, now, cost, backlog, false), true
	}
	backlog += cost * c.p
	if s.word.CompareAndSwap(word, drained+backlog) {
		return escapement.DecideDrawn(s.plan, now, cost, backlog, true), true
	}
	return escapement.Decision{}, false
}

// crowd is how many claims queue after two have met. While claims of several processors meet
// all the time, a mutex costs less than swaps that fail, each with a reading of the clock.
const crowd = 1024

func (s *Single) queue(cost int64) escapement.Decision {
	s.mu.Lock()
	d, ok := s.swap(cost)
	for !ok {
		d, ok = s.swap(cost)
	}
	if n := s.crowd.Load(); n > 0 {
		s.crowd.Store(n - 1)
	}
	s.mu.Unlock()
	return d
}

// TakeOne is Take for the plan that the Single was made for, or a variant of it.
func (s *Single) TakeOne(_ context.Context, p *escapement.Plan, key string, cost int64) (escapement.Decision, error) {
	if p != s.plan {
		return s.decideOne(&escapement.Claim{Plan: p, Key: key, Cost: cost})
	}
	return s.Take(cost)
}

// one answers any claim.
func (s *Single) one(c *escapement.Claim) algo.Verdict {
	if !s.cell.used {
		s.mu.Lock()
		defer s.mu.Unlock()
		return c.Ask(c.Plan.Core(), &s.state, s.instant())
	}
	for {
		r := s.read()
		v := c.Ask(c.Plan.Core(), &r.state, r.now)
		if !v.Admitted || c.Mode == escapement.Peek || s.write(&r) {
			return v
		}
	}
}

// instant is a reading of the clock under the mutex.
func (s *Single) instant() algo.Store {
	s.last = max(s.last, min(s.now(), algo.MaxInstant))
	return s.last
}

// reading is a word taken apart.
type reading struct {
	word, drained int64
	now           algo.Store
	state         algo.State
}

// read loads the word before it reads the clock, so that no time on the word lies ahead.
func (s *Single) read() reading {
	r := reading{word: s.word.Load()}
	r.now = s.now()
	r.drained = s.cell.drained(r.now)
	r.state = s.cell.unpack(r.word, r.drained, r.now)
	return r
}

// write puts the changed state back, unless somebody else was first.
func (s *Single) write(r *reading) bool {
	return s.word.CompareAndSwap(r.word, r.drained+r.state.A)
}

// Decide answers each request as a Store would whose every claim has the same key.
func (s *Single) Decide(ctx context.Context, requests []escapement.Request, answers []escapement.Answer) {
	for i := range min(len(requests), len(answers)) {
		s.answer(requests[i].Claims, &answers[i])
	}
}

func (s *Single) answer(claims []escapement.Claim, a *escapement.Answer) {
	*a = escapement.Answer{Parts: a.Parts[:0]}
	a.Err = checkAll(claims)
	for i := range claims {
		if a.Err == nil && !s.suits(&claims[i]) {
			a.Err = s.explain(&claims[i])
		}
	}
	if a.Err != nil {
		return
	}
	a.Outcome = escapement.Decided
	a.Admitted = s.many(claims, &a.Parts) || s.plan.Limit().Shadow
}

// many answers claims together.
func (s *Single) many(claims []escapement.Claim, parts *[]escapement.Decision) bool {
	if !s.cell.used {
		s.mu.Lock()
		defer s.mu.Unlock()
		return together(&s.state, s.instant(), claims, parts)
	}
	for {
		r := s.read()
		*parts = (*parts)[:0]
		admitted := together(&r.state, r.now, claims, parts)
		if !admitted || s.write(&r) {
			return admitted
		}
	}
}

// together judges claims on one state by their sum, and charges all of them or none.
func together(st *algo.State, now algo.Store, claims []escapement.Claim, parts *[]escapement.Decision) bool {
	total := int64(0)
	for i := range claims {
		total += claims[i].Cost
	}
	admitted := true
	var verdicts [escapement.MaxClaims]algo.Verdict
	for i := range claims {
		verdicts[i] = judge(claims[i].Plan.Core(), *st, now, &claims[i], total)
		admitted = admitted && verdicts[i].Admitted
	}
	for i := range claims {
		c := &claims[i]
		core, v := c.Plan.Core(), verdicts[i]
		switch {
		case admitted:
			if v = c.Ask(core, st, now); !v.Admitted {
				shared := sharing(c)
				v = shared.Ask(core, st, now)
			}
		case v.Admitted:
			v = core.Peek(st, now, 0)
		}
		*parts = append(*parts, escapement.Decide(c.Plan, v, escapement.Exact))
	}
	return admitted
}
