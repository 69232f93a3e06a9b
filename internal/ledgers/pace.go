package ledgers

import (
	"math/bits"
	"sync/atomic"

	"github.com/escapement-io/escapement/algo"
)

// The pace of syncs: where in an interval they lie, and how long an interval is.

// manyKeys is from how many keys on their ticks are spread over an interval. Fewer share
// one phase, and so the calls.
const manyKeys = 1024

// phase is where in its interval a key ticks. There are as few phases as fill calls.
func (s *Store[L, M, R, P]) phase(interval algo.Span, hash uint64) algo.Mono {
	long := algo.Mono(interval) * 1000
	slots := s.slots.Load()
	slot := algo.Mono(int64(hash>>40) * slots >> 24)
	return (s.start(interval) + slot*long/algo.Mono(slots)) % long
}

// start is the phase of this instance.
func (s *Store[L, M, R, P]) start(interval algo.Span) algo.Mono {
	long := algo.Mono(interval) * 1000
	if s.cfg.Phase == nil || !s.lined.Load() {
		h := uint64(s.cfg.Instance) * 0x9e3779b97f4a7c15
		return algo.Mono(h>>11) % long
	}
	at := (algo.Mono(*s.cfg.Phase) - algo.Mono(s.line.Load())) % long
	return (at + long) % long
}

// learn takes in where the store's line is, for a phase that is given on it. Small changes
// are left, lest ticks wander.
func (s *Store[L, M, R, P]) learn(now algo.Mono, e *entry[L]) {
	if s.cfg.Phase == nil {
		return
	}
	at, ok := P(&e.ledger).Line(now)
	if !ok {
		return
	}
	line := int64(at)*1000 - int64(now)
	if d := line - s.line.Load(); !s.lined.Load() || d > lineSlack || d < -lineSlack {
		s.line.Store(line)
		s.lined.Store(true)
	}
}

const lineSlack = 2_000_000

// NextTick is the first instant after now that has a phase.
func NextTick(now, phase, interval algo.Mono) algo.Mono {
	since := (now - phase) % interval
	if since < 0 {
		since += interval
	}
	return now + interval - since
}

const millisecond algo.Mono = 1_000_000

// Pause is how long a ledger does not ask after so many failures in a row: 0 after the first
// one, then 100 ms, then longer, up to 1 s, give or take a quarter: instances whose store
// comes back do not all return at once.
func Pause(failures int, phase algo.Mono) algo.Mono {
	if failures < 2 {
		return 0
	}
	pause := min(100*millisecond<<min(failures-2, 4), 1000*millisecond)
	spread := (uint64(phase)*2654435761 + uint64(failures)*40503) % 500
	return pause/4*3 + pause*algo.Mono(spread)/1000
}

const (
	adjustEvery algo.Mono = 250_000_000
	// budget is the part of a core that syncs may take, in thousandths.
	budget = 100
	// keyCost is what a key in a call costs at least, in nanoseconds: 2.7 µs in a client,
	// and the ledger's part.
	keyCost = 5_000
	// clientCost is the part of it that lies in the client, which is not measured.
	clientCost = 3_000
	// dearest caps what is taken for the cost of a key: on a machine that does not come to
	// it, measuring says little.
	dearest = 20_000
)

// adjust fits phases and intervals to the number of keys: while all keys at their own
// intervals would take more than the budget, intervals stretch, by the same factor as far
// as each may.
func (s *Store[L, M, R, P]) adjust(now algo.Mono) {
	c := &s.clerk
	if now-c.adjusted < adjustEvery {
		return
	}
	c.adjusted = now
	s.slots.Store(phases(s.ticking.Load(), s.slots.Load()))
	cost := s.calls.cost()
	var load int64 // thousandths of a core at the intervals asked for
	list := s.all()
	for _, l := range list {
		load += l.ticking.Load() * cost / l.base.Load()
	}
	for _, l := range list {
		l.stretch(load)
	}
}

// phases is how many phases an interval has for so many keys: a power of two, about as
// many as calls. It changes when it is off by more than half.
func phases(keys, was int64) int64 {
	if keys < manyKeys {
		return 1
	}
	want := keys / CallKeys
	if want >= was && want < 3*was {
		return was
	}
	return 1 << (bits.Len64(uint64(want)) - 1)
}

// stretch sets the interval in force for a load that is spread over the budget.
func (l *limit) stretch(load int64) {
	base := l.base.Load()
	want := base
	if load > budget {
		want = min(l.longest.Load(), (base*load/budget+999)/1000*1000)
		want = max(want, base)
	}
	// It shrinks by and by: keys that pause together are back soon.
	is := l.interval.Load()
	if want > is || want < is-is/8 || want == base {
		l.interval.Store(max(want, is-is/8))
	}
}

// counters are what calls came to.
type counters struct {
	calls, failed        atomic.Int64 // failed: calls of which a reply is not known
	syncs, unknown, busy atomic.Int64 // keys in them; nanoseconds of this package's own work
	lastBusy, lastSyncs  int64        // the clerk's
	perKey               atomic.Int64
}

func (c *counters) end(keys, known int) {
	c.calls.Add(1)
	if known < keys {
		c.failed.Add(1)
	}
	c.syncs.Add(int64(keys))
	c.unknown.Add(int64(keys - known))
}

// cost takes in what was measured lately, and is what a key costs, in nanoseconds: an
// average of that, and the client's part. The clerk asks.
func (c *counters) cost() int64 {
	busy, syncs := c.busy.Load(), c.syncs.Load()
	if n := syncs - c.lastSyncs; n >= CallKeys {
		measured := (busy - c.lastBusy) / n
		c.lastBusy, c.lastSyncs = busy, syncs
		was := c.perKey.Load()
		if was == 0 {
			was = measured
		}
		c.perKey.Store((3*was + measured) / 4)
	}
	return c.reckoned()
}

// reckoned is what a key is taken to cost at present.
func (c *counters) reckoned() int64 {
	return min(dearest, max(keyCost, clientCost+c.perKey.Load()))
}
