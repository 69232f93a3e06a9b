package clock

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	measureWithin  = 5 * time.Second  // a measurement that takes longer has failed
	unsettledEvery = 10 * time.Second // how often references are asked while they do not agree
	kickedAtLeast  = time.Second      // pause between two measurements of one reference
)

// Run watches the clocks until ctx is done: it checks them every CheckEvery and as soon as
// the kernel says that the wall clock was set, and measures each reference in a goroutine
// of its own. It returns when all of them have ended.
func (g *Guard) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for i, kick := range g.kicks {
		if kick != nil {
			wg.Go(func() { g.follow(ctx, i) })
		}
	}
	var hints <-chan struct{}
	if h, ok := g.src.(HintSource); ok {
		c, end := h.Hints()
		hints = c
		defer end()
	}
	tick := time.NewTicker(g.cfg.CheckEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hints:
			g.check("seen by the kernel's timer")
		case <-tick.C:
			g.Check()
		}
	}
}

// follow measures one reference over and over.
func (g *Guard) follow(ctx context.Context, i int) {
	f := g.cfg.References[i]
	for {
		attempt, cancel := context.WithTimeout(ctx, measureWithin)
		s, err := f.Reference.Measure(attempt)
		cancel()
		if ctx.Err() != nil {
			return
		}
		g.mu.Lock()
		g.learn(i, s, err)
		wait := f.Every
		if !g.con.quorum || err != nil {
			wait = min(wait, unsettledEvery)
		}
		g.mu.Unlock()
		if !pause(ctx, min(wait, kickedAtLeast), nil) || !pause(ctx, jittered(wait)-kickedAtLeast, g.kicks[i]) {
			return
		}
	}
}

// pause waits for d or for a kick. It reports false once ctx is done.
func pause(ctx context.Context, d time.Duration, kick <-chan struct{}) bool {
	t := time.NewTimer(max(0, d))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
	case <-kick:
	}
	return true
}

// jittered is d ± 10 %, so that a fleet does not ask in step.
func jittered(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}
