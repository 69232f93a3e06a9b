// Package retrystorm drills what a step of the wall clock and clients that retry do to each
// other: a limiter that believes the clock and one that does not, each with clients that
// retry at once and with clients that have a budget.
package retrystorm

import (
	"errors"
	"fmt"
	"time"

	"github.com/escapement-io/escapement"
)

// Options say what to drill.
type Options struct {
	Limit   escapement.Rate
	Rate    int           // requests per second of all clients, on a fixed schedule
	Clients int           // connections, each of which carries one attempt at a time
	Step    time.Duration // of the server's wall clock
	For     time.Duration // of load, in each phase

	Child    func(limiter string) []string // the command that calls Serve with the same limit
	Progress func(phase int)               // called as each phase begins; may be nil
}

// The limiters and the clients.
const (
	Naive = "naive"      // two counters in a ring that is found by the wall clock
	Ours  = "escapement" // a token bucket on memstore

	AtOnce = "immediate" // retries at once
	Budget = "httpretry" // waits, and stops at a budget
)

// setup is a phase to come.
type setup struct {
	limiter, client string
	steps           bool
}

// all are the phases of a drill: those at the end say what is right for those before them.
var all = []setup{
	{Naive, AtOnce, true}, {Naive, Budget, true},
	{Ours, AtOnce, true}, {Ours, Budget, true},
	{Ours, AtOnce, false}, {Ours, Budget, false},
}

// Phases is how many phases a drill has.
func Phases() int { return len(all) }

const (
	attempts  = 4                     // of a client that retries at once: as many as httpretry makes
	roundTrip = 20 * time.Millisecond // of every answer: the server takes so long

	minPeriod, maxPeriod = 500 * time.Millisecond, 10 * time.Second
	maxRate              = 5000
	// With fewer requests in a period the ten retries that httpretry has saved up are more
	// than a tenth of them.
	minInPeriod      = 600
	maxClients       = 2000
	minStep, maxStep = 2 * time.Millisecond, 24 * time.Hour
	maxFor           = 5 * time.Minute
)

// settled is when the step is made at the earliest: the counters of a whole period are
// then filled. It falls a tenth of a period after the start of a half of one of the
// server's clock, so that runs are alike.
func settled(per time.Duration) time.Duration { return per + per/10 }

// needed is how long the load must last: two periods are judged.
func needed(per time.Duration) time.Duration { return settled(per) + per/2 + disturbed(per) }

// disturbed is the longest stretch after the step that is judged.
func disturbed(per time.Duration) time.Duration { return 2 * per }

// UsualRate is what a limit is asked for unless a rate is given: so little below it that
// the clients have room, and so much that a third of a period counted twice has none.
func UsualRate(l escapement.Rate) int {
	if l.Per <= 0 {
		return 0
	}
	return int(0.93 * float64(l.Count) / l.Per.Seconds())
}

// Check reports everything that is wrong with the options.
func (o *Options) Check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("drill: "+format, args...)) }
	if _, err := o.limit().Compile(); err != nil {
		errs = append(errs, fmt.Errorf("drill: %w", err))
	}
	per := o.Limit.Per
	if per < minPeriod || per > maxPeriod {
		bad("a limit per %v; use a period of %v to %v", per, minPeriod, maxPeriod)
	}
	switch most := float64(o.Limit.Count) / per.Seconds(); {
	case o.Rate < 1 || o.Rate > maxRate:
		bad("%d requests a second; use 1 to %d", o.Rate, maxRate)
	case per > 0 && float64(o.Rate) >= most:
		bad("%d requests a second under a limit of %g; use less, so that without a step none is refused", o.Rate, most)
	case per > 0 && float64(o.Rate)*per.Seconds() < minInPeriod:
		bad("%g requests in a period of %v; use %d or more, of which the ten retries that httpretry has saved up are no great part", float64(o.Rate)*per.Seconds(), per, minInPeriod)
	}
	least := int(attempts * float64(o.Rate) * roundTrip.Seconds())
	if o.Clients < 1 || o.Clients > maxClients {
		bad("%d clients; use 1 to %d", o.Clients, maxClients)
	} else if o.Clients < least {
		bad("%d clients for %d requests a second; use %d or more, or attempts wait for each other", o.Clients, o.Rate, least)
	}
	if o.Step.Abs() < minStep || o.Step.Abs() > maxStep {
		bad("a step of %v; use %v to %v, either way", o.Step, minStep, maxStep)
	}
	if least := needed(min(max(per, minPeriod), maxPeriod)); o.For < least || o.For > maxFor {
		bad("phases of %v; use %v to %v", o.For, least, maxFor)
	}
	return errors.Join(errs...)
}

func (o *Options) limit() escapement.Limit { return limitOf(o.Limit) }

func limitOf(r escapement.Rate) escapement.Limit {
	return escapement.Limit{Name: "drill", Algorithm: escapement.TokenBucket, Rate: r}
}
