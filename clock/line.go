package clock

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// Line is a time line for the state of one process: microseconds, starting at the wall time
// of its creation and advancing with the monotonic clock. It never goes back and no later
// step of the wall clock reaches it.
//
// Time during which the machine was suspended has truly passed, but the monotonic clock
// does not count it. A line counts it whenever somebody calls Sync; a line that nobody
// syncs does not count suspends, nor does any line on a platform without a boot clock
// (CountsSuspends tells).
type Line struct {
	src   Source       // nil: this machine
	ahead atomic.Int64 // of the monotonic clock, in ns: the wall time of its start as known at creation, and what was slept since

	synced atomic.Int64 // monotonic ns of the last look
	mu     sync.Mutex   // held by the one who looks
	last   int64        // boot minus mono when last believed; guarded by mu
	known  bool         // whether last is; guarded by mu
}

// syncEvery is how often Sync really looks: a look is a system call.
const syncEvery = int64(250 * time.Millisecond)

// NewLine starts a line at the wall time of this moment.
func NewLine() *Line { return newLine(machine{}, nil) }

// NewLineFrom starts a line on the clocks of a source, for tests that need to suspend or
// step a machine.
func NewLineFrom(src Source) *Line { return newLine(src, src) }

func newLine(src, kept Source) *Line {
	r, _ := look(src)
	l := &Line{src: kept, last: r.slept(), known: r.HasBoot && !r.frozen()}
	l.ahead.Store(r.Wall - int64(r.mid()))
	l.synced.Store(int64(r.M2))
	return l
}

// Now is this moment on the line, rounded down to the microsecond. It costs one monotonic
// reading and one atomic load.
func (l *Line) Now() algo.Store {
	return algo.Store((int64(l.mono()) + l.ahead.Load()) / 1000)
}

// Sync counts the time that the machine was suspended since the last Sync. It looks at
// most four times a second, however often it is called, and never waits: if another call
// is looking, or if the clocks could not be read together, the next one will do.
func (l *Line) Sync() {
	now := int64(l.mono())
	if now-l.synced.Load() < syncEvery || !l.mu.TryLock() {
		return
	}
	defer l.mu.Unlock()
	l.synced.Store(now)
	r, ok := look(l.source())
	if !ok || !r.HasBoot || r.frozen() {
		return
	}
	s := r.slept()
	if !l.known {
		l.last, l.known = s, true
		return
	}
	// Less than a unit is the width of a bracket; what is not counted now stays in the
	// difference and is counted when it adds up.
	if grown := s - l.last; grown >= suspendUnit {
		l.ahead.Add(grown)
		l.last = s
	}
}

// CountsSuspends reports whether this line can see suspends, provided Sync is called.
func (l *Line) CountsSuspends() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known
}

func (l *Line) mono() algo.Mono {
	if l.src == nil {
		return Mono()
	}
	return l.src.Mono()
}

func (l *Line) source() Source {
	if l.src == nil {
		return machine{}
	}
	return l.src
}
