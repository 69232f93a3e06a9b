package sim

import (
	"fmt"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/lease"
)

// admission is a request that was let through.
type admission struct {
	at    instant
	line  algo.Store // where the store's clock stood
	stamp int64      // the window or bucket it was counted in; open: none
	cost  int64
	node  int
	open  bool  // let through because nobody could be asked
	part  int64 // not 0: let through by the instance's part of the limit, which is this
}

// book is what came of the requests.
type book struct {
	setup      *Setup
	admissions []admission
	offered    []int64 // requests, by instance
	passed     []int64
	refused    int64
	away       int64 // refused because the store did not answer
	waited     int64
	waitedFor  time.Duration
	violations []string
}

// wrong notes a promise that was broken.
func (b *book) wrong(format string, args ...any) {
	if len(b.violations) < 20 {
		b.violations = append(b.violations, fmt.Sprintf(format, args...))
	}
}

func (b *book) waits() { b.waited++ }

func (b *book) decide(n *node, r *request, v verdict) {
	w := n.w
	if r.decided {
		b.wrong("the request of %v at instance %d is decided twice", r.at, r.instance)
		return
	}
	r.decided = true
	if b.offered == nil {
		b.offered, b.passed = make([]int64, b.setup.Instances), make([]int64, b.setup.Instances)
	}
	b.offered[n.id]++
	if took := w.now - r.at; took > 0 {
		b.waitedFor += took
		b.bounded(r, took)
	}
	open := v.away && b.setup.OpenUp
	switch {
	case v.admitted || open:
		b.passed[n.id]++
		b.admissions = append(b.admissions, admission{at: w.now, line: w.store.line(), stamp: v.stamp, cost: r.cost, node: n.id, open: open, part: v.part})
	case v.away:
		b.away++
	default:
		b.refused++
	}
}

// bounded checks that a request waited no longer than ledgers promise. Pauses of its
// instance are nobody's promise, and neither is a round trip per request.
func (b *book) bounded(r *request, took time.Duration) {
	if b.setup.Mode == Exact || r.instance >= b.setup.Instances-b.setup.Exact {
		return
	}
	most := time.Duration(lease.DefaultMaxWait) + time.Millisecond
	for _, p := range b.setup.Pauses {
		if p.Instance == r.instance {
			most += p.For
		}
	}
	if took > most {
		b.wrong("the request of %v at instance %d waited %v, at most %v are allowed", r.at, r.instance, took, most)
	}
}
