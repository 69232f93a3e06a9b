package algo

// State is one record for every algorithm, so that every store has one codec. The zero
// State is fresh: nothing was ever taken. What the words mean is documented in the file
// of each algorithm; none is negative or above MaxInt.
type State struct {
	At   Store // the instant the record speaks for; a multiple of the plan's tick
	A, B int64
	Ring []uint32 // rolling_window only: Plan.Slots long, changed in place
}

// Slots is how many 32-bit words of Ring the plan needs: zero except for rolling_window.
func (p *Plan) Slots() int {
	switch {
	case p.algorithm != RollingWindow:
		return 0
	case p.buckets == 0:
		return 2 * int(p.count)
	default:
		return int(p.buckets) + 1
	}
}

// Receipt says what was taken and when, so that it can be given back.
type Receipt struct {
	At    Store // when the units count as taken: for a reservation, when it may act
	Units int64
}

// Take judges cost units at now and, if it admits, takes them. A refusal changes
// nothing, and so does cost 0. cost must not be negative. An instant before the state's
// own counts as the state's own: time that goes back takes and gives nothing.
func (p *Plan) Take(s *State, now Store, cost int64) Verdict {
	return p.take(s, now, cost, unasked)
}

// unasked is the patience of a Take: none, but pacing waits as long as the plan allows.
const unasked Span = -1

// Reserve is Take for a caller who waits at most patience: a bucket also admits if the
// units will be there by then, takes them now, and Verdict.Delay says how long to wait;
// pacing refuses a turn that is further away. Window algorithms cannot lend from a later
// window; they answer as Take does.
func (p *Plan) Reserve(s *State, now Store, cost int64, patience Span) Verdict {
	return p.take(s, now, cost, max(0, patience))
}

func (p *Plan) take(s *State, now Store, cost int64, patience Span) Verdict {
	switch p.algorithm {
	case TokenBucket, GCRA:
		return p.takeBucket(s, now, cost, max(0, patience))
	case Pacing:
		if patience == unasked {
			patience = Never
		}
		return p.takePacing(s, now, cost, patience)
	case FixedWindow:
		return p.takeFixed(s, now, cost)
	case SlidingWindow:
		return p.takeSliding(s, now, cost)
	case RollingWindow:
		return p.takeRolling(s, now, cost)
	}
	return Verdict{plan: p, now: now}
}

// Peek answers whether Take would admit, and changes nothing: Remaining and ResetAfter
// speak of the state as it is.
func (p *Plan) Peek(s *State, now Store, cost int64) Verdict {
	if p.algorithm == RollingWindow {
		v := p.peekRolling(s, now, cost)
		v.none = true
		return v
	}
	t := *s
	v := p.Take(&t, now, cost)
	if v.Admitted && cost > 0 {
		t = *s
		delay := v.delay
		v = p.Take(&t, now, 0)
		v.units, v.delay = cost, delay
	}
	v.none = true
	return v
}

// TakeUpTo takes as much of most as there is now, possibly nothing; Verdict.Units says
// how much. It is never a refusal.
func (p *Plan) TakeUpTo(s *State, now Store, most int64) Verdict {
	have := p.Peek(s, now, 0)
	v := p.Take(s, now, min(most, have.Remaining()))
	v.Admitted = true
	return v
}

// Charge records units that were already spent, whatever is left, possibly into debt:
// later claims are refused until it is paid. stamp is the At of an earlier answer that
// says when they were spent, or zero for now: units of a window that is closed are
// dropped. What does not fit below 2^53 is dropped too; Verdict.Units says how much was
// recorded.
func (p *Plan) Charge(s *State, now Store, units int64, stamp Store) Verdict {
	now = max(now, s.At)
	if stamp == 0 || stamp > now {
		stamp = now
	}
	if units == 0 {
		return p.Peek(s, now, 0)
	}
	switch p.algorithm {
	case TokenBucket, GCRA, Pacing:
		return p.chargeBucket(s, now, units)
	case FixedWindow:
		return p.chargeFixed(s, now, units, stamp)
	case SlidingWindow:
		return p.chargeSliding(s, now, units, stamp)
	case RollingWindow:
		return p.chargeRolling(s, now, units, stamp)
	}
	return Verdict{plan: p, now: now}
}

// Refund gives back what a receipt says was taken, as far as time has not given it back
// already: a window that is closed returns nothing, a bucket returns what was taken
// less what has refilled since. Never above capacity.
func (p *Plan) Refund(s *State, now Store, r Receipt) Verdict {
	if r.Units <= 0 {
		return p.Peek(s, now, 0)
	}
	v := Verdict{plan: p, now: now}
	switch p.algorithm {
	case TokenBucket, GCRA, Pacing:
		v = p.refundBucket(s, now, r)
	case FixedWindow:
		v = p.refundFixed(s, now, r)
	case SlidingWindow:
		v = p.refundSliding(s, now, r)
	case RollingWindow:
		v = p.refundRolling(s, now, r)
	}
	v.none = true
	return v
}

// Fresh reports whether at now the state is as good as new, so that dropping it changes
// no later answer, except where a Charge is dated before now.
func (p *Plan) Fresh(s *State, now Store) bool {
	v := p.Peek(s, now, 0)
	return v.ResetAfter() == 0
}

// rebaseSlack is how far ahead of an unchecked clock a state may lie before the clock,
// and not the state, is taken to be wrong.
const rebaseSlack Store = 2_000_000

// Rebase is for callers whose clock nothing vouches for: if the state lies more than two
// seconds ahead of now, the clock went back, and the state is moved back with it. That
// costs at most one capacity per step; never moving it would refuse for as long as the
// step was. Callers whose instants are bounded never need it.
func (p *Plan) Rebase(s *State, now Store) bool {
	if s.At <= now+rebaseSlack {
		return false
	}
	d := s.At - now
	d += (Store(p.tick) - d%Store(p.tick)) % Store(p.tick)
	switch {
	case p.algorithm == FixedWindow || p.algorithm == SlidingWindow:
		// Windows start on their own grid: the counts move to the window of now.
		s.At, _ = p.window(now)
	case p.algorithm == RollingWindow && p.buckets > 0:
		s.At = p.rebaseRing(s, now)
	case p.algorithm == RollingWindow:
		p.shiftLog(s, d)
		s.At -= d
	default:
		s.At -= d
	}
	return true
}
