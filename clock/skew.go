package clock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// Verdict judges an offset of which only an interval is known.
type Verdict string

const (
	// Good: the offset is within the limit even if the error is added.
	Good Verdict = "good"
	// Bad: the offset is beyond the limit even if the error is taken off.
	Bad Verdict = "bad"
	// Uncertain: it may be either. Nobody is woken for it.
	Uncertain Verdict = "uncertain"
)

// Judge compares the size of an offset, known to within ± err, with a limit.
func Judge(offset, err, limit time.Duration) Verdict {
	switch size := offset.Abs(); {
	case size+err < limit:
		return Good
	case size-err > limit:
		return Bad
	}
	return Uncertain
}

// Skew is a measurement of our clock against another.
type Skew struct {
	Name string `json:"name"`
	// Offset is our guarded time minus the other clock at At; positive means that we are
	// ahead. It is never used to decide and never discounted from anything: it is there to
	// page someone.
	Offset time.Duration `json:"offset_ns"`
	// Error bounds the measurement: half the round trip and 1 µs, grown by the drift since.
	Error   time.Duration `json:"error_ns"`
	RTT     time.Duration `json:"rtt_ns"`
	At      algo.Mono     `json:"at_mono_ns"`
	Samples int           `json:"samples"`
	Verdict Verdict       `json:"verdict"`
	// BadRounds is how many rounds in a row were Bad.
	BadRounds int `json:"bad_rounds"`
	// Alarm is set from the second bad round in a row on: the absolute offset is beyond
	// the limit and it is no accident.
	Alarm bool `json:"alarm"`
	// DriftPPM is how fast the offset has changed since the round before. It is for charts.
	DriftPPM float64 `json:"drift_ppm"`
	// Failed is why the last round gave nothing; the fields above are then of an earlier
	// round, with the error grown.
	Failed string `json:"failed,omitempty"`
}

// MonitorConfig says what a Monitor measures.
type MonitorConfig struct {
	Name  string     // of the other clock, for people and metrics
	Clock StoreClock // the other clock
	// Guard is our clock. Default: the raw wall clock of this machine.
	Guard *Guard
	// Every is the pause between rounds, ± 10 %. Default: 60 s.
	Every time.Duration
	// Limit is the offset that is too much. Default: 100 ms.
	Limit time.Duration
	// DriftPPM is how fast an old measurement loses value. Default: 200.
	DriftPPM int
}

// Monitor measures the skew between our clock and another every minute: eight exchanges
// over 200 ms, of which the one with the least round trip counts.
type Monitor struct {
	cfg MonitorConfig
	src Source

	mu   sync.Mutex
	last Skew
	some bool // last holds
	subs []*skewSubscriber
}

type skewSubscriber struct{ f func(Skew) }

// alarmAfter is how many bad rounds in a row raise the alarm.
const alarmAfter = 2

// NewMonitor makes a monitor; Run or Measure sets it to work.
func NewMonitor(cfg MonitorConfig) (*Monitor, error) {
	var errs []error
	if cfg.Clock == nil {
		errs = append(errs, errors.New("clock: monitor: no clock is given: set MonitorConfig.Clock"))
	}
	if cfg.DriftPPM == 0 {
		cfg.DriftPPM = 200
	}
	setDefault(&cfg.Every, time.Minute)
	setDefault(&cfg.Limit, 100*time.Millisecond)
	if cfg.Every < minEvery {
		errs = append(errs, fmt.Errorf("clock: monitor: every %v is too often: use at least %v", cfg.Every, minEvery))
	}
	if cfg.Limit < 0 || cfg.DriftPPM < 0 {
		errs = append(errs, fmt.Errorf("clock: monitor: limit %v and drift %d ppm: use positive values", cfg.Limit, cfg.DriftPPM))
	}
	m := &Monitor{cfg: cfg, src: machine{}}
	if cfg.Guard != nil {
		m.src = cfg.Guard.src
	}
	return m, errors.Join(errs...)
}

// Run measures until ctx is done.
func (m *Monitor) Run(ctx context.Context) {
	for {
		attempt, cancel := context.WithTimeout(ctx, measureWithin)
		_, _ = m.Measure(attempt) // the failure is kept in Latest
		cancel()
		if !pause(ctx, jittered(m.cfg.Every), nil) {
			return
		}
	}
}

// Measure does one round now and returns what is known after it.
func (m *Monitor) Measure(ctx context.Context) (Skew, error) {
	s, err := ask(ctx, m.src, m.cfg.Clock)
	if err != nil {
		err = fmt.Errorf("clock: measuring the skew to %s: %w", m.cfg.Name, err)
	}
	now := int64(0)
	if err == nil {
		if now, err = m.ours(s.At); err != nil {
			err = fmt.Errorf("clock: measuring the skew to %s: %w", m.cfg.Name, err)
		}
	}
	m.mu.Lock()
	if !errors.Is(err, context.Canceled) { // nobody failed: we were told to stop
		m.last, m.some = m.cfg.judge(m.last, m.some, s, now, err, m.src.Mono())
	}
	out, subs := m.last, append([]*skewSubscriber(nil), m.subs...)
	m.mu.Unlock()
	for _, f := range subs {
		f.f(out)
	}
	return out, err
}

// ours is our own clock at an instant just past.
func (m *Monitor) ours(at algo.Mono) (int64, error) {
	if m.cfg.Guard != nil {
		return int64(m.cfg.Guard.At(at)), nil
	}
	r, ok := look(m.src)
	if !ok {
		return 0, ErrUnreadable
	}
	return r.Wall - int64(r.mid()-at), nil
}

// judge is one round: pure. A failed round keeps the last measurement and lets its error
// grow; so does one that is worse than the last still is, unless the last is two rounds old.
func (c MonitorConfig) judge(last Skew, some bool, s Sample, now int64, err error, m algo.Mono) (Skew, bool) {
	grown := last.Error + time.Duration(perBillion(max(0, int64(m-last.At)), int64(c.DriftPPM)*1000))
	next := last
	next.Name, next.Failed = c.Name, ""
	fresh := !some || err == nil && (s.Err <= grown || m-last.At >= algo.Mono(2*c.Every))
	switch {
	case err != nil:
		next.Failed = err.Error()
		if !some {
			return next, false
		}
	case fresh:
		next.Offset, next.Error, next.RTT, next.At, next.Samples = time.Duration(now-s.Time), s.Err, s.RTT, s.At, s.N
		if elapsed := s.At - last.At; some && elapsed > 0 {
			next.DriftPPM = float64(next.Offset-last.Offset) / float64(elapsed) * 1e6
		}
		grown = s.Err
	}
	next.Verdict = Judge(next.Offset, grown, c.Limit)
	if err == nil && fresh { // an old measurement is not bad twice
		if next.Verdict == Bad {
			next.BadRounds++
		} else {
			next.BadRounds = 0
		}
	}
	next.Alarm = next.BadRounds >= alarmAfter
	return next, true
}

// Latest is the last measurement, its error grown to this moment, and whether there is one.
func (m *Monitor) Latest() (Skew, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.last
	if m.some {
		s.Error += time.Duration(perBillion(max(0, int64(m.src.Mono()-s.At)), int64(m.cfg.DriftPPM)*1000))
	}
	return s, m.some
}

// Subscribe has f called after every round. The returned function ends it.
func (m *Monitor) Subscribe(f func(Skew)) (cancel func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &skewSubscriber{f}
	m.subs = append(m.subs, s)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		for i, o := range m.subs {
			if o == s {
				m.subs = append(m.subs[:i:i], m.subs[i+1:]...)
				return
			}
		}
	}
}
