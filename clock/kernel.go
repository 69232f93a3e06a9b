package clock

import (
	"context"
	"fmt"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// KernelState is what the kernel says about its own wall clock. The zero value says that
// it was not asked or would not tell.
type KernelState struct {
	Known        bool `json:"known"`
	Synchronised bool `json:"synchronised"`
	// MaxError bounds the error of the wall clock, if Synchronised. It is the bound that
	// the NTP daemon reported, grown since by 500 ppm.
	MaxError  time.Duration `json:"max_error_ns"`
	LeapArmed bool          `json:"leap_armed"`
	FreqPPM   float64       `json:"freq_ppm"`
}

// KernelSource is a Source whose kernel can be asked about its wall clock.
type KernelSource interface {
	Source
	Kernel() KernelState
}

// Kernel asks this machine's kernel about its wall clock. Outside Linux it does not know.
func Kernel() KernelState { return readKernel() }

// BootID names this start of this machine: processes with the same one, in containers or
// not, share their clocks and their suspends. It is empty where the platform does not tell.
func BootID() string { return readBootID() }

func (machine) Kernel() KernelState { return readKernel() }

// HintSource is a Source that can tell at once that its wall clock was set. A hint only
// brings the next check forward; no step is believed, or missed, for want of one.
type HintSource interface {
	Source
	// Hints returns a channel that receives after a step, and a function that ends it and
	// waits. It returns nil if there are no hints to be had.
	Hints() (<-chan struct{}, func())
}

func (machine) Hints() (<-chan struct{}, func()) { return stepHints() }

// System is the wall clock of this machine as a reference. Its bound is the kernel's; a
// kernel that is not synchronised, or a platform that does not tell, has none.
func System() Reference { return systemReference{machine{}} }

// systemName is the name of the one reference that a guard reads by itself.
const systemName = "system"

type systemReference struct{ src Source }

func (systemReference) Name() string { return systemName }

func (s systemReference) Measure(context.Context) (Sample, error) {
	r, ok := look(s.src)
	if !ok {
		return Sample{}, fmt.Errorf("clock: the system clock could not be read within %v", time.Duration(widest))
	}
	return systemSample(r, kernelOf(s.src))
}

func kernelOf(src Source) KernelState {
	if k, ok := src.(KernelSource); ok {
		return k.Kernel()
	}
	return KernelState{}
}

func systemSample(r Reading, k KernelState) (Sample, error) {
	switch {
	case !k.Known:
		return Sample{}, fmt.Errorf("%w: the kernel does not say whether its clock is synchronised", ErrNoBound)
	case !k.Synchronised:
		return Sample{}, fmt.Errorf("%w: the kernel says that its clock is not synchronised", ErrNoBound)
	}
	return Sample{At: r.mid(), Time: r.Wall, Err: k.MaxError + time.Duration(r.width()/2), N: 1}, nil
}

// Offset is this machine's raw wall clock minus the clock of a sample, extended to now at
// the pace of the monotonic clock; positive means that our wall clock is ahead. It reports
// false if the clocks could not be read together.
func Offset(s Sample) (time.Duration, bool) {
	r, ok := look(machine{})
	return time.Duration(r.Wall - int64(r.mid()) - line(s)), ok
}

// line is a sample as a distance between two clocks: its Unix time minus monotonic time.
func line(s Sample) int64 { return s.Time - int64(s.At) }

// errAt is the half-width of a sample at m, after the clocks have drifted apart since.
func errAt(s Sample, m algo.Mono, driftPPB int64) int64 {
	return int64(s.Err) + perBillion(max(0, int64(m-s.At)), driftPPB)
}
