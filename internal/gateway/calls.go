package gateway

import (
	"sync/atomic"
	"time"
)

// callBounds are the upper ends of the classes that calls of a store are counted in.
var callBounds = [...]time.Duration{
	250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, time.Second,
}

// calls counts how long calls of a store took, those that failed included.
type calls struct {
	class [len(callBounds) + 1]atomic.Uint64
	sum   atomic.Int64 // nanoseconds
	errs  atomic.Uint64
	opens atomic.Uint64
}

// Called is told of each call.
func (c *calls) Called(_ string, _ int, took time.Duration, err error) {
	i := 0
	for i < len(callBounds) && took > callBounds[i] {
		i++
	}
	c.class[i].Add(1)
	c.sum.Add(int64(took))
	if err != nil {
		c.errs.Add(1)
	}
}

// Stepped is told of steps of the store's clock; the store counts them itself.
func (c *calls) Stepped(string, time.Duration) {}

// Opened is told when the breaker opens and closes.
func (c *calls) Opened(_ string, open bool) {
	if open {
		c.opens.Add(1)
	}
}
