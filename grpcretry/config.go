package grpcretry

import (
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/escapement-io/escapement/internal/retry"
)

// Config says how calls are retried. The zero value is made of the defaults.
type Config struct {
	// MaxAttempts is how often a call is sent at most, the first time included: 1 to 100.
	// Default: 4.
	MaxAttempts int

	// MaxWait is the longest wait between two attempts. A server that asks for more gets
	// no other attempt. Default: 1 min.
	MaxWait time.Duration

	// Backoff is the longest wait before the second attempt if the server told none. It
	// doubles with each attempt up to MaxBackoff; the wait is uniform between nothing and
	// that. Default: 100 ms, and 10 s.
	Backoff, MaxBackoff time.Duration

	// Spread is what is added at most to a wait that was told, in per cent of it, but at
	// least a second and the backoff. Nothing is ever taken off. Default: 10; -1 adds
	// nothing at all.
	Spread int

	// MaxTargets is how many targets have a budget of their own, up to 4096; those beyond
	// share one. Default: 256.
	MaxTargets int

	// Budget bounds the retries to each target.
	Budget Budget

	// Idempotent reports whether a method, such as "/pkg.Service/Method", may be done
	// twice. Default: what the option idempotency_level of the method says.
	Idempotent func(fullMethod string) bool

	// Observe is called for each attempt that failed or was refused, by the goroutine of
	// the call.
	Observe func(Event)

	// Random is uniform over all of uint64 and safe for concurrent use. Default:
	// math/rand/v2.
	Random func() uint64
}

// Budget bounds the retries to a target as a share of the calls to it. Each call earns
// Percent of a retry, or what Floor has earned since the call before, whichever is more;
// each retry costs one. There are never more retries than Burst, Percent of the calls and
// one per Floor together.
type Budget struct {
	// Percent is the share. Default: 10; -1 earns nothing.
	Percent int
	// Floor earns one retry in this time, for targets with few calls: up to an hour.
	// Default: 1 s; -1 earns nothing.
	Floor time.Duration
	// Burst is how many retries can be saved up, and what a target starts with: up to
	// 10,000. Default: 10.
	Burst int
}

func (c Config) rules() retry.Rules {
	return retry.Rules{
		MaxAttempts: c.MaxAttempts,
		Backoff:     c.Backoff,
		MaxBackoff:  c.MaxBackoff,
		MaxWait:     c.MaxWait,
		Spread:      c.Spread,
		MaxHosts:    c.MaxTargets,
		Budget:      retry.Budget(c.Budget),
	}
}

// Event is an attempt that failed or was refused, and what was decided.
type Event struct {
	Method  string // such as "/pkg.Service/Method"
	Target  string
	Attempt int // from 1
	Code    codes.Code
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
	Final    = Reason(retry.Final)    // another code, a pushback that forbids it, or the call's context ended
	Unsafe   = Reason(retry.Unsafe)   // it may have been acted on, and it is not idempotent
	Attempts = Reason(retry.Attempts) // there were MaxAttempts
	TooLong  = Reason(retry.TooLong)  // the server asks for more than MaxWait
	Deadline = Reason(retry.Deadline) // the wait and another attempt would outlast the call's context
	Spent    = Reason(retry.Spent)    // the budget of the target is spent
)

// byOption is what the option idempotency_level of a method says, if its descriptor is
// linked into this program.
func byOption(fullMethod string) bool {
	name := strings.ReplaceAll(strings.TrimPrefix(fullMethod, "/"), "/", ".")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return false
	}
	o, ok := d.Options().(*descriptorpb.MethodOptions)
	return ok && o.GetIdempotencyLevel() != descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN
}
