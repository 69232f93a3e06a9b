package sim

import (
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/lease"
)

// request is one request on its way.
type request struct {
	at       instant
	instance int
	cost     int64

	leased  lease.Request // as the ledger knows it; zero until it is asked
	queued  bool
	decided bool
}

// verdict is what a limiter says, in the terms of either ledger.
type verdict struct {
	admitted, waits, away bool
	elsewhere             bool  // the answer comes by itself
	stamp                 int64 // the window or bucket it counts in
	part                  int64 // admitted without the store, within so many units of a window
	until                 algo.Mono
}

// limiter is a ledger as an instance drives it.
type limiter interface {
	admit(now algo.Mono, r *request) verdict
	poll(now algo.Mono) (call func(*store) any, send bool)
	absorb(now algo.Mono, reply any)
	failed(now algo.Mono)
	next() (algo.Mono, bool)
	leave(now algo.Mono) (call func(*store) any, send bool)
}

// node is an instance: the shell around a ledger.
type node struct {
	id    int
	w     *world
	limit limiter
	dead  bool
	gone  bool // it is shutting down and takes no more requests

	waiting []*request
	wakeAt  algo.Mono
	trips   int64
}

func (n *node) arrive(r *request) {
	if n.gone {
		n.w.book.decide(n, r, verdict{})
		return
	}
	n.decide(r)
	n.pump()
}

func (n *node) decide(r *request) {
	v := n.limit.admit(n.w.mono(n), r)
	if v.elsewhere {
		return
	}
	if !v.waits {
		n.w.book.decide(n, r, v)
		return
	}
	n.waiting = append(n.waiting, r)
	if !r.queued {
		r.queued = true
		n.w.book.waits()
	}
	n.w.on(n, n.w.when(n, v.until), func() {
		if !r.decided && n.w.mono(n) >= v.until {
			n.drop(r)
			n.decide(r)
			n.pump()
		}
	})
}

func (n *node) drop(r *request) {
	for i, q := range n.waiting {
		if q == r {
			n.waiting = append(n.waiting[:i], n.waiting[i+1:]...)
			return
		}
	}
}

// pump sends what is due and plans the next time to look.
func (n *node) pump() {
	if n.gone {
		return
	}
	if call, send := n.limit.poll(n.w.mono(n)); send {
		n.w.call(n, call, n.reply)
	}
	at, ok := n.limit.next()
	if !ok || at == n.wakeAt {
		return
	}
	n.wakeAt = at
	n.w.on(n, n.w.when(n, at), func() {
		if n.wakeAt == at {
			n.wakeAt = -1
			n.pump()
		}
	})
}

func (n *node) reply(reply any) {
	now := n.w.mono(n)
	if reply == nil {
		n.limit.failed(now)
	} else {
		n.limit.absorb(now, reply)
	}
	if n.gone {
		n.goodbye()
		return
	}
	again := n.waiting
	n.waiting = nil
	for _, r := range again {
		n.decide(r)
	}
	n.pump()
}

// leave stops taking requests; those that wait are refused.
func (n *node) leave() {
	n.gone = true
	for _, r := range n.waiting {
		n.w.book.decide(n, r, verdict{})
	}
	n.waiting = nil
	n.goodbye()
}

// goodbye reports what is left to report; a message that failed is tried again later.
func (n *node) goodbye() {
	n.w.on(n, n.w.now+100*time.Millisecond, func() {
		if call, send := n.limit.leave(n.w.mono(n)); send {
			n.w.call(n, call, n.reply)
		}
	})
}
