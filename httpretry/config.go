package httpretry

import (
	"net/http"
	"strings"
	"time"

	"github.com/escapement-io/escapement/internal/retry"
)

// Config says how requests are retried. The zero value is made of the defaults.
type Config struct {
	// MaxAttempts is how often a request is sent at most, the first time included: 1 to
	// 100. Default: 4.
	MaxAttempts int

	// MaxWait is the longest wait between two attempts. A server that asks for more gets
	// no other attempt. Default: 1 min.
	MaxWait time.Duration

	// Backoff is the longest wait before the second attempt if the server told none. It
	// doubles with each attempt up to MaxBackoff; the wait is uniform between nothing and
	// that. Default: 100 ms, and 10 s.
	Backoff, MaxBackoff time.Duration

	// Spread is what is added at most to a wait that was told, in per cent of it, but at
	// least a second and the backoff, so that those who were told the same do not come
	// together. Nothing is ever taken off. Default: 10; -1 adds nothing at all.
	Spread int

	// MaxBody is the length up to which a body is kept in memory if the request has no
	// GetBody, in bytes. Default: 65536; -1 keeps none.
	MaxBody int64

	// MaxHosts is how many hosts have a budget of their own, up to 4096; those beyond
	// share one. Default: 256.
	MaxHosts int

	// Budget bounds the retries to each host.
	Budget Budget

	// Observe is called for each attempt that failed or was refused, by the goroutine of
	// the request.
	Observe func(Event)

	// Random is uniform over all of uint64 and safe for concurrent use. Default:
	// math/rand/v2.
	Random func() uint64
}

// Budget bounds the retries to a host as a share of the requests to it. Each request
// earns Percent of a retry, or what Floor has earned since the request before, whichever
// is more; each retry costs one. There are never more retries than Burst, Percent of the
// requests and one per Floor together, and where requests come faster than Floor earns,
// it is Percent of them alone. The arithmetic is exact.
type Budget struct {
	// Percent is the share. Default: 10; -1 earns nothing.
	Percent int
	// Floor earns one retry in this time, for hosts with little traffic: up to an hour.
	// Default: 1 s; -1 earns nothing.
	Floor time.Duration
	// Burst is how many retries can be saved up, and what a host starts with: up to
	// 10,000. Default: 10.
	Burst int
}

const (
	defaultMaxBody = 64 << 10
	mostBody       = 64 << 20
)

func (c Config) rules() retry.Rules {
	return retry.Rules{
		MaxAttempts: c.MaxAttempts,
		Backoff:     c.Backoff,
		MaxBackoff:  c.MaxBackoff,
		MaxWait:     c.MaxWait,
		Spread:      c.Spread,
		MaxHosts:    c.MaxHosts,
		Budget:      retry.Budget(c.Budget),
	}
}

// Event is an attempt that failed or was refused, and what was decided. It holds nothing
// of the path, the query or the headers of the request.
type Event struct {
	Method  string
	Host    string        // scheme and authority
	Attempt int           // from 1
	Status  int           // 0 if there was no response
	Err     error         // of the attempt, if there was no response
	Told    time.Duration // what the server said, -1 if nothing
	Retry   bool
	Wait    time.Duration // until the next attempt, if Retry
	Reason  Reason
}

// Reason says why there is another attempt, or why there is none. It can be the label of
// a metric.
type Reason string

// The reasons. The first two are those of retries.
const (
	Told     = Reason(retry.Told)     // the server said how long to wait
	Backoff  = Reason(retry.Backoff)  // it said nothing
	Final    = Reason(retry.Final)    // an error that waiting does not mend, or the request's context ended
	Unsafe   = Reason(retry.Unsafe)   // it may have been acted on, and it is not idempotent
	Body     = Reason(retry.Body)     // its body cannot be sent again
	Attempts = Reason(retry.Attempts) // there were MaxAttempts
	TooLong  = Reason(retry.TooLong)  // the server asks for more than MaxWait
	Deadline = Reason(retry.Deadline) // the wait and another attempt would outlast the request's context
	Spent    = Reason(retry.Spent)    // the budget of the host is spent
)

// hostOf is what a budget is for.
func hostOf(r *http.Request) string {
	if r.URL == nil {
		return ""
	}
	return strings.ToLower(r.URL.Scheme + "://" + r.URL.Host)
}
