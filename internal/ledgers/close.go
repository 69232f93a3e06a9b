package ledgers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/escapement-io/escapement"
)

// Close gives back and reports what the ledgers hold, until all of it has been answered or
// ctx is done. From its beginning on, claims of this store's own are answered as if the
// store were away; all others go on. The error says how many keys are left unsaid. Closing
// twice is harmless.
func (s *Store[L, M, R, P]) Close(ctx context.Context) (err error) {
	s.closing.Do(func() { err = s.close(ctx) })
	return err
}

// leavePause is how long ledgers that were not answered wait before they say it again.
const leavePause = 50 * time.Millisecond

func (s *Store[L, M, R, P]) close(ctx context.Context) error {
	close(s.quit)
	<-s.done
	list := s.shut()
	landed := make(chan struct{})
	go func() { // each call has a deadline
		s.under.Wait()
		close(landed)
	}()
	select {
	case <-landed:
	case <-ctx.Done():
		return unsaidError(ctx, len(list))
	}
	for {
		var unsaid []*entry[L]
		list, unsaid = s.leave(ctx, list)
		if len(list) == 0 {
			return nil
		}
		if len(unsaid) == 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return unsaidError(ctx, len(list))
		case <-time.After(leavePause):
		}
	}
}

func unsaidError(ctx context.Context, keys int) error {
	return fmt.Errorf("%w: %d keys could not say what they hold or counted: %w", escapement.ErrStoreUnavailable, keys, context.Cause(ctx))
}

// shut ends the use of all ledgers, and returns them. The clerk has ended.
func (s *Store[L, M, R, P]) shut() (list []*entry[L]) {
	seen := map[*entry[L]]bool{}
	note := func(e *entry[L]) { // its shard is locked
		if e == nil || seen[e] {
			return
		}
		seen[e] = true
		for _, w := range e.waiters {
			w.waits, w.err = false, errClosed
			w.tell()
		}
		e.waiters = nil
		list = append(list, e)
	}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		sh.closed = true
		for _, slot := range sh.slots {
			note(slot.e)
		}
		for _, a := range sh.due { // ledgers that were replaced among them
			note(a.e)
		}
		sh.slots, sh.due, sh.used = nil, nil, 0
		sh.mu.Unlock()
	}
	for _, a := range s.clerk.due { // and of those that the clerk had taken
		sh := s.shard(a.e.hash)
		sh.mu.Lock()
		note(a.e)
		sh.mu.Unlock()
	}
	s.keys.Store(0)
	return list
}

// leave lets ledgers say what they have to say, once, and returns those that may have
// more, and of them those that were not answered.
func (s *Store[L, M, R, P]) leave(ctx context.Context, list []*entry[L]) (more, unsaid []*entry[L]) {
	var batches [][]message[L, M]
	for _, e := range list {
		sh := s.shard(e.hash)
		sh.mu.Lock()
		m, send := P(&e.ledger).Leave(s.now())
		sh.mu.Unlock()
		if !send {
			continue
		}
		more = append(more, e)
		if n := len(batches); n == 0 || len(batches[n-1]) == CallKeys {
			batches = append(batches, nil)
		}
		n := len(batches) - 1
		batches[n] = append(batches[n], message[L, M]{e, Item[M]{e.plan, e.key, m}})
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	slots := make(chan struct{}, s.cfg.Calls)
	for _, b := range batches {
		slots <- struct{}{}
		all.Go(func() {
			known := s.exchange(ctx, b)
			if known < len(b) {
				mu.Lock()
				for i := range b {
					unsaid = append(unsaid, b[i].e)
				}
				mu.Unlock()
			}
			<-slots
		})
	}
	all.Wait()
	return more, unsaid
}
