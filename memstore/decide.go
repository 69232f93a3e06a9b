package memstore

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// DecideOne answers a claim that stands alone. It allocates nothing but room for new
// records, and never waits for anything but a lock; ctx is not consulted. The clock is
// read under the lock, so that time on a record never goes back.
func (s *Store) DecideOne(ctx context.Context, c escapement.Claim) (escapement.Decision, error) {
	if c.Mode == escapement.Take && c.Patience == 0 && c.Receipt == (algo.Receipt{}) {
		return s.TakeOne(ctx, c.Plan, c.Key, c.Cost)
	}
	return s.decideOne(&c)
}

func (s *Store) decideOne(c *escapement.Claim) (d escapement.Decision, err error) {
	if !valid(c) {
		return d, explain(c)
	}
	l := s.limitOf(c.Plan)
	h := s.hash(l, c.Key)
	sh := s.shard(h)
	sh.mu.Lock()
	now := sh.instant(s.now())
	p := l.ruling(c.Plan)
	v, err := s.decide(sh, now, l, p, h, c, false)
	sh.mu.Unlock()
	if err != nil {
		return d, err
	}
	return escapement.Decide(p, v, escapement.Exact), nil
}

// TakeOne is the shortest way of DecideOne.
func (s *Store) TakeOne(_ context.Context, plan *escapement.Plan, key string, cost int64) (escapement.Decision, error) {
	prefetch(unsafe.Pointer(unsafe.StringData(key)))
	if plan == nil || uint64(cost) > uint64(algo.MaxInt) {
		return s.decideOne(&escapement.Claim{Plan: plan, Key: key, Cost: cost})
	}
	l := s.limitOf(plan)
	h := s.hash(l, key)
	sh := s.shard(h)
	sh.mu.Lock()
	prefetch(unsafe.Pointer(&sh.slots[sh.home(h)]))
	now := sh.instant(s.now())
	g := l.newest
	if g.slots == 0 && !s.keyed {
		if i, ok := sh.find(h); ok && sh.slots[i].tag() == g.id {
			sl := &sh.slots[i]
			st := sl.state()
			if !g.bucket {
				p := l.ruling(plan)
				v := p.Core().Take(&st, now, cost)
				sl.put(&st, g.id)
				sh.mu.Unlock()
				return escapement.Decide(p, v, escapement.Exact), nil
			}
			now = max(now, st.At)
			at, backlog, admitted := g.plan.Core().Draw(&st, now, cost)
			if admitted && cost > 0 {
				sl.put(&algo.State{At: at, A: backlog}, g.id)
			}
			sh.mu.Unlock()
			return escapement.DecideDrawn(g.plan, now, cost, backlog, admitted), nil
		}
	}
	p := l.ruling(plan)
	v, err := s.decide(sh, now, l, p, h, &escapement.Claim{Plan: plan, Key: key, Cost: cost}, false)
	sh.mu.Unlock()
	if err != nil {
		return escapement.Decision{}, err
	}
	return escapement.Decide(p, v, escapement.Exact), nil
}

// ruling is the plan that judges a claim: its own, or the one that replaced it.
func (l *limit) ruling(p *escapement.Plan) *escapement.Plan {
	if p.ID() == l.newest.id {
		return p
	}
	return l.newest.plan
}

// Decide answers each request on one reading of the clock, taken when every shard it needs
// is locked. ctx is not consulted: nothing here waits for anything but a lock. If requests
// and answers differ in number, what exceeds the shorter is not run.
func (s *Store) Decide(ctx context.Context, requests []escapement.Request, answers []escapement.Answer) {
	for i := range min(len(requests), len(answers)) {
		s.answer(ctx, requests[i].Claims, &answers[i])
	}
}

func (s *Store) answer(ctx context.Context, claims []escapement.Claim, a *escapement.Answer) {
	*a = escapement.Answer{Parts: a.Parts[:0]}
	if a.Err = checkAll(claims); a.Err != nil {
		return
	}
	if len(claims) == 1 {
		d, err := s.DecideOne(ctx, claims[0])
		if a.Err = err; err == nil {
			a.Outcome, a.Admitted = escapement.Decided, d.Allowed || d.Plan().Limit().Shadow
			a.Parts = append(a.Parts, d)
		}
		return
	}
	g := group{store: s, claims: claims}
	g.lock()
	g.judge()
	if a.Admitted = g.admitted(); a.Admitted {
		a.Err = g.reserve()
	}
	if a.Err == nil {
		a.Outcome = escapement.Decided
		for i := range claims {
			a.Parts = append(a.Parts, g.settle(i, a.Admitted))
		}
	} else {
		a.Admitted = false
	}
	g.unlock()
}

func checkAll(claims []escapement.Claim) error {
	if len(claims) == 0 || len(claims) > escapement.MaxClaims {
		return fmt.Errorf("%w: %d claims, want 1 to %d", escapement.ErrRequest, len(claims), escapement.MaxClaims)
	}
	for i := range claims {
		c := &claims[i]
		if !valid(c) {
			return fmt.Errorf("claim %d: %w", i, explain(c))
		}
		if len(claims) > 1 && c.Mode != escapement.Take && c.Mode != escapement.Peek {
			return fmt.Errorf("%w: claim %d, limit %s: only takes and peeks go together; send it alone", escapement.ErrRequest, i, c.Plan.Limit().Name)
		}
	}
	return nil
}

// group is a request of several claims while it is decided.
type group struct {
	store  *Store
	claims []escapement.Claim
	parts  [escapement.MaxClaims]part
	shards [escapement.MaxClaims]uint64 // locked, ascending
	locked int
	now    algo.Store
}

type part struct {
	limit    *limit
	plan     *escapement.Plan
	hash     uint64
	total    int64 // cost of all claims on this record
	repeated bool  // an earlier claim is on the same record
	reserved bool  // room for a new record is counted
	idle     bool  // a shadow that is not charged
	verdict  algo.Verdict
}

// lock takes the locks of all shards concerned, in order, and then reads the clock.
func (g *group) lock() {
	s := g.store
	for i := range g.claims {
		p := &g.parts[i]
		p.limit = s.limitOf(g.claims[i].Plan)
		p.hash = s.hash(p.limit, g.claims[i].Key)
		g.note(p.hash & s.mask)
	}
	for _, k := range g.shards[:g.locked] {
		s.shards[k].mu.Lock()
	}
	g.now = s.now()
	for _, k := range g.shards[:g.locked] {
		g.now = s.shards[k].instant(g.now)
	}
	for _, k := range g.shards[:g.locked] {
		s.shards[k].last = g.now
	}
}

// note inserts a shard into the sorted list.
func (g *group) note(k uint64) {
	at := g.locked
	for at > 0 && g.shards[at-1] >= k {
		if g.shards[at-1] == k {
			return
		}
		at--
	}
	copy(g.shards[at+1:g.locked+1], g.shards[at:g.locked])
	g.shards[at] = k
	g.locked++
}

func (g *group) unlock() {
	for _, k := range g.shards[:g.locked] {
		g.store.shards[k].mu.Unlock()
	}
}

// judge asks every claim, on the sum of what is asked of its record, and changes nothing.
func (g *group) judge() {
	for i := range g.claims {
		c, p := &g.claims[i], &g.parts[i]
		p.plan = p.limit.ruling(c.Plan)
		for j := range g.claims {
			if g.same(i, j) {
				p.total += g.claims[j].Cost
				p.repeated = p.repeated || j < i
			}
		}
		st, _ := g.state(i)
		p.verdict = judge(p.plan.Core(), st, g.now, c, p.total)
		p.idle = !p.verdict.Admitted
	}
}

func (g *group) same(i, j int) bool {
	return g.parts[i].hash == g.parts[j].hash && g.parts[i].limit == g.parts[j].limit && g.claims[i].Key == g.claims[j].Key
}

// state is a copy of the record of a claim; its ring, if any, is not to be changed.
func (g *group) state(i int) (algo.State, bool) {
	p := &g.parts[i]
	sh := g.store.shard(p.hash)
	at, ok := g.store.locate(sh, p.limit, p.hash, g.claims[i].Key)
	switch {
	case !ok:
		return algo.State{Ring: zeros[:p.limit.newest.slots]}, false
	case p.limit.newest.slots > 0:
		return sh.slots[at].rolling(&sh.rings), true
	}
	return sh.slots[at].state(), true
}

// admitted reports whether every claim of a limit that is not a shadow has room.
func (g *group) admitted() bool {
	for i := range g.claims {
		if p := &g.parts[i]; !p.verdict.Admitted && !p.plan.Limit().Shadow {
			return false
		}
	}
	return true
}

// reserve counts the records that an admitted request will make, so that none of them can
// fail for want of room once the first is written. A shadow that finds no room is not
// charged. Making room may drop a record as good as new that another claim of the request
// was judged on, so it goes round until nothing changes.
func (g *group) reserve() error {
	for again := true; again; {
		again = false
		for i := range g.claims {
			if !g.wants(i) {
				continue
			}
			p := &g.parts[i]
			sh := g.store.shard(p.hash)
			p.reserved = g.store.reserve(sh, g.now, p.hash)
			again = again || p.reserved
			if p.reserved {
				continue
			}
			sh.full++
			if p.idle = p.plan.Limit().Shadow; !p.idle {
				g.yield()
				return p.limit.full
			}
		}
	}
	return nil
}

// wants reports whether claim i will make a record that is not reserved yet.
func (g *group) wants(i int) bool {
	c, p := &g.claims[i], &g.parts[i]
	if p.reserved || p.idle || c.Mode != escapement.Take || c.Cost == 0 || g.covered(i) {
		return false
	}
	_, known := g.state(i)
	return !known
}

// yield gives back what was reserved.
func (g *group) yield() {
	for i := range g.claims {
		if g.parts[i].reserved {
			g.store.keys.Add(-1)
		}
	}
}

// covered reports whether an earlier claim has reserved the record of claim i.
func (g *group) covered(i int) bool {
	for j := range i {
		if g.parts[j].reserved && g.same(i, j) {
			return true
		}
	}
	return false
}

// settle charges claim i if the request is admitted, and makes its decision.
func (g *group) settle(i int, admitted bool) escapement.Decision {
	s, c, p := g.store, &g.claims[i], &g.parts[i]
	if !admitted {
		if p.verdict.Admitted {
			// It had room, and nothing was taken.
			st, _ := g.state(i)
			p.verdict = p.plan.Core().Peek(&st, g.now, 0)
		}
		return escapement.Decide(p.plan, p.verdict, escapement.Exact)
	}
	if p.idle {
		return escapement.Decide(p.plan, p.verdict, escapement.Exact)
	}
	sh := s.shard(p.hash)
	// All room is reserved by now: decide cannot fail.
	v, _ := s.decide(sh, g.now, p.limit, p.plan, p.hash, c, true)
	if !v.Admitted && p.repeated {
		shared := sharing(c)
		v, _ = s.decide(sh, g.now, p.limit, p.plan, p.hash, &shared, true)
	}
	return escapement.Decide(p.plan, v, escapement.Exact)
}
