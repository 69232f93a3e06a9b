package clock

import (
	"math/bits"
	"sync/atomic"

	"github.com/escapement-io/escapement/algo"
)

const (
	slewOver = 600 * secondNS  // how long a slew should take
	slewMin  = 500_000         // parts per 10^9
	slewMax  = 5_000_000       // parts per 10^9
	slewHalf = -500_000_000    // half speed: a rebase backward
	slewable = secondNS        // a larger error is rebased or held
	part     = uint64(1) << 40 // rates are kept in parts of 2^40
	billion  = 1_000_000_000   // parts per 10^9 make a whole
	far      = algo.Mono(1) << 62
)

// stretch is guarded time as a function of monotonic time:
//
//	g0 + (m - m0) + rate·(min(m, end) - m0)
//
// It increases strictly, since rate is above -1.
type stretch struct {
	m0   algo.Mono
	g0   int64
	ppb  int64  // rate in parts per 10^9, above -10^9
	rate uint64 // its size in parts of 2^40, rounded down
	end  algo.Mono
	full int64 // rate·(end - m0): the correction once the slew is over
}

// slewing makes the stretch that starts at (m0, g0) and takes in err at the rate ppb,
// which has the sign of err. Rate 0 goes on at the pace of the monotonic clock.
func slewing(m0 algo.Mono, g0, err, ppb int64) stretch {
	s := stretch{m0: m0, g0: g0, end: m0}
	if ppb == 0 || err == 0 {
		return s
	}
	hi, lo := bits.Mul64(uint64(abs(err)), billion)
	if hi >= uint64(abs(ppb)) {
		s.end = far
	} else if q, _ := bits.Div64(hi, lo, uint64(abs(ppb))); q >= uint64(far-m0) {
		s.end = far
	} else {
		s.end = m0 + algo.Mono(q)
	}
	s.ppb = ppb
	hi, lo = bits.Mul64(uint64(abs(ppb)), part)
	s.rate, _ = bits.Div64(hi, lo, billion)
	s.full = s.correction(int64(s.end - m0))
	return s
}

func (s *stretch) correction(d int64) int64 {
	hi, lo := bits.Mul64(uint64(d), s.rate)
	c := int64(hi<<24 | lo>>40)
	if s.ppb < 0 {
		return -c
	}
	return c
}

func (s *stretch) at(m algo.Mono) int64 {
	d := int64(m - s.m0)
	switch {
	case d <= 0:
		return s.g0 + d
	case m >= s.end:
		return s.g0 + d + s.full
	}
	return s.g0 + d + s.correction(d)
}

// rest is what remains to be taken in at m.
func (s *stretch) rest(m algo.Mono) int64 {
	if m >= s.end {
		return 0
	}
	return s.full - s.correction(max(0, int64(m-s.m0)))
}

// Turns of a pace.
const (
	offered uint32 = iota
	taken
	void
)

// pace is one stretch in force and one on offer, which takes over at its m0 if it is
// taken. Readers and the writer settle between them, without a lock, whether it is.
//
// Replacing one stretch by a slower one is not safe as such: a reader may still be using the
// old one, beyond the instant at which the new one starts, when the writer is delayed; the
// next reading, on the new one, would go back. So a stretch is offered for an instant
// ahead. If the writer can take the offer it is in force; a reader that gets there before
// voids the offer and stays on the old stretch, and the writer tries again.
type pace struct {
	now  stretch
	next stretch
	turn atomic.Uint32
}

func (p *pace) at(m algo.Mono) int64 {
	if m >= p.next.m0 && p.settled() {
		return p.next.at(m)
	}
	return p.now.at(m)
}

// settled decides the offer, for a reading at or after its instant.
func (p *pace) settled() bool {
	if t := p.turn.Load(); t != offered {
		return t == taken
	}
	p.turn.CompareAndSwap(offered, void)
	return p.turn.Load() == taken
}

// take puts the offer in force, unless a reader has voided it.
func (p *pace) take() bool { return p.turn.CompareAndSwap(offered, taken) }

// current is the stretch in force at m, and whether it is the last: false while an offer
// that was taken is still ahead.
func (p *pace) current(m algo.Mono) (stretch, bool) {
	switch {
	case p.turn.Load() != taken:
		return p.now, true
	case m < p.next.m0:
		return p.now, false
	}
	return p.next, true
}

// slewRate is the rate at which an error is taken in: over ten minutes, within bounds.
func slewRate(err int64) int64 {
	hi, lo := bits.Mul64(uint64(abs(err)), billion)
	ppb := int64(slewMax)
	if hi < uint64(slewOver) {
		q, _ := bits.Div64(hi, lo, uint64(slewOver))
		ppb = int64(min(q, slewMax))
	}
	ppb = max(ppb, slewMin)
	if err < 0 {
		return -ppb
	}
	return ppb
}
