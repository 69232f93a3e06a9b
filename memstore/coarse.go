package memstore

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

// Coarse is a Clock that costs one load: a goroutine reads a clock.Line for it once a
// millisecond.
//
// Decisions are made as of up to a millisecond ago, or longer if the process is starved of
// processor time: as long as the goroutine does not run, nothing refills and no window
// ends. That is strict, never generous, and what was late is made up for at the next tick.
// A caller who waits exactly as long as told may be a tick too early. Use it where a
// reading of the precise clock, some 30 ns, is too much.
type Coarse struct {
	line *clock.Line
	now  atomic.Int64

	closing sync.Once
	quit    chan struct{}
	done    chan struct{}
}

const coarseTick = time.Millisecond

// NewCoarse starts a coarse clock; Close ends its goroutine.
func NewCoarse() *Coarse {
	c := &Coarse{line: clock.NewLine(), quit: make(chan struct{}), done: make(chan struct{})}
	c.now.Store(int64(c.line.Now()))
	go c.run()
	return c
}

func (c *Coarse) run() {
	defer close(c.done)
	ticker := time.NewTicker(coarseTick)
	defer ticker.Stop()
	for {
		select {
		case <-c.quit:
			return
		case <-ticker.C:
			c.now.Store(int64(c.line.Now()))
		}
	}
}

// Now is the last reading of the line. It never goes back.
func (c *Coarse) Now() algo.Store { return algo.Store(c.now.Load()) }

// Sync counts the time the machine was suspended; a Store calls it.
func (c *Coarse) Sync() { c.line.Sync() }

// Close stops the clock and waits for its goroutine. From then on it stands still.
func (c *Coarse) Close() error {
	c.closing.Do(func() { close(c.quit) })
	<-c.done
	return nil
}
