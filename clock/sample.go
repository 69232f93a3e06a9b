package clock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// Sample is what the clock of a reference read at one instant of our monotonic clock. It
// holds no reading of our own wall clock, so that a step during or after the measurement
// does not spoil it. A guard refuses one from the future or from before this process
// started, with a time before 1970 or after 2112, or with an error below 0 or above a day.
type Sample struct {
	At   algo.Mono     // the instant
	Time int64         // Unix time of the reference at that instant, in nanoseconds
	Err  time.Duration // the truth is within Time ± Err, if the reference keeps its promise
	RTT  time.Duration // round trip of the exchange; 0 if there was none
	N    int           // exchanges that this one is the best of
}

// widestError is the largest error with which a sample says anything.
const widestError = 24 * time.Hour

// sane refuses what no clock can have given, so that nothing that is computed from a sample
// overflows.
func (s Sample) sane(now algo.Mono) error {
	switch {
	case s.At < 0 || s.At > now:
		return fmt.Errorf("clock: a measurement at %d ns of the monotonic clock, which reads %d", s.At, now)
	case s.Time <= 0 || s.Time > int64(algo.MaxInstant)*1000:
		return fmt.Errorf("clock: it says %d ns, which is not a Unix time from 1970 to 2112", s.Time)
	case s.Err < 0 || s.RTT < 0:
		return fmt.Errorf("clock: an error of %v and a round trip of %v: neither can be negative", s.Err, s.RTT)
	case s.Err > widestError:
		return fmt.Errorf("clock: an error of %v, beyond %v, says nothing", s.Err, widestError)
	}
	return nil
}

// Reference is a clock that guarded time can follow.
type Reference interface {
	// Name is short and unique among the references of a guard, such as "system" or
	// "ntp time.example.org".
	Name() string
	// Measure reads the clock once. A reference that knows no bound of its error returns
	// ErrNoBound: no data is never no error.
	Measure(ctx context.Context) (Sample, error)
}

// ErrNoBound says that a clock could be read but that nothing bounds its error.
var ErrNoBound = errors.New("clock: no bound of the error is known")

// Exchange is one question to a remote clock: our monotonic clock before and after, and the
// remote clock somewhere in between, in Unix nanoseconds.
type Exchange struct {
	Before, After algo.Mono
	Remote        int64
}

// storeUnit is the granularity of a store's clock: its reading is up to this much old.
const storeUnit = time.Microsecond

// Best reduces exchanges to the one with the least round trip. Its error is half the round
// trip, rounded up, and 1 µs for the granularity of the remote clock: the remote clock was
// read somewhere within the round trip, and half a round trip from its middle is as far as
// it can be. It reports false if there is no exchange or if one claims to end before it
// began.
func Best(exchanges []Exchange) (Sample, bool) {
	var best Sample
	for i, x := range exchanges {
		rtt := time.Duration(x.After - x.Before)
		if rtt < 0 {
			return Sample{}, false
		}
		if i == 0 || rtt < best.RTT {
			best = Sample{At: x.Before + algo.Mono(rtt/2), Time: x.Remote, Err: (rtt+1)/2 + storeUnit, RTT: rtt}
		}
	}
	best.N = len(exchanges)
	return best, best.N > 0
}

// StoreClock is a clock that can be asked over a connection, such as the TIME command of
// Redis. It answers in microseconds of the Unix epoch.
type StoreClock interface {
	Time(ctx context.Context) (algo.Store, error)
}

// StoreClockFunc makes a StoreClock of a function.
type StoreClockFunc func(ctx context.Context) (algo.Store, error)

// Time calls the function.
func (f StoreClockFunc) Time(ctx context.Context) (algo.Store, error) { return f(ctx) }

const (
	exchanges     = 8                     // questions per measurement
	exchangeEvery = 25 * time.Millisecond // so that eight take 200 ms
)

// ask measures a store's clock: the best of eight exchanges spread over 200 ms. Exchanges
// that fail are left out as long as one succeeds. If they cannot all be true of one clock
// there is no telling which of them still is, and the measurement fails.
func ask(ctx context.Context, src Source, c StoreClock) (Sample, error) {
	first, _ := look(src)
	var got []Exchange
	var failed error
	timer := time.NewTimer(0)
	defer timer.Stop()
	for range exchanges {
		select {
		case <-ctx.Done():
			return Sample{}, ctx.Err()
		case <-timer.C:
		}
		timer.Reset(exchangeEvery)
		before := src.Mono()
		t, err := c.Time(ctx)
		after := src.Mono()
		if err != nil {
			failed = err
			continue
		}
		if t <= 0 || t > algo.MaxInstant {
			failed = fmt.Errorf("it says %d µs, which is not a Unix time in microseconds", t)
			continue
		}
		got = append(got, Exchange{Before: before, After: after, Remote: int64(t) * 1000})
	}
	// A round trip on the monotonic clock does not show that the machine slept in it.
	if last, _ := look(src); last.HasBoot && !last.frozen() && last.slept()-first.slept() >= suspendUnit {
		return Sample{}, errSlept
	}
	s, ok := Best(got)
	switch {
	case !ok:
		return Sample{}, failed
	case !steady(s, got):
		return Sample{}, errJumped
	}
	return s, nil
}

// errJumped says that a clock was set while it was measured.
var errJumped = errors.New("its clock was set during the measurement, or another server answered")

// slewAllowed is how much faster or slower than ours a clock may run while it is measured,
// in parts of 10^9: more than the 8.3 % of chrony's default.
const slewAllowed = 100_000_000

// steady reports whether every exchange can be true of the clock that s was taken of, to
// within a step.
func steady(s Sample, exchanges []Exchange) bool {
	for _, x := range exchanges {
		rtt := int64(x.After - x.Before)
		off := abs(x.Remote - int64(x.Before) - rtt/2 - line(s))
		apart := abs(int64(x.Before) + rtt/2 - int64(s.At))
		if off > int64(s.Err)+rtt/2+stepUnit+perBillion(apart, slewAllowed) {
			return false
		}
	}
	return true
}

// StoreTime makes a reference of a store's clock. trust bounds the error of that clock against
// UTC, which the store itself does not know; it is added to the error of the measurement.
// With trust 0 the reference has no bound, and ErrNoBound is what it measures.
func StoreTime(name string, c StoreClock, trust time.Duration) Reference {
	return storeReference{name, c, trust}
}

type storeReference struct {
	name  string
	clock StoreClock
	trust time.Duration
}

func (s storeReference) Name() string { return s.name }

func (s storeReference) Measure(ctx context.Context) (Sample, error) {
	got, err := ask(ctx, machine{}, s.clock)
	switch {
	case err != nil:
		return Sample{}, fmt.Errorf("clock: asking %s for its time: %w", s.name, err)
	case s.trust <= 0:
		return Sample{}, fmt.Errorf("%w: %s: set how far its clock can be trusted", ErrNoBound, s.name)
	}
	got.Err += s.trust
	return got, nil
}
