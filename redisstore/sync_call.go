package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

// Syncs carry many keys a call and go beside the exact calls, never in them, and only a few
// at a time: what is under way of them is what an exact call may find before it at a server.
const (
	maxSync      = 64 // keys in one call
	syncCalls    = 2  // calls under way to a single server
	clusterCalls = 16 // to a primary of a cluster, where a call carries the keys of one slot
)

// syncCall is one script call about several keys, each once. Whoever serves it never
// touches the caller's buffers.
type syncCall struct {
	script script
	keys   []string
	places []int // in the caller's list
	plans  []*wire
	more   func(*wire) []string // what follows the numbers of a plan
	body   []string
	stage  atomic.Int32

	bounds  bounds // of the last sending
	words   []int64
	err     error
	outcome escapement.Outcome // if err is set
}

// place is the number of a plan in the call.
func (c *syncCall) place(w *wire) string {
	for i, p := range c.plans {
		if p == w {
			return strconv.Itoa(i + 1)
		}
	}
	c.plans = append(c.plans, w)
	return strconv.Itoa(len(c.plans))
}

func (c *syncCall) encode(b bounds, margin time.Duration) (keys, args []string) {
	c.bounds = b
	args = append(b.args(margin), strconv.Itoa(len(c.plans)))
	for _, w := range c.plans {
		numbers := w.all(b.middle())
		args = append(args, w.text, strconv.FormatInt(int64(w.since), 10), strconv.Itoa(len(numbers)))
		args = append(appendInts(args, numbers...), c.more(w)...)
	}
	return c.keys, append(args, c.body...)
}

// held reports whether at is not what the server's clock read: a bound, or the instant of
// the record.
func (c *syncCall) held(at algo.Store) bool {
	x := algo.Store(c.words[0] + c.bounds.adj)
	return c.bounds.unasked || x < c.bounds.lo || x > c.bounds.hi || at != x
}

// syncList collects the calls of one list.
type syncList struct {
	store  *Store
	script script
	more   func(*wire) []string
	calls  []*syncCall
	shards []*shard

	open map[syncGroup]*syncCall
	seen map[string]int
}

// syncGroup is what may ride together: keys of one slot of a cluster, and each key once.
type syncGroup struct {
	slot  uint16
	round int
}

func (s *Store) newSyncList(sc script, more func(*wire) []string) *syncList {
	return &syncList{store: s, script: sc, more: more, open: map[syncGroup]*syncCall{}, seen: map[string]int{}}
}

// add puts a key of the caller's list into a call, of which the rest is to be appended to
// its body.
func (l *syncList) add(place int, w *wire, key string) *syncCall {
	g := syncGroup{round: l.seen[key]}
	l.seen[key]++
	if l.store.cfg.Mode == Cluster {
		g.slot = slot(key)
	}
	c := l.open[g]
	if c == nil {
		c = &syncCall{script: l.script, more: l.more}
		l.open[g] = c
		l.calls = append(l.calls, c)
		l.shards = append(l.shards, l.store.topology.Load().shard(key))
	}
	c.keys, c.places = append(c.keys, key), append(c.places, place)
	c.body = append(c.body, c.place(w))
	if len(c.keys) == maxSync {
		delete(l.open, g)
	}
	return c
}

// run sends all calls and hands each to done, which runs on this goroutine, when it is
// answered or given up. It returns within the deadline of the configuration, or the
// caller's own if that is nearer.
func (l *syncList) run(ctx context.Context, done func(*syncCall)) {
	timer := time.NewTimer(l.store.cfg.Deadline)
	defer timer.Stop()
	answered := make(chan *syncCall, len(l.calls))
	ended := make(chan struct{})
	defer close(ended)
	byShard := map[*shard][]*syncCall{}
	for i, c := range l.calls {
		byShard[l.shards[i]] = append(byShard[l.shards[i]], c)
	}
	for sh, calls := range byShard {
		go sh.serveSyncs(calls, answered, ended)
	}
	for left := len(l.calls); left > 0; left-- {
		select {
		case c := <-answered:
			done(c)
		case <-timer.C:
			l.giveUp(errTimeout, answered, left, done)
			return
		case <-ctx.Done():
			l.giveUp(ctx.Err(), answered, left, done)
			return
		}
	}
}

// giveUp ends the calls that are not answered: those not sent yet are not, of the others
// nothing is known.
func (l *syncList) giveUp(err error, answered chan *syncCall, left int, done func(*syncCall)) {
	for i, c := range l.calls {
		sh := l.shards[i]
		switch {
		case c.stage.CompareAndSwap(waiting, given):
			sh.dropped.Add(1)
			c.err, c.outcome = err, escapement.NotRun
			if errors.Is(err, errTimeout) {
				c.err = errWaiting
			}
			done(c)
			left--
		case c.stage.CompareAndSwap(sent, given):
			sh.unknown.Add(1)
			// What the server answers later is its goroutine's own.
			late := &syncCall{keys: c.keys, places: c.places, err: err, outcome: escapement.Unknown}
			if errors.Is(err, errTimeout) {
				sh.fault(err)
			}
			done(late)
			left--
		}
	}
	for ; left > 0; left-- {
		done(<-answered)
	}
}

// answeredSync is the stage of a call whose answer is on its way to the caller.
const answeredSync = given + 1

// serveSyncs sends calls, a few at a time, until ended.
func (s *shard) serveSyncs(calls []*syncCall, answered chan<- *syncCall, ended <-chan struct{}) {
	lanes := s.lanes()
	for i, c := range calls {
		select {
		case lanes <- struct{}{}:
		case <-ended:
			return
		}
		run := func() {
			defer func() { <-lanes }()
			if !c.stage.CompareAndSwap(waiting, sent) {
				return
			}
			s.sync(c)
			if c.stage.CompareAndSwap(sent, answeredSync) {
				answered <- c
			}
		}
		if i == len(calls)-1 {
			run()
		} else {
			go run()
		}
	}
}

// lanes holds one token for every sync call under way to the primary.
func (s *shard) lanes() chan struct{} {
	n := syncCalls
	if s.store.cfg.Mode == Cluster {
		n = clusterCalls
	}
	lanes, _ := s.store.lanes.LoadOrStore(s.name, make(chan struct{}, n))
	return lanes.(chan struct{})
}

// sync runs one call, at most once.
func (s *shard) sync(c *syncCall) {
	s.mu.Lock()
	refused := error(nil)
	if s.closed {
		refused = errClosed
	} else if s.breaker.open {
		refused = errBreaker
	}
	s.mu.Unlock()
	if refused != nil {
		s.dropped.Add(1)
		c.err, c.outcome = refused, escapement.NotRun
		return
	}
	start := clock.Mono()
	c.words, c.err = s.evaluate(c.script, func(b bounds) (keys, args []string) {
		return c.encode(b, s.store.cfg.ExpiryMargin)
	}, []*item{{wires: c.plans}})
	s.calls.Add(1)
	s.requests.Add(uint64(len(c.keys)))
	s.result(c.err)
	if o := s.store.cfg.Observer; o != nil {
		o.Called(s.name, len(c.keys), clock.Since(start), c.err)
	}
	if c.err != nil {
		c.outcome = outcome(c.err)
	}
	if c.err == nil && len(c.words) < 2 {
		c.err, c.outcome = errShort, escapement.Unknown
	}
}

// reader reads the words of a reply.
type reader struct {
	words []int64
	short bool
}

func (r *reader) next() int64 {
	if len(r.words) == 0 {
		r.short = true
		return 0
	}
	w := r.words[0]
	r.words = r.words[1:]
	return w
}

// each hands the answer of every key of a call to read, which takes its words, or to fail.
func (c *syncCall) each(read func(place int, r *reader), fail func(place int, o escapement.Outcome, err error)) {
	if c.err != nil {
		for _, i := range c.places {
			fail(i, c.outcome, unavailableBy(c.err))
		}
		return
	}
	r := &reader{words: c.words[2:]}
	for k, i := range c.places {
		status := r.next()
		if status < 0 {
			it := item{keys: c.keys[k : k+1]}
			fail(i, escapement.NotRun, unavailableBy(it.reason(status, r.next())))
			continue
		}
		read(i, r)
		if r.short {
			fail(i, escapement.Unknown, unavailableBy(errShort))
		}
	}
}

// checkSync refuses what no store can apply.
func checkSync(p *escapement.Plan, key string, lists int, numbers ...int64) error {
	if p == nil || p.Core().Algorithm() == 0 {
		return fmt.Errorf("%w: it has no plan; compile a Limit", escapement.ErrRequest)
	}
	name := p.Limit().Name
	if len(key) > escapement.MaxKey*128 {
		return fmt.Errorf("%w: limit %s: a key of %d bytes; hash it first", escapement.ErrRequest, name, len(key))
	}
	if lists > maxAmounts {
		return fmt.Errorf("%w: limit %s: %d amounts at once; report at most %d", escapement.ErrRequest, name, lists, maxAmounts)
	}
	for _, n := range numbers {
		if n < -algo.MaxInt || n > algo.MaxInt {
			return fmt.Errorf("%w: limit %s: the number %d; use numbers below 2^53", escapement.ErrCost, name, n)
		}
	}
	return nil
}

// maxAmounts is how many amounts one key may name at once.
const maxAmounts = 4 * algo.MaxBuckets

func appendInts(args []string, numbers ...int64) []string {
	for _, n := range numbers {
		args = append(args, strconv.FormatInt(n, 10))
	}
	return args
}
