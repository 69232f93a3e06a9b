package retry

import (
	"errors"
	"fmt"
	"time"
)

// Rules bound the retries of one request and, by the budget, those of all together.
type Rules struct {
	MaxAttempts int           // in all, the first one included
	Backoff     time.Duration // the longest wait before the second attempt, if none was told
	MaxBackoff  time.Duration // where doubling it ends
	MaxWait     time.Duration // the longest wait that is waited
	Spread      int           // per cent added to a wait that was told, negative for nothing at all
	MaxHosts    int           // budgets that are kept apart
	Budget      Budget
}

// The defaults, and the most that is accepted.
const (
	DefaultMaxAttempts = 4
	DefaultBackoff     = 100 * time.Millisecond
	DefaultMaxBackoff  = 10 * time.Second
	DefaultMaxWait     = time.Minute
	DefaultSpread      = 10
	DefaultMaxHosts    = 256
	DefaultPercent     = 10
	DefaultFloor       = time.Second
	DefaultBurst       = 10

	mostAttempts = 100
	longest      = 24 * time.Hour
	mostHosts    = 1 << 12
	mostBurst    = 10_000
	longestFloor = time.Hour
)

// Complete puts the defaults in for zeros. It reports everything that is out of range at
// once.
func (r Rules) Complete() (Rules, error) {
	var errs []error
	errs = append(errs,
		fill("MaxAttempts", &r.MaxAttempts, DefaultMaxAttempts, 1, mostAttempts),
		fill("Backoff", &r.Backoff, DefaultBackoff, time.Microsecond, longest),
		fill("MaxBackoff", &r.MaxBackoff, max(DefaultMaxBackoff, r.Backoff), time.Microsecond, longest),
		fill("MaxWait", &r.MaxWait, DefaultMaxWait, time.Millisecond, longest),
		fill("Spread", &r.Spread, DefaultSpread, -1, 100),
		fill("MaxHosts", &r.MaxHosts, DefaultMaxHosts, 1, mostHosts),
		fill("Budget.Percent", &r.Budget.Percent, DefaultPercent, -1, 100),
		fill("Budget.Floor", &r.Budget.Floor, DefaultFloor, -1, longestFloor),
		fill("Budget.Burst", &r.Budget.Burst, DefaultBurst, 1, mostBurst),
	)
	if r.MaxBackoff < r.Backoff {
		errs = append(errs, fmt.Errorf("MaxBackoff is %v, below Backoff of %v: raise it", r.MaxBackoff, r.Backoff))
	}
	return r, errors.Join(errs...)
}

// fill checks one field. Those that may be -1 mean nothing at all by it.
func fill[T int | time.Duration](name string, field *T, byDefault, least, most T) error {
	if *field == 0 {
		*field = byDefault
	}
	if *field >= least && *field <= most {
		return nil
	}
	return fmt.Errorf("%s is %v: use %v to %v, or 0 for %v", name, *field, least, most, byDefault)
}
