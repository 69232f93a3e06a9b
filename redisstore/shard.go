package redisstore

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

// Stages of a ticket.
const (
	waiting int32 = iota
	sent
	given // given up before it was sent
)

// ticket is one request on its way to a shard. Its caller may give up on it; whoever
// serves it never touches the caller's buffers.
type ticket struct {
	item   *item
	queued bool // of several that are sent together
	stage  atomic.Int32
	done   chan struct{} // one message when it is answered

	now     algo.Store
	words   []int64 // the reply from the request's status on
	err     error
	outcome escapement.Outcome // if err is set
	wide    [7]int64           // words, where the short script answered
}

func newTicket(it *item) *ticket { return &ticket{item: it, done: make(chan struct{}, 1)} }

// shard sends the calls of one primary. What is queued when a call ends rides together in
// the next one; nothing waits for company.
type shard struct {
	store   *Store
	name    string
	client  rueidis.Client
	lineKey string // empty while it serves no slot
	used    atomic.Uint64
	seen    uint64 // used at the last look; guarded by Store.links

	mu       sync.Mutex
	queue    []*ticket
	head     int
	flying   int // calls under way
	riding   int // requests in them
	breaker  breaker
	closed   bool
	stamping bool

	crowded                                   atomic.Bool // the last call carried several
	mayVote                                   atomic.Bool
	calls, requests, failed, unknown, dropped atomic.Uint64
}

const (
	maxCalls = 2   // calls under way to a single server, unless a full load waits
	maxRide  = 64  // requests in one call
	inFlight = 256 // requests under way to a primary
)

// submit queues tickets side by side, or reports why it queued none.
func (s *shard) submit(t ...*ticket) error {
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return errClosed
	case s.breaker.open:
		s.mu.Unlock()
		s.dropped.Add(uint64(len(t)))
		return errBreaker
	case len(s.queue) > s.head && len(s.queue)-s.head+len(t) > s.store.cfg.Queue: // into an empty one any list goes
		s.mu.Unlock()
		s.dropped.Add(uint64(len(t)))
		return errFull
	}
	s.queue = append(s.queue, t...)
	// A full load that waits goes beside the calls under way: on a long way there are more of them.
	start := s.flying < s.store.calls || len(s.queue)-s.head >= maxRide && s.riding+maxRide <= inFlight
	if start {
		s.flying++
	}
	s.mu.Unlock()
	if start {
		go s.run()
	}
	return nil
}

// run serves the queue until it is empty.
func (s *shard) run() {
	var batch []*ticket
	for {
		if s.crowded.Load() {
			// Whoever is about to ask, such as those that the last call answered, comes along.
			runtime.Gosched()
		}
		batch = s.next(batch[:0])
		if len(batch) == 0 {
			return
		}
		s.serve(batch)
		s.mu.Lock()
		s.riding -= len(batch)
		s.mu.Unlock()
	}
}

// next takes what may ride together, skipping what was given up.
func (s *shard) next(batch []*ticket) []*ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.head < len(s.queue) && len(batch) < maxRide && s.riding+len(batch) < inFlight {
		t := s.queue[s.head]
		if len(batch) > 0 && s.store.cfg.Mode == Cluster && slot(t.item.keys[0]) != slot(batch[0].item.keys[0]) {
			break
		}
		s.queue[s.head] = nil
		s.head++
		if t.stage.CompareAndSwap(waiting, sent) {
			batch = append(batch, t)
		}
	}
	if s.head == len(s.queue) {
		s.queue, s.head = s.queue[:0], 0
	} else if s.head > 1024 {
		s.queue = append(s.queue[:0], s.queue[s.head:]...)
		s.head = 0
	}
	s.riding += len(batch)
	if len(batch) == 0 {
		s.flying--
	} else {
		s.crowded.Store(len(batch) > 1)
	}
	return batch
}

// serve sends a batch in one call and answers its tickets.
func (s *shard) serve(batch []*ticket) {
	items := make([]*item, len(batch))
	for i, t := range batch {
		items[i] = t.item
	}
	short := takes(items)
	reply, err := s.call(items, short)
	if err == nil && len(reply) < 2 {
		err = errShort
	}
	if err != nil {
		what := outcome(err)
		for _, t := range batch {
			t.err, t.outcome = err, what
			t.done <- struct{}{}
		}
		return
	}
	now, words := algo.Store(reply[1]), reply[2:]
	var again []*ticket
	for _, t := range batch {
		var own []int64
		if short {
			own, words = widen(t.item, words, &t.wide)
		} else {
			n := min(len(words), t.item.length(words))
			own, words = words[:n], words[n:]
		}
		if len(own) > 0 && own[0] == statusAdopt {
			again = append(again, t)
			continue
		}
		t.now, t.words = now, own
		t.done <- struct{}{}
	}
	if len(again) > 0 {
		// Nothing ran: the short script leaves records of other plans to the list.
		s.relist(again)
	}
}

// relist sends tickets that the short script declined.
func (s *shard) relist(batch []*ticket) {
	items := make([]*item, len(batch))
	for i, t := range batch {
		items[i] = t.item
	}
	reply, err := s.call(items, false)
	if err == nil && len(reply) < 2 {
		err = errShort
	}
	words := []int64(nil)
	if err == nil {
		words = reply[2:]
	}
	for _, t := range batch {
		if err != nil {
			t.err, t.outcome = err, outcome(err)
		} else {
			n := min(len(words), t.item.length(words))
			t.now, t.words = algo.Store(reply[1]), words[:n]
			words = words[n:]
		}
		t.done <- struct{}{}
	}
}

// length is how many words of a reply belong to the request.
func (it *item) length(words []int64) int {
	if len(words) > 0 && words[0] < 0 {
		return 2
	}
	n := 1
	for _, w := range it.wires {
		if n += 4; w.rolling() {
			n += 2
		}
	}
	return n
}

// call runs a script for the items, at most once.
func (s *shard) call(items []*item, short bool) ([]int64, error) {
	sc := listScript
	if short {
		sc = takeScripts[items[0].wires[0].kind]
	}
	start := clock.Mono()
	words, err := s.evaluate(sc, func(b bounds) (keys, args []string) {
		if short {
			return encodeTakes(items, b, s.store.cfg.ExpiryMargin)
		}
		return encodeList(items, b, s.store.cfg.ExpiryMargin)
	}, items)
	s.calls.Add(1)
	s.requests.Add(uint64(len(items)))
	s.result(err)
	if o := s.store.cfg.Observer; o != nil {
		o.Called(s.name, len(items), clock.Since(start), err)
	}
	return words, err
}

// redirections is how often a call follows a slot that has moved.
const redirections = 3

// evaluate sends EVALSHA, and again only what the server proves not to have run: the
// text of a script it does not know, or to where a slot has moved.
func (s *shard) evaluate(sc script, encode func(bounds) (keys, args []string), items []*item) ([]int64, error) {
	to, asking, full := s, false, false
	for try := 0; ; try++ {
		send := s.store.line.Now()
		b, err := s.store.bounds(to.name, send, items)
		if err != nil {
			return nil, err
		}
		keys, args := encode(b)
		resp := to.do(sc, keys, args, full, asking)
		receive := s.store.line.Now()
		words, err := resp.AsIntSlice()
		if err == nil {
			if len(words) >= 2 && !b.unasked {
				s.store.replied(to.name, int64(send), int64(receive), words[0], b)
			}
			return words, nil
		}
		re, ok := rueidis.IsRedisErr(err)
		if !ok || try >= redirections {
			return nil, err
		}
		switch {
		case re.IsNoScript():
			full = true // and asking, where that was needed
		case s.store.cfg.Mode != Cluster:
			return nil, err
		default:
			if to, asking, err = s.store.redirect(to, re, err); err != nil {
				return nil, err
			}
		}
	}
}

// do sends one command, and never under a deadline: a connection is shared, and a
// deadline would cut it for everybody.
func (s *shard) do(sc script, keys, args []string, full, asking bool) rueidis.RedisResult {
	ctx := context.Background()
	s.used.Add(1)
	var cmd rueidis.Completed
	if full {
		cmd = s.client.B().Eval().Script(sc.text).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
	} else {
		cmd = s.client.B().Evalsha().Sha1(sc.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
	}
	if asking {
		return s.client.DoMulti(ctx, s.client.B().Asking().Build(), cmd)[1]
	}
	return s.client.Do(ctx, cmd)
}

// result keeps the breaker.
func (s *shard) result(err error) {
	if err == nil {
		s.healthy()
		return
	}
	s.failed.Add(1)
	if faulty(err) && !unsent(err) {
		s.fault(err)
	}
}

func (s *shard) healthy() {
	s.mu.Lock()
	closed := s.breaker.answered()
	s.mu.Unlock()
	if closed {
		s.store.opened(s, false, nil)
	}
}

// fault counts a failure. When the breaker opens, what waits is not kept waiting.
func (s *shard) fault(err error) {
	s.mu.Lock()
	opened := s.breaker.failed(clock.Mono())
	var left []*ticket
	if opened {
		left = append(left, s.queue[s.head:]...)
		clear(s.queue)
		s.queue, s.head = s.queue[:0], 0
	}
	s.mu.Unlock()
	for _, t := range left {
		if t.stage.CompareAndSwap(waiting, sent) {
			t.err, t.outcome = errBreaker, escapement.NotRun
			t.done <- struct{}{}
		}
	}
	if opened {
		s.store.opened(s, true, err)
	}
}

// wait waits for the answer until the deadline or the caller's own end. It reports whether
// the ticket was answered.
func (s *shard) wait(ctx context.Context, t *ticket, deadline <-chan time.Time) (o escapement.Outcome, answered bool, err error) {
	select {
	case <-t.done:
		return t.outcome, true, t.err
	case <-deadline:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if t.stage.CompareAndSwap(waiting, given) {
		s.dropped.Add(1)
		if err == nil {
			err = errWaiting
		}
		return escapement.NotRun, false, err
	}
	select {
	case <-t.done:
		return t.outcome, true, t.err
	default:
	}
	s.unknown.Add(1)
	if err == nil {
		err = errTimeout
		s.fault(err)
	}
	return escapement.Unknown, false, err
}
