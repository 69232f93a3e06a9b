package escapement

import (
	"context"
	"errors"
	"fmt"
)

// The errors to match with errors.Is.
var (
	// ErrLimited is matched by *LimitedError.
	ErrLimited = errors.New("escapement: limited")
	// ErrStoreUnavailable says that the store could not answer; trying again may help.
	ErrStoreUnavailable = errors.New("escapement: store unavailable")
	// ErrFull says that an in-memory store is at its cap and does not know the key.
	ErrFull = errors.New("escapement: store is at its cap of keys")
	// ErrCost says that a cost is negative or above 2^53-1. Nothing was touched.
	ErrCost = errors.New("escapement: invalid cost")
	// ErrRequest says that a request is malformed. Nothing was touched.
	ErrRequest = errors.New("escapement: invalid request")
)

// LimitedError carries the Decision that Wait could not outlive; errors.Is(err,
// ErrLimited) holds, and errors.Is(err, context.DeadlineExceeded) where a deadline was
// too near.
type LimitedError struct {
	Decision Decision
	deadline bool
}

func (e *LimitedError) Error() string {
	name := e.Decision.record.plan.limit.Name
	if e.Decision.RetryAfter() == Never {
		return fmt.Sprintf("escapement: limit %s: cost is above its capacity of %d", name, e.Decision.Limit())
	}
	if e.deadline {
		return fmt.Sprintf("escapement: limit %s: the wait of %v would outlast the deadline", name, e.Decision.RetryAfter())
	}
	return fmt.Sprintf("escapement: limit %s: retry after %v", name, e.Decision.RetryAfter())
}

// Is matches ErrLimited, and context.DeadlineExceeded where a deadline was too near.
func (e *LimitedError) Is(target error) bool {
	return target == ErrLimited || e.deadline && target == context.DeadlineExceeded
}
