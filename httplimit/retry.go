package httplimit

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/escapement-io/escapement"
)

// Wait is the least time after which all of the decisions would be to allow, if nobody
// else asks: the longest wait of those that refused, 0 if none did, Never if waiting
// does not help. A limit whose store could not answer counts with 0.
func Wait(ds ...Named) time.Duration {
	var wait time.Duration
	for i := range ds {
		if ds[i].refused() {
			wait = max(wait, ds[i].Decision.RetryAfter())
		}
	}
	return wait
}

// Jitter spreads clients that were told to come back at one moment. It only adds: a
// client that comes too early is refused again.
type Jitter struct {
	Percent int                 // the most that is added, in per cent of the wait; 0 adds nothing
	Random  func(n int64) int64 // uniform in [0, n); nil for math/rand/v2
}

// Add lengthens a wait. What it adds is uniform from nothing to Percent of the wait, but
// to at least a second, for short waits also end on one whole second.
func (j Jitter) Add(wait time.Duration) time.Duration {
	if j.Percent <= 0 || wait >= escapement.Never/2 {
		return wait
	}
	random := j.Random
	if random == nil {
		random = rand.Int64N
	}
	most := max(wait/100*time.Duration(min(j.Percent, 100)), time.Second)
	return wait + time.Duration(random(int64(most)+1))
}

// WriteRetryAfter sets Retry-After to the wait in delta seconds, rounded up and at least
// 1. It is left out for Never: no wait is better than one that does not help.
func WriteRetryAfter(h http.Header, wait time.Duration) {
	if wait != escapement.Never {
		h.Set("Retry-After", strconv.FormatInt(max(1, seconds(wait)), 10))
	}
}
