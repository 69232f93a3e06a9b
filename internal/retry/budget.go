package retry

import (
	"time"

	"github.com/escapement-io/escapement/algo"
)

// Budget says how many retries a host can be sent. Each request earns Percent of a retry,
// or what Floor has earned since the request before, whichever is more; a retry costs
// one. So there are never more than Burst, Percent of the requests and one per Floor
// together, and where requests come faster than Floor earns it is Percent of them alone.
type Budget struct {
	Percent int           // -1 earns nothing
	Floor   time.Duration // one retry per Floor is earned without traffic; -1 earns nothing
	Burst   int           // the most that is saved up, and what a new host starts with
}

// Account is what a host has saved. Its unit divides everything that is added or taken:
// 100·Floor of them are one retry, so nothing is ever rounded.
type Account struct {
	saved int64
	at    algo.Mono // until when Floor has earned
}

// floor is Floor as a unit, which a budget without one needs too.
func (b Budget) floor() int64 { return int64(max(b.Floor, 1)) }

func (b Budget) retry() int64 { return 100 * b.floor() }

func (b Budget) most() int64 { return int64(b.Burst) * b.retry() }

// Open is the account of a new host: full.
func (b Budget) Open(now algo.Mono) Account { return Account{saved: b.most(), at: now} }

// Request books a request that is not a retry.
func (b Budget) Request(a Account, now algo.Mono) Account {
	return b.earn(a, now, int64(max(b.Percent, 0))*b.floor())
}

// Withdraw books a retry, if it can be paid for.
func (b Budget) Withdraw(a Account, now algo.Mono) (Account, bool) {
	a = b.earn(a, now, 0)
	if a.saved < b.retry() {
		return a, false
	}
	a.saved -= b.retry()
	return a, true
}

// Full reports whether the account is as good as a new one.
func (b Budget) Full(a Account, now algo.Mono) bool { return b.earn(a, now, 0).saved == b.most() }

// earn adds a share, or what Floor earned since the last time if that is more. An earlier
// instant than the account's own counts as its own.
func (b Budget) earn(a Account, now algo.Mono, share int64) Account {
	if b.Floor > 0 && now > a.at {
		// Longer than this fills any account.
		elapsed := min(int64(now-a.at), int64(b.Burst)*b.floor())
		share = max(share, 100*elapsed)
	}
	a.at = max(a.at, now)
	a.saved = min(a.saved+share, b.most())
	return a
}
