package replay

import (
	"math"
	"math/bits"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// Counted is a limit and which of the trace's keys it counts by.
type Counted struct {
	Plan *escapement.Plan
	Key  int // index into trace.Layout.Keys
}

// limitRun is one limit under way.
type limitRun struct {
	core   *algo.Plan
	name   string
	shadow bool
	key    int
	recs   records
	parts  int // rings per record: the state's, and the one of what was wanted

	credits  int64 // per unit, in the backlog of a bucket
	unknown  bool  // what was wanted is not known: it did not fit a state
	wanted   int64 // the least count or burst that refuses nobody
	admitted int64 // requests
	refused  int64
	units    int64 // refused
	first    Refusal
	last     Refusal
	least    Tightest
	delayed  int64
	longest  algo.Span
}

func newLimitRun(c Counted) *limitRun {
	core := c.Plan.Core()
	l := &limitRun{core: core, name: c.Plan.Limit().Name, shadow: c.Plan.Limit().Shadow, key: c.Key, parts: 1}
	l.least.Remaining = math.MaxInt64
	switch core.Algorithm() {
	case algo.TokenBucket, algo.GCRA:
		var s algo.State
		core.Charge(&s, 1, 1, 0)
		l.credits = s.A
	case algo.RollingWindow:
		l.parts = 2
		// A log holds no more than its count: what was wanted beyond is lost.
		l.unknown = core.Capacity() <= algo.LogMax
		if l.unknown {
			l.parts = 1
		}
	case algo.Pacing:
		l.unknown = true
	case algo.FixedWindow, algo.SlidingWindow:
	}
	l.recs.slots = core.Slots() * l.parts
	return l
}

func (l *limitRun) state(n uint32) algo.State {
	r := l.recs.at(n)
	return algo.State{At: algo.Store(r.at), A: r.a, B: r.b, Ring: l.recs.ring(n, 0, l.parts)}
}

func (l *limitRun) keep(n uint32, s *algo.State) {
	r := l.recs.at(n)
	r.at, r.a, r.b = int64(s.At), s.A, s.B
}

// want records a request as if it had been admitted, and how much that would have taken.
func (l *limitRun) want(n uint32, now algo.Store, cost int64) {
	if l.unknown || cost == 0 {
		return
	}
	r := l.recs.at(n)
	s := algo.State{At: algo.Store(r.wantAt), A: r.wA, B: r.wB, Ring: l.recs.ring(n, l.parts-1, l.parts)}
	v := l.core.Charge(&s, now, cost, 0)
	if v.Units() < cost {
		l.unknown = true
		return
	}
	r.wantAt, r.wA, r.wB = int64(s.At), s.A, s.B
	need := s.A
	switch l.core.Algorithm() {
	case algo.TokenBucket, algo.GCRA:
		need = (s.A-1)/l.credits + 1
	case algo.SlidingWindow:
		need += l.weighted(s.B, int64(max(now, s.At)-s.At))
	case algo.FixedWindow, algo.RollingWindow, algo.Pacing:
	}
	l.wanted = max(l.wanted, need)
}

// weighted is what the previous window's count weighs so long into the current one,
// rounded up.
func (l *limitRun) weighted(count, into int64) int64 {
	if count == 0 {
		return 0
	}
	_, per := l.core.Rate()
	into -= into % int64(l.core.Tick())
	hi, lo := bits.Mul64(uint64(count), uint64(int64(per)-into))
	q, rest := bits.Div64(hi, lo, uint64(per))
	if rest > 0 {
		q++
	}
	return int64(q)
}

// admit counts an admitted request.
func (l *limitRun) admit(n uint32, v *algo.Verdict, at moment) {
	l.recs.at(n).admitted++
	l.admitted++
	if left := v.Remaining(); left < l.least.Remaining {
		l.least = Tightest{Remaining: left, at: at, key: n}
	}
	if d := v.Delay(); d > 0 {
		l.delayed++
		l.longest = max(l.longest, d)
	}
}

// refuse counts a request that the limit had no room for.
func (l *limitRun) refuse(n uint32, cost int64, at moment) {
	l.recs.at(n).refused++
	l.refused++
	l.units += cost
	l.last = Refusal{at: at, key: n}
	if l.refused == 1 {
		l.first = l.last
	}
}
