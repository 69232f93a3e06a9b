package algo

// token_bucket and gcra. The state is a backlog: At is the instant it speaks for, A the
// credits still to drain, where one unit is p credits and each tick drains n. A bucket's
// level is full-A; GCRA's theoretical arrival time is At + A/n ticks. A backlog above
// full is debt.

func (p *Plan) compileBucket(q Params) error {
	p.count = q.Burst
	if p.count == 0 {
		p.count = q.Count
	}
	field := "burst"
	if err := p.compileRate(p.count, 0, field); err != nil {
		return err
	}
	p.full = p.count * p.p
	return nil
}

// grid rounds an instant down to the plan's tick.
func (p *Plan) grid(t Store) Store {
	if p.tick == 1 {
		return t
	}
	return t - t%Store(p.tick)
}

// backlog is the state's backlog carried forward to now, and the grid instant it then
// speaks for.
func (p *Plan) backlog(s *State, now Store) (at Store, credits int64) {
	if s.A == 0 {
		return max(s.At, p.grid(now)), 0
	}
	elapsed := int64(max(0, now-s.At))
	if p.tick != 1 {
		elapsed /= int64(p.tick)
	}
	at = s.At + Store(elapsed)*Store(p.tick)
	if elapsed > p.horizon {
		return at, 0
	}
	return at, max(0, s.A-elapsed*p.n)
}

// drain is the wait from now until credits have drained from a backlog that speaks for
// at: the first grid instant at which that much is gone. Not above zero means no wait.
func (p *Plan) drain(at, now Store, credits int64) Span {
	if credits <= 0 {
		return 0
	}
	ticks := ceilDiv(credits, p.n)
	if ticks > int64(MaxInstant)/int64(p.tick) {
		return Never
	}
	return Span(at-now) + Span(ticks)*p.tick
}

// beyond is how much longer a wait is than patience.
func beyond(wait, patience Span) Span {
	if wait == Never {
		return Never
	}
	return max(0, wait-patience)
}

// Draw is Take without patience from a bucket whose state is s, in its shortest form: it
// returns the instant and the backlog of the state right after, and leaves s alone.
func (p *Plan) Draw(s *State, now Store, cost int64) (at Store, backlog int64, admitted bool) {
	at, a := p.backlog(s, now)
	if cost > p.count || a > p.full-cost*p.p && cost > 0 {
		return at, a, false
	}
	return at, a + cost*p.p, true
}

// Drawn is the verdict of what Draw answered; now is not before the state's own instant.
func (p *Plan) Drawn(now Store, cost, backlog int64, admitted bool) Verdict {
	return Verdict{Admitted: admitted, plan: p, now: now, units: cost, at: p.grid(now), a: backlog}
}

func (p *Plan) takeBucket(s *State, now Store, cost int64, patience Span) Verdict {
	at, a, admitted := p.Draw(s, now, cost)
	v := Verdict{Admitted: admitted, plan: p, now: max(now, s.At), units: cost, at: at, a: a}
	if !admitted {
		v.b = int64(patience)
		if patience == 0 || cost > p.count {
			return v
		}
		need := cost * p.p
		wait := p.drain(at, v.now, a-(p.full-need))
		if wait > patience || wait == Never || a > MaxInt-need {
			return v
		}
		v.Admitted, v.delay, v.a, v.b = true, wait, a+need, 0
	}
	if cost > 0 {
		s.At, s.A = at, v.a
	}
	return v
}

// retryBucket is the wait of a refusal. Most callers do without, so takeBucket spares
// them the division.
func (p *Plan) retryBucket(v *Verdict) Span {
	need := v.units * p.p
	wait := p.drain(v.at, v.now, v.a-(p.full-need))
	deep := v.a - (MaxInt - need) // a backlog stays below 2^53
	return max(beyond(wait, Span(v.b)), p.drain(v.at, v.now, deep))
}

func (p *Plan) chargeBucket(s *State, now Store, units int64) Verdict {
	at, a := p.backlog(s, now)
	fit := min(units, (MaxInt-a)/p.p)
	if fit > 0 {
		s.At, s.A = at, a+fit*p.p
	}
	return Verdict{Admitted: true, plan: p, now: max(now, s.At), units: fit, at: at, a: a + fit*p.p}
}

func (p *Plan) refundBucket(s *State, now Store, r Receipt) Verdict {
	at, a := p.backlog(s, now)
	give := int64(0)
	since := int64(0)
	if from := p.grid(r.At); at > from {
		since = int64(at-from) / int64(p.tick)
	}
	if since <= p.horizon && r.Units > 0 && r.Units <= MaxInt/p.p {
		give = max(0, r.Units*p.p-since*p.n)
	}
	give = min(give, a)
	if give > 0 {
		s.At, s.A = at, a-give
	}
	return Verdict{Admitted: true, plan: p, now: max(now, s.At), units: give / p.p, at: at, a: a - give}
}
