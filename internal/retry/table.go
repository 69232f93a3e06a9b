package retry

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

// Table keeps an account per host. It is safe for concurrent use.
//
// It holds at most Rules.MaxHosts of them. If there is no room, those that are as good as
// new are forgotten, which changes nothing; if there are none, hosts without an account
// share one.
type Table struct {
	rules  Rules
	random func() uint64

	mu     sync.Mutex
	hosts  map[string]*Account
	others Account
}

// NewTable takes complete rules. Random is uniform over all of uint64; nil means
// math/rand/v2.
func NewTable(r Rules, random func() uint64) *Table {
	if random == nil {
		random = rand.Uint64
	}
	return &Table{rules: r, random: random, hosts: map[string]*Account{}, others: r.Budget.Open(clock.Mono())}
}

// Request books a request that is not a retry.
func (t *Table) Request(host string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := clock.Mono()
	acc := t.account(host, now)
	*acc = t.rules.Budget.Request(*acc, now)
}

// Decide decides on the next attempt and books it.
func (t *Table) Decide(host string, a Attempt, ans Answer) Verdict {
	draw := t.random()
	t.mu.Lock()
	defer t.mu.Unlock()
	now := clock.Mono()
	acc := t.account(host, now)
	var v Verdict
	v, *acc = Decide(&t.rules, a, ans, *acc, now, draw)
	return v
}

// account finds or opens the account of a host.
func (t *Table) account(host string, now algo.Mono) *Account {
	if acc, ok := t.hosts[host]; ok {
		return acc
	}
	if len(t.hosts) >= t.rules.MaxHosts {
		for h, acc := range t.hosts {
			if t.rules.Budget.Full(*acc, now) {
				delete(t.hosts, h)
			}
		}
	}
	if len(t.hosts) >= t.rules.MaxHosts {
		return &t.others
	}
	acc := t.rules.Budget.Open(now)
	t.hosts[host] = &acc
	return &acc
}

// Left is the time until the deadline of ctx, Forever if it has none.
func Left(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return clock.Until(deadline)
	}
	return Forever
}

// Pause waits, at most until ctx ends; then it returns why.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
