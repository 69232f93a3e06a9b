package clock

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement-io/escapement/algo"
	"pgregory.net/rapid"
)

func TestJudgeHasThreeValues(t *testing.T) {
	const limit = 100 * time.Millisecond
	for _, c := range []struct {
		offset, err time.Duration
		want        Verdict
	}{
		{0, time.Millisecond, Good},
		{-98 * time.Millisecond, time.Millisecond, Good},
		{99 * time.Millisecond, time.Millisecond, Uncertain},
		{101 * time.Millisecond, time.Millisecond, Uncertain},
		{102 * time.Millisecond, time.Millisecond, Bad},
		{-5 * time.Second, time.Second, Bad},
		{0, 200 * time.Millisecond, Uncertain},
	} {
		if got := Judge(c.offset, c.err, limit); got != c.want {
			t.Errorf("%v ± %v: %s, want %s", c.offset, c.err, got, c.want)
		}
	}
}

// Wherever in the round trip the remote clock was read, the truth is within the error.
func TestBestAlwaysHoldsTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offset := rapid.Int64Range(-1<<50, 1<<50).Draw(t, "offset") // remote minus monotonic
		var xs []Exchange
		at := int64(0)
		for range rapid.IntRange(1, 8).Draw(t, "exchanges") {
			there := rapid.Int64Range(0, 400_000_000).Draw(t, "there")
			back := rapid.Int64Range(0, 400_000_000).Draw(t, "back")
			remote := at + there + offset
			xs = append(xs, Exchange{Before: algo.Mono(at), After: algo.Mono(at + there + back), Remote: remote - remote%1000})
			at += there + back + 1
		}
		s, ok := Best(xs)
		if !ok {
			t.Fatal("no sample of valid exchanges")
		}
		if off := abs(line(s) - offset); off > int64(s.Err) {
			t.Fatalf("off by %d ns, claimed ± %d", off, s.Err)
		}
		for _, x := range xs {
			if time.Duration(x.After-x.Before) < s.RTT {
				t.Fatalf("an exchange had a shorter round trip than %v", s.RTT)
			}
		}
	})
}

func TestBestRefusesNonsense(t *testing.T) {
	if _, ok := Best(nil); ok {
		t.Error("a sample of no exchange")
	}
	if _, ok := Best([]Exchange{{Before: 5, After: 4}}); ok {
		t.Error("a sample of an exchange that ended before it began")
	}
}

// remote is a store's clock in the bubble's time, with a way there and back.
type remote struct {
	there, back func() time.Duration

	mu     sync.Mutex
	offset time.Duration
	fail   error
}

func (r *remote) set(offset time.Duration, fail error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.offset, r.fail = offset, fail
}

func (r *remote) Time(ctx context.Context) (algo.Store, error) {
	if err := wait(ctx, r.there()); err != nil {
		return 0, err
	}
	r.mu.Lock()
	now, fail := algo.Store(time.Now().Add(r.offset).UnixMicro()), r.fail
	r.mu.Unlock()
	if err := wait(ctx, r.back()); err != nil {
		return 0, err
	}
	return now, fail
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func steadily(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// A clock that is set between two of the eight exchanges gives no measurement; one that is
// slewed as fast as chrony may gives one.
func TestClockThatJumpsWhileItIsMeasured(t *testing.T) {
	for _, c := range []struct {
		name string
		jump time.Duration // after so many exchanges
		at   int
		ppm  int64
		want error
	}{
		{"steady", 0, 0, 0, nil},
		{"set forward at the end", time.Minute, 7, 0, errJumped},
		{"set back in the middle", -50 * time.Millisecond, 4, 0, errJumped},
		{"set back by decades", -900_000_000 * time.Second, 3, 0, errJumped},
		{"slewed by 8.3 %", 0, 0, 83_333, nil},
		{"slewed by -8.3 %", 0, 0, -83_333, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, n := time.Now(), 0
			s, err := ask(t.Context(), machine{}, StoreClockFunc(func(context.Context) (algo.Store, error) {
				time.Sleep(100 * time.Microsecond)
				passed := time.Since(began)
				now := began.Add(passed + time.Duration(int64(passed)/1_000_000*c.ppm)).Add(time.Hour)
				time.Sleep(100 * time.Microsecond)
				if n++; n > c.at && c.jump != 0 {
					now = now.Add(c.jump)
				}
				return algo.Store(now.UnixMicro()), nil
			}))
			if !errors.Is(err, c.want) || err == nil && s.N != exchanges {
				t.Errorf("%s: %+v, %v; want %v", c.name, s, err, c.want)
			}
		})
	}
}

func TestMonitorMeasuresAndAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := NewGuard(Config{})
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 2))
		// One reply in four is late by up to 400 ms.
		late := func() time.Duration {
			if r.IntN(4) == 0 {
				return time.Duration(r.Int64N(int64(400 * time.Millisecond)))
			}
			return 300 * time.Microsecond
		}
		store := &remote{offset: -5 * time.Second, there: steadily(200 * time.Microsecond), back: late}
		m, err := NewMonitor(MonitorConfig{Name: "main", Clock: store, Guard: g})
		if err != nil {
			t.Fatal(err)
		}
		var rounds atomic.Int32
		m.Subscribe(func(Skew) { rounds.Add(1) })
		if _, some := m.Latest(); some {
			t.Error("there is a measurement before the first round")
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { m.Run(ctx); close(done) }()

		time.Sleep(3 * time.Second)
		s, some := m.Latest()
		if !some || (s.Offset-5*time.Second).Abs() > s.Error || s.Error > time.Millisecond || s.Samples != 8 {
			t.Errorf("first round: %+v, want +5 s within its error, of eight samples", s)
		}
		if s.Verdict != Bad || s.Alarm {
			t.Errorf("first round: %s, alarm %v; want bad and no alarm yet", s.Verdict, s.Alarm)
		}
		time.Sleep(70 * time.Second)
		if s, _ = m.Latest(); !s.Alarm {
			t.Errorf("after two bad rounds: %+v, want an alarm", s)
		}
		store.set(0, nil)
		time.Sleep(4 * time.Minute)
		if s, _ = m.Latest(); s.Alarm || s.Verdict != Good {
			t.Errorf("corrected: %+v, want good", s)
		}
		if n := rounds.Load(); n < 5 || n > 7 {
			t.Errorf("%d rounds in 313 s, want one each 60 s ± 10 %%", n)
		}

		store.set(0, errors.New("connection refused"))
		before, _ := m.Latest()
		time.Sleep(10 * time.Minute)
		s, _ = m.Latest()
		if !strings.Contains(s.Failed, "connection refused") || !strings.Contains(s.Failed, "main") {
			t.Errorf("the failure %q names neither the cause nor the clock", s.Failed)
		}
		if grown := s.Error - before.Error; grown < 100*time.Millisecond || grown > 140*time.Millisecond {
			t.Errorf("ten minutes without a measurement added %v to the error, want 120 ms at 200 ppm", grown)
		}
		cancel()
		<-done
	})
}

func TestMonitorKeepsTheTighterSample(t *testing.T) {
	c := MonitorConfig{Name: "x", Every: time.Minute, Limit: 100 * time.Millisecond, DriftPPM: 200}
	tight := Sample{At: algo.Mono(time.Second), Time: 1000, Err: time.Millisecond, RTT: 2 * time.Millisecond, N: 8}
	s, some := c.judge(Skew{}, false, tight, 1000, nil, tight.At)
	if !some || s.Offset != 0 || s.Verdict != Good {
		t.Fatalf("%+v", s)
	}
	wide := Sample{At: tight.At + algo.Mono(time.Minute), Time: 1000, Err: 300 * time.Millisecond, N: 8}
	if s, _ = c.judge(s, true, wide, int64(200*time.Millisecond), nil, wide.At); s.Offset != 0 {
		t.Errorf("a wide sample replaced a tight one: %+v", s)
	}
	wide.At += algo.Mono(time.Minute)
	if s, _ = c.judge(s, true, wide, int64(200*time.Millisecond), nil, wide.At); s.At != wide.At || s.Verdict != Uncertain {
		t.Errorf("after two rounds the old sample counts no more: %+v", s)
	}
}

func TestMonitorConfigReportsEveryProblem(t *testing.T) {
	_, err := NewMonitor(MonitorConfig{Every: time.Millisecond, Limit: -1})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"no clock", "every 1ms", "limit"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
}

func TestStoreReference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &remote{there: steadily(time.Millisecond), back: steadily(time.Millisecond)}
		s, err := StoreTime("main", store, 50*time.Millisecond).Measure(t.Context())
		if err != nil || s.Err != 51*time.Millisecond+time.Microsecond || s.RTT != 2*time.Millisecond {
			t.Errorf("%+v, %v", s, err)
		}
		if _, err := StoreTime("main", store, 0).Measure(t.Context()); !errors.Is(err, ErrNoBound) {
			t.Errorf("an untrusted store gave %v, want ErrNoBound", err)
		}
		odd := StoreClockFunc(func(context.Context) (algo.Store, error) { return -1, nil })
		if _, err := StoreTime("odd", odd, time.Second).Measure(t.Context()); err == nil || !strings.Contains(err.Error(), "microseconds") {
			t.Errorf("a time before 1970 gave %v", err)
		}
	})
}
