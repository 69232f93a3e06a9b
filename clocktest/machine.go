// Package clocktest provides the clocks of a machine that obeys a test: wall, monotonic and
// boot clock move independently, and the process can be paused at any reading.
//
// A Machine is a clock.Source. True time passes only when the test says so (Advance,
// Suspend) and by the cost of each reading, so that a test replays to the nanosecond.
//
//	m := clocktest.NewMachine()
//	g, err := clock.NewGuard(clock.Config{Source: m})
//	m.Advance(time.Second)
//	m.Step(-320 * time.Millisecond)
//	g.Check()
package clocktest

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

// Epoch is the Unix time, in nanoseconds, at which the true time of a Machine starts: the
// 15th of January 2027, 08:00 UTC.
const Epoch = int64(1_800_000_000_000_000_000)

// Machine is a machine with scripted clocks. The zero value is not ready; see NewMachine.
// It is safe for concurrent use.
type Machine struct {
	mu     sync.Mutex
	truth  int64 // ns since Epoch
	mono   int64
	slept  int64
	wall   int64                 // ns since Epoch
	cost   int64                 // per reading
	monoPB int64                 // how much faster than truth the monotonic clock runs, parts per 10^9
	wallPB int64                 // how much faster than the monotonic clock the wall clock runs
	pauses map[int]time.Duration // by reading
	count  int                   // readings so far
	random *rand.Rand
	share  float64
	most   int64
	noBoot bool
	kernel clock.KernelState
	hints  chan struct{}
}

// NewMachine returns a machine whose clocks agree with true time, whose readings cost 50 ns
// each and whose kernel says nothing about its synchronisation.
func NewMachine() *Machine {
	return &Machine{cost: 50, pauses: map[int]time.Duration{}, hints: make(chan struct{}, 1)}
}

// Advance lets true time pass while the machine runs.
func (m *Machine) Advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(int64(d))
}

func (m *Machine) advance(d int64) {
	mono := d + scale(d, m.monoPB)
	m.truth += d
	m.mono += mono
	m.wall += mono + scale(mono, m.wallPB)
}

// scale is d·ppb/10⁹, without overflow.
func scale(d, ppb int64) int64 { return d/1e9*ppb + d%1e9*ppb/1e9 }

// Step sets the wall clock, by d from where it stands, and gives a hint of it.
func (m *Machine) Step(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wall += int64(d)
	select {
	case m.hints <- struct{}{}:
	default:
	}
}

// Suspend lets true time pass while the machine sleeps: the monotonic clock stands still,
// the wall clock and the boot clock go on.
func (m *Machine) Suspend(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.truth += int64(d)
	m.wall += int64(d)
	m.slept += int64(d)
}

// Freeze lets true time pass unnoticed by any clock of the machine, as when a virtual
// machine is paused by its host and nobody corrects it.
func (m *Machine) Freeze(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.truth += int64(d)
}

// Drift has the monotonic clock run faster than true time by mono parts per million, and
// the wall clock faster than the monotonic clock by wall parts per million, from now on. A
// kernel that slews moves both: that is mono. Linux never shows wall.
func (m *Machine) Drift(mono, wall float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.monoPB, m.wallPB = int64(mono*1000), int64(wall*1000)
}

// PauseAt pauses the process for d just before the n-th reading from now; 0 is the next.
// Clocks of one Read are read, and count, in the order M0, Wall, M1, Boot, M2.
func (m *Machine) PauseAt(n int, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pauses[m.count+n] += d
}

// PauseRandomly pauses the process before a share of all readings, for up to most each.
// The same generator gives the same pauses.
func (m *Machine) PauseRandomly(r *rand.Rand, share float64, most time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.random, m.share, m.most = r, share, int64(most)
}

// WithoutBoot takes the boot clock away, as on a platform that has none.
func (m *Machine) WithoutBoot() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noBoot = true
}

// SetKernel sets what the kernel says about its wall clock.
func (m *Machine) SetKernel(k clock.KernelState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kernel = k
}

// Truth is the true Unix time in nanoseconds. Asking costs no time.
func (m *Machine) Truth() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Epoch + m.truth
}

// Wall is the raw wall clock in Unix nanoseconds. Asking costs no time.
func (m *Machine) Wall() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Epoch + m.wall
}

// Elapsed is the monotonic clock. Unlike Mono, asking costs no time.
func (m *Machine) Elapsed() algo.Mono {
	m.mu.Lock()
	defer m.mu.Unlock()
	return algo.Mono(m.mono)
}

// Mono implements clock.Source.
func (m *Machine) Mono() algo.Mono {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reading()
	return algo.Mono(m.mono)
}

// Read implements clock.Source.
func (m *Machine) Read() clock.Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	var r clock.Reading
	m.reading()
	r.M0 = algo.Mono(m.mono)
	m.reading()
	r.Wall = Epoch + m.wall
	m.reading()
	r.M1 = algo.Mono(m.mono)
	m.reading()
	if !m.noBoot {
		r.Boot, r.HasBoot = m.mono+m.slept, true
	}
	m.reading()
	r.M2 = algo.Mono(m.mono)
	return r
}

// reading lets the time of one reading pass, pauses included.
func (m *Machine) reading() {
	m.advance(m.cost)
	if d, ok := m.pauses[m.count]; ok {
		m.advance(int64(d))
		delete(m.pauses, m.count)
	}
	if m.random != nil && m.random.Float64() < m.share {
		m.advance(m.random.Int64N(m.most + 1))
	}
	m.count++
}

// Kernel implements clock.KernelSource.
func (m *Machine) Kernel() clock.KernelState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kernel
}

// Hints implements clock.HintSource.
func (m *Machine) Hints() (<-chan struct{}, func()) { return m.hints, func() {} }
