package clock

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// Guard keeps guarded wall time: it starts at the wall clock, goes on by the monotonic
// clock, and is brought to where its references agree at a bounded rate. It never goes
// back, and a step of the machine's wall clock does not reach it at the moment it happens.
//
// Between events its pace differs from the monotonic clock's by at most 0.5 %. The events
// are Suspend, which moves it forward by the time that truly passed, and Rebased: forward
// it jumps, backward it runs at half speed until the truth has caught up.
//
// Somebody must watch the clocks: call Run, or Check a few times a second. Without, a guard
// is the wall clock of its creation continued by the monotonic clock.
type Guard struct {
	src     Source
	machine bool // src is this machine: Now then saves the interface call
	pace    atomic.Pointer[pace]
	held    atomic.Pointer[held]
	epoch   atomic.Uint32
	kicks   []chan struct{} // per reference; nil for the system clock
	cfg     Config

	checking sync.Mutex // held over a check and the delivery of its events

	mu       sync.Mutex // everything below
	det      detector
	cands    []candidate
	failures []error // per reference: why the last measurement gave nothing
	choose   chooser
	con      consensus
	agreed   bool      // the references have agreed at least once
	doubt    bool      // uncounted time may have passed since the references were asked
	owed     int64     // suspended time that Now has not taken in yet
	errSince algo.Mono // since when an error too large to slew has stood
	errLine  int64     // where it would lead, as Unix time minus monotonic time
	large    bool      // there is one
	aimed    algo.Mono
	steps    [2]algo.Mono // when the last two steps were seen
	unclear  int          // checks in a row that saw nothing
	tally    Tally
	last     *Event
	slept    algo.Mono // when the last suspend was seen
	subs     []*subscriber
	pending  []Event // of the check under way
}

// aimEvery is how often guarded time is aimed anew and the system clock is sampled.
const aimEvery = algo.Mono(time.Second)

// ErrUnreadable says that the clocks could not be read closely enough together to start.
var ErrUnreadable = errors.New("clock: the monotonic and the wall clock could not be read together")

// NewGuard starts guarded time at the wall clock. It reports everything that is wrong with
// the configuration at once, and ErrUnreadable if the machine is so busy that no reading
// in a thousand succeeds.
func NewGuard(cfg Config) (*Guard, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	g := &Guard{src: cfg.Source, cfg: cfg}
	_, g.machine = cfg.Source.(machine)
	for _, f := range cfg.References {
		g.cands = append(g.cands, candidate{group: f.Group})
		g.failures = append(g.failures, errNotYet)
		if _, system := f.Reference.(systemReference); system {
			g.kicks = append(g.kicks, nil)
		} else {
			g.kicks = append(g.kicks, make(chan struct{}, 1))
		}
	}
	var r Reading
	ok := false
	for i := 0; i < 1000/tries && !ok; i++ {
		r, ok = look(g.src)
	}
	if !ok {
		return nil, fmt.Errorf("%w within %v in a thousand tries: give this process a share of a processor", ErrUnreadable, time.Duration(widest))
	}
	g.det.observe(r)
	first := slewing(r.mid(), r.Wall, 0, 0)
	p := &pace{now: first, next: first}
	p.turn.Store(void)
	g.pace.Store(p)
	g.held.Store(&held{state: Unknown})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sampleSystem(r)
	g.settle(r, found{})
	return g, nil
}

var (
	errNotYet = errors.New("not measured yet")
	errSlept  = errors.New("the machine slept during the measurement")
)

func (g *Guard) mono() algo.Mono {
	if g.machine {
		return Mono()
	}
	return g.src.Mono()
}

// Now is guarded wall time, in nanoseconds of the Unix epoch. It takes no lock and
// allocates nothing.
func (g *Guard) Now() algo.Wall {
	now, _ := g.read()
	return now
}

// read makes sure that the pace it used was in force when the monotonic clock was read,
// which is what the exchange between readers and writer rests on.
func (g *Guard) read() (algo.Wall, algo.Mono) {
	for {
		p := g.pace.Load()
		m := g.mono()
		if g.pace.Load() == p {
			return algo.Wall(p.at(m)), m
		}
	}
}

// At is guarded time at an earlier or later instant of the monotonic clock, by the pace now
// in force. Unlike Now it may go back when the pace changes.
func (g *Guard) At(m algo.Mono) algo.Wall {
	cur, _ := g.pace.Load().current(g.mono())
	return algo.Wall(cur.at(m))
}

// Bound is where the true time lies at this moment, if the references keep their promises.
// It always contains Now. Time that was lost in a suspend is missing until a check has seen
// it.
func (g *Guard) Bound() Interval {
	h := g.held.Load()
	now, m := g.read()
	return h.interval(m, int64(now))
}

// Epoch grows each time that guarded time was rebased. Whoever keeps windows of wall time
// carries the larger of two counts over when it changes, so that nothing opens for free.
func (g *Guard) Epoch() uint32 { return g.epoch.Load() }

type subscriber struct{ f func(Event) }

// Subscribe has f called for every event, one at a time, in order, by the goroutine that
// checks the clocks: f must not block, nor call Check. The returned function ends it.
func (g *Guard) Subscribe(f func(Event)) (cancel func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := &subscriber{f}
	g.subs = append(g.subs, s)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.subs = slices.DeleteFunc(g.subs, func(o *subscriber) bool { return o == s })
	}
}

// Learn gives the guard a measurement of the reference with that name, or the reason why
// there is none. Run does so by itself; it is for programs that measure on their own. A
// measurement from before the last suspend is refused: part of it may be missing. So is one
// that no clock can have given, see Sample.
func (g *Guard) Learn(name string, s Sample, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, f := range g.cfg.References {
		if f.Reference.Name() == name {
			g.learn(i, s, err)
		}
	}
}

func (g *Guard) learn(i int, s Sample, err error) {
	if err == nil {
		err = s.sane(g.mono())
	}
	if err == nil && g.slept != 0 && s.At-algo.Mono(s.RTT/2) <= g.slept {
		err = errSlept
	}
	g.failures[i] = err
	switch {
	case err == nil:
		g.cands[i].sample, g.cands[i].known = s, true
	case errors.Is(err, ErrNoBound):
		g.cands[i].known = false // what it said before no longer holds either
	}
}

func (g *Guard) sampleSystem(r Reading) {
	for i, kick := range g.kicks {
		if kick == nil {
			s, err := systemSample(r, kernelOf(g.src))
			g.learn(i, s, err)
		}
	}
}
