package algo

// pacing: uniform spacing. The state is the backlog of bucket.go; a caller waits until
// what was admitted before it has drained, at most MaxDelay, and then occupies one
// emission interval per unit.

func (p *Plan) compilePacing(q Params) error {
	if err := p.compileRate(1, q.MaxDelay, "max_delay"); err != nil {
		return err
	}
	p.full = int64(q.MaxDelay/p.tick) * p.n
	p.count = p.full/p.p + 1
	return nil
}

func (p *Plan) takePacing(s *State, now Store, cost int64, patience Span) Verdict {
	at, a := p.backlog(s, now)
	v := Verdict{plan: p, now: max(now, s.At), units: cost, at: at, a: a}
	if cost == 0 {
		v.Admitted = true
		return v
	}
	need, ok := mul(cost, p.p)
	if !ok || need > MaxInt-p.full {
		v.b = int64(Never)
		return v
	}
	wait := p.drain(at, v.now, a)
	if a > p.full || wait > patience {
		retry := p.drain(at, v.now, a-p.full)
		if patience < Never {
			retry = max(retry, beyond(wait, patience))
		}
		v.b = int64(retry)
		return v
	}
	v.Admitted, v.delay = true, wait
	s.At, s.A = at, a+need
	v.a = s.A
	return v
}
