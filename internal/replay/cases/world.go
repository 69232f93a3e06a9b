package cases

import (
	"fmt"
	"sync"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

// World is the machine that a case's store runs on. True time passes as the case says;
// its clocks show what the event at hand says they show. It is a clock.Source.
type World struct {
	mu       sync.Mutex // the store's own goroutines read the clocks as well
	base     int64      // Unix ms at which the case begins
	now      int64      // ms of true time since then
	slept    int64      // ms of them that the machine was suspended
	wall     int64      // ms that the wall clock shows in addition
	mono     int64      // ms that the monotonic clock shows in addition
	alone    bool       // the case does something to its server
	silent   bool       // and makes it silent
	ends     bool       // the case looks at whether keys end
	captured *int64     // a reading of t_ms that was taken then and arrives now
}

// around is where cases are put in time unless they say: the start of 2027.
const around = 1_798_761_600_000

// newWorld begins at a multiple of every window of the case, so that windows aligned to
// the epoch begin where the case begins.
func newWorld(c *Case) (*World, error) {
	unit := int64(1)
	var epoch int64
	limits := append(append([]Limit(nil), c.Limits...), deref(c.Limit)...)
	for i := range c.Events {
		limits = append(limits, deref(c.Events[i].Limit)...)
	}
	for i := range limits {
		if p := limits[i].period(); p > 0 {
			if q := p / gcd(unit, p); q <= around/unit {
				unit *= q
			} else {
				unit = around + 1
			}
		}
		epoch = max(epoch, limits[i].EpochMS)
	}
	w := &World{base: epoch}
	for i := range c.Events {
		op := c.Events[i].Op
		w.silent = w.silent || op == "store_pause"
		w.alone = w.alone || w.silent || op == "script_flush" || op == "store_restart"
	}
	w.ends = c.ExpectText == noKeyLeft || c.ExpectText == everyPath
	if epoch == 0 && unit <= around {
		w.base = around / unit * unit
	}
	last := c.Events[len(c.Events)-1]
	end := w.base + last.TMS + last.EveryMS*last.Times
	if end > int64(algo.MaxInstant)/1000 && epoch == 0 {
		end -= w.base
		w.base = 0
	}
	if end > int64(algo.MaxInstant)/1000 {
		return nil, fmt.Errorf("the case ends at %d ms since 1970, which is past the year 2112", end)
	}
	return w, nil
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// at is what the clocks of the machine show for an event at true time t.
func (w *World) at(t int64, e *Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now, w.wall, w.mono, w.captured = t, e.ClockMS+e.StoreClockMS, e.MonoMS, e.CapturedMS
}

// awake is how long before the end of a suspend the machine wakes, in ms: lines look four
// times a second for whether it slept.
const awake = 300

// suspend lets the machine sleep until shortly before true time t: only its boot clock
// goes on. A sleep that is shorter is none.
func (w *World) suspend(t int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slept += max(0, t-awake-w.now)
	w.now = t
}

// Mono implements clock.Source.
func (w *World) Mono() algo.Mono {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.monotonic()
}

func (w *World) monotonic() algo.Mono {
	if w.captured != nil {
		return algo.Mono((*w.captured - w.slept) * 1e6)
	}
	return algo.Mono((w.now - w.slept + w.mono) * 1e6)
}

// Read implements clock.Source. Its last reading is a nanosecond after the others, as
// a clock that stands still would be taken for a test's.
func (w *World) Read() clock.Reading {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.monotonic()
	return clock.Reading{M0: m, Wall: (w.base + w.now + w.wall) * 1e6, M1: m, M2: m + 1,
		Boot: int64(m) + w.slept*1e6, HasBoot: true}
}
