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

func (p *Plan) takeBucket(v *Verdict, s *State, now Store, cost int64, patience Span) {
	at, a := p.backlog(s, now)
	v.plan, v.now, v.units, v.at, v.a = p, max(now, s.At), cost, at, a
	if cost > p.count {
		return
	}
	need := cost * p.p
	if short := a - (p.full - need); short > 0 && cost > 0 {
		if v.b = int64(patience); patience == 0 {
			return
		}
		wait := p.drain(at, v.now, short)
		if wait > patience || wait == Never || a > MaxInt-need {
			return
		}
		v.delay, v.b = wait, 0
	}
	v.Admitted = true
	if cost > 0 {
		s.At, s.A = at, a+need
		v.a = s.A
	}
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
	return Verdict{Admitted: true, Dropped: units - fit, plan: p, now: max(now, s.At), units: fit, at: at, a: a + fit*p.p}
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
