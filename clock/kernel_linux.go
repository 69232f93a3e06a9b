package clock

import (
	"errors"
	"math"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// readKernel reads adjtimex without changing anything. A sandbox that forbids the call
// makes the state unknown.
func readKernel() KernelState {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return KernelState{}
	}
	return KernelState{
		Known:        true,
		Synchronised: state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0,
		MaxError:     time.Duration(t.Maxerror) * time.Microsecond,
		LeapArmed:    state == unix.TIME_INS || state == unix.TIME_DEL || state == unix.TIME_OOP || state == unix.TIME_WAIT,
		FreqPPM:      float64(t.Freq) / 65536,
	}
}

func readBootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// farAhead is when the timer of stepHints would expire, in seconds of the Unix epoch: in 2242, or
// as late as a 32-bit kernel interface can say.
const farAhead = min(1<<33, math.MaxInt)

// stepHints waits for the kernel to cancel a timer because the wall clock was set. The
// timer is an absolute one on CLOCK_REALTIME, the only kind that is cancelled.
func stepHints() (<-chan struct{}, func()) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, func() {}
	}
	arm := func() error {
		at := unix.ItimerSpec{Value: unix.Timespec{Sec: farAhead}}
		return unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &at, nil)
	}
	if arm() != nil {
		_ = unix.Close(fd) // never armed: nothing to lose
		return nil, func() {}
	}
	f := os.NewFile(uintptr(fd), "timerfd")
	hints, done := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 8)
		for {
			if _, err := f.Read(buf); !errors.Is(err, unix.ECANCELED) {
				return // closed, or a timer that cannot be read: the polled check remains
			}
			if arm() != nil { // before anybody reads the clocks again
				return
			}
			select {
			case hints <- struct{}{}:
			default:
			}
		}
	}()
	return hints, func() {
		_ = f.Close() // ends the read; the timer has nothing else to lose
		<-done
	}
}
