package clock

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// On the real machine: readings are narrow, and a guard that runs stops without a trace.
func TestMachineIsReadable(t *testing.T) {
	r, ok := look(machine{})
	if !ok {
		t.Fatalf("the clocks could not be read within %v in %d tries", time.Duration(widest), tries)
	}
	if r.M0 > r.M1 || r.M1 > r.M2 {
		t.Errorf("the brackets are out of order: %+v", r)
	}
	if off := Wall().UnixNano() - r.Wall; off < 0 || off > int64(time.Minute) {
		t.Errorf("the wall reading is %v from the wall clock", time.Duration(off))
	}
}

func TestRunLeavesNothingBehind(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	g, err := NewGuard(Config{CheckEvery: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { g.Run(ctx); close(done) }()
	for range 10_000 {
		if g.Snapshot().Tally.Checks >= 5 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-done
	if n := g.Snapshot().Tally.Checks; n < 5 {
		t.Errorf("%d checks in ten seconds", n)
	}
	if now := int64(g.Now()); abs(now-Wall().UnixNano()) > int64(time.Minute) {
		t.Errorf("guarded time is %d, far from the wall clock", now)
	}
}

func TestStepHintsEnd(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	hints, end := stepHints()
	select {
	case <-hints: // a nil channel never receives
		t.Error("a hint although nobody set the clock")
	default:
	}
	end()
}

// The kernel either bounds its error or there is no sample: no data is not no error.
func TestSystemReferenceIsHonest(t *testing.T) {
	k := Kernel()
	s, err := System().Measure(t.Context())
	switch {
	case !k.Known || !k.Synchronised:
		if !errors.Is(err, ErrNoBound) {
			t.Errorf("the kernel is not synchronised, and the reference says %+v, %v", s, err)
		}
	case err != nil:
		t.Error(err)
	case s.Err <= 0:
		t.Errorf("an error of %v", s.Err)
	}
}

func TestBootIDIsOneLine(t *testing.T) {
	id := BootID()
	if runtime.GOOS == "linux" && id == "" {
		t.Error("Linux did not tell its boot id")
	}
	if strings.ContainsAny(id, " \n") || id != BootID() {
		t.Errorf("boot id %q, then %q", id, BootID())
	}
}
