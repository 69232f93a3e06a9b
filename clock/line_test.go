package clock

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// axes is the smallest scripted source: every reading costs 50 ns.
type axes struct {
	mu                sync.Mutex
	mono, wall, slept int64
	noBoot            bool
}

func (a *axes) tick() int64 { a.mono += 50; a.wall += 50; return a.mono }

func (a *axes) Mono() algo.Mono {
	a.mu.Lock()
	defer a.mu.Unlock()
	return algo.Mono(a.tick())
}

func (a *axes) Read() Reading {
	a.mu.Lock()
	defer a.mu.Unlock()
	var r Reading
	r.M0 = algo.Mono(a.tick())
	a.tick()
	r.Wall = a.wall
	r.M1 = algo.Mono(a.tick())
	a.tick()
	r.Boot, r.HasBoot = a.mono+a.slept, !a.noBoot
	r.M2 = algo.Mono(a.tick())
	return r
}

func (a *axes) pass(d time.Duration)  { a.mono += int64(d); a.wall += int64(d) }
func (a *axes) step(d time.Duration)  { a.wall += int64(d) }
func (a *axes) sleep(d time.Duration) { a.wall += int64(d); a.slept += int64(d) }

const epoch = int64(1_800_000_000_000_000_000)

func newAxes() *axes { return &axes{wall: epoch} }

// near reports whether the line has advanced by d since from, to within the cost of a few readings.
func near(t *testing.T, what string, got algo.Store, from algo.Store, d time.Duration) {
	t.Helper()
	off := int64(got-from) - d.Microseconds()
	if off < 0 || off > 5 {
		t.Errorf("%s: the line advanced by %d µs, want %d to %d", what, got-from, d.Microseconds(), d.Microseconds()+5)
	}
}

func TestLineIgnoresStepsAndCountsSuspends(t *testing.T) {
	a := newAxes()
	l := NewLineFrom(a)
	t0 := l.Now()
	if off := int64(t0) - epoch/1000; off < 0 || off > 5 {
		t.Fatalf("the line starts %d µs from the wall clock", off)
	}
	a.pass(time.Second)
	near(t, "after 1 s", l.Now(), t0, time.Second)
	a.step(-time.Hour)
	l.Sync()
	near(t, "after a step of -1 h", l.Now(), t0, time.Second)
	a.step(2 * time.Hour)
	a.pass(time.Second)
	l.Sync()
	near(t, "after a step of +2 h", l.Now(), t0, 2*time.Second)
	a.sleep(time.Hour)
	a.pass(time.Second)
	near(t, "suspended, not synced", l.Now(), t0, 3*time.Second)
	l.Sync()
	near(t, "suspended, synced", l.Now(), t0, 3*time.Second+time.Hour)
	a.pass(time.Second)
	l.Sync()
	near(t, "synced again", l.Now(), t0, 4*time.Second+time.Hour)
}

func TestLineAddsUpShortSuspends(t *testing.T) {
	a := newAxes()
	l := NewLineFrom(a)
	t0 := l.Now()
	for range 10 {
		a.sleep(300 * time.Microsecond)
		a.pass(time.Second)
		l.Sync()
	}
	got := int64(l.Now()-t0) - 10_000_000
	if got < 2000 || got > 3010 {
		t.Errorf("ten suspends of 300 µs gave %d µs, want 3000 less at most one unit of 1000", got)
	}
}

func TestLineWithoutBootClock(t *testing.T) {
	a := newAxes()
	a.noBoot = true
	l := NewLineFrom(a)
	if l.CountsSuspends() {
		t.Error("a line without a boot clock claims to count suspends")
	}
	t0 := l.Now()
	a.sleep(time.Hour)
	a.pass(time.Second)
	l.Sync()
	near(t, "no boot clock", l.Now(), t0, time.Second)
}

// The boot clock is the machine's even inside a bubble; real time must not leak in.
func TestLineInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLine()
		t0 := l.Now()
		for range 50 {
			time.Sleep(time.Second)
			l.Sync()
		}
		if got := l.Now() - t0; got != 50_000_000 {
			t.Errorf("50 s of bubble time gave %d µs", got)
		}
	})
}

func TestLineNeverGoesBack(t *testing.T) {
	l := NewLine()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			last := l.Now()
			for range 50_000 {
				l.Sync()
				n := l.Now()
				if n < last {
					t.Errorf("the line went back by %d µs", last-n)
					return
				}
				last = n
			}
		})
	}
	wg.Wait()
}

func TestReadingsAllocateNothing(t *testing.T) {
	l := NewLine()
	if n := testing.AllocsPerRun(1000, func() { Mono(); l.Now(); l.Sync() }); n != 0 {
		t.Errorf("readings allocate %v times", n)
	}
}

func TestSinceUntilDeadlineWall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, d := Mono(), Deadline(3*time.Second)
		time.Sleep(time.Second)
		if got := Since(m); got != time.Second {
			t.Errorf("Since = %v, want 1s", got)
		}
		if got := Until(d); got != 2*time.Second {
			t.Errorf("Until = %v, want 2s", got)
		}
		if got := Since(Mono() + 5); got != 0 {
			t.Errorf("Since a later instant = %v, want 0", got)
		}
		if w := Wall(); w != w.Round(0) {
			t.Error("Wall carries a monotonic reading")
		}
	})
}
