package gateway

import (
	"sync/atomic"
	"time"
)

// CallBounds are the upper ends of the classes that calls of a store are counted in.
var CallBounds = [...]time.Duration{
	250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, time.Second,
}

// calls counts how long calls of a store took, those that failed included.
type calls struct {
	class [len(CallBounds) + 1]atomic.Uint64
	sum   atomic.Int64 // nanoseconds
	errs  atomic.Uint64
}

// Called is told of each call.
func (c *calls) Called(_ string, _ int, took time.Duration, err error) {
	i := 0
	for i < len(CallBounds) && took > CallBounds[i] {
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

// Opened is told of the breaker; the store shows it itself.
func (c *calls) Opened(string, bool) {}

// CallCounts are the calls of a store by how long they took.
type CallCounts struct {
	Classes [len(CallBounds) + 1]uint64 `json:"-"` // not summed; the last has no upper end
	Calls   uint64                      `json:"calls"`
	Failed  uint64                      `json:"failed"`
	Took    time.Duration               `json:"took_ns"` // of all
}

func (c *calls) counts() CallCounts {
	out := CallCounts{Failed: c.errs.Load(), Took: time.Duration(c.sum.Load())}
	for i := range c.class {
		out.Classes[i] = c.class[i].Load()
		out.Calls += out.Classes[i]
	}
	return out
}
