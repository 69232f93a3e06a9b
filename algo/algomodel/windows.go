package algomodel

import "github.com/escapement-io/escapement/algo"

// fixed is fixed_window: a count in the window that is open, if one is.
type fixed struct {
	q          algo.Params
	start, end algo.Store // of the last window something was taken in
	count      int64
}

// instant is not before the window that was entered last.
func (m *fixed) instant(now algo.Store) algo.Store { return max(now, m.start) }

func (m *fixed) open(now algo.Store) bool { return m.count > 0 && now < m.end }

func (m *fixed) in(now algo.Store) int64 {
	if m.open(now) {
		return m.count
	}
	return 0
}

// window is the one that something taken at t lies in, if none is open there.
func (m *fixed) window(t algo.Store) (start, end algo.Store) {
	per := algo.Store(m.q.Per)
	switch {
	case m.q.Calendar != nil:
		return m.q.Calendar.Around(t)
	case m.q.FirstUse:
		return t, t + per
	}
	return t / per * per, (t/per + 1) * per
}

func (m *fixed) fill(a *Answer, now algo.Store) {
	a.Remaining, a.ResetAfter = max(0, m.q.Count-m.in(now)), 0
	if m.open(now) {
		a.ResetAfter = algo.Span(m.end - now)
	}
}

func (m *fixed) record(t algo.Store, now algo.Store, units int64) {
	if !m.open(now) {
		m.start, m.end = m.window(t)
		m.count = 0
	}
	m.count += units
}

func (m *fixed) reserve(a *Answer, now algo.Store, cost int64, _ algo.Span) {
	switch {
	case cost > m.q.Count:
		a.RetryAfter = algo.Never
	case m.in(now) > m.q.Count-cost:
		a.RetryAfter = algo.Span(m.end - now)
	default:
		a.Admitted = true
		m.record(now, now, cost)
	}
}

func (m *fixed) charge(now algo.Store, units int64, stamp algo.Store) (int64, algo.Store) {
	if m.open(now) {
		if stamp < m.start {
			return 0, stamp
		}
	} else {
		if m.count > 0 && stamp < m.end {
			return 0, stamp // it lies in the last window or before it, and both are closed
		}
		if _, end := m.window(stamp); stamp < m.start || end <= now {
			return 0, stamp
		}
	}
	fit := min(units, algo.MaxInt-m.in(now))
	if fit > 0 {
		m.record(stamp, now, fit)
	}
	return fit, stamp
}

func (m *fixed) refund(now algo.Store, r algo.Receipt) int64 {
	if !m.open(now) || r.At < m.start {
		return 0
	}
	give := min(r.Units, m.count)
	m.count -= give
	return give
}

// rebase moves the count to the window of now.
func (m *fixed) rebase(now algo.Store) { m.start, m.end = m.window(now) }

func (m *fixed) used(now algo.Store) int64 { return m.in(now) }

func (m *fixed) clone() judge { c := *m; return &c }

// sliding is sliding_window: two counters, the older one weighed by the share of its
// window that still lies within a period of now.
type sliding struct {
	q         algo.Params
	tick      algo.Span
	start     algo.Store
	cur, prev int64
}

func (m *sliding) instant(now algo.Store) algo.Store { return max(now, m.start) }

func (m *sliding) most() int64 { return algo.MaxInt / 2 / int64(m.q.Per/m.tick) }

// at is the model carried forward to now.
func (m *sliding) at(now algo.Store) sliding {
	per := algo.Store(m.q.Per)
	c := *m
	switch start := now / per * per; {
	case start <= m.start:
	case start == m.start+per:
		c.start, c.prev, c.cur = start, m.cur, 0
	default:
		c.start, c.prev, c.cur = start, 0, 0
	}
	return c
}

// estimate is what counts at now, rounded up.
func (m *sliding) estimate(now algo.Store) int64 {
	c := m.at(now)
	rest := int64(c.start) + int64(m.q.Per) - int64(grid(now, m.tick))
	return c.cur + ceil(mul(rat(c.prev), frac(rest, int64(m.q.Per))))
}

func (m *sliding) fill(a *Answer, now algo.Store) {
	a.Remaining = max(0, m.q.Count-m.estimate(now))
	c := m.at(now)
	switch {
	case c.cur > 0:
		a.ResetAfter = algo.Span(c.start-now) + 2*m.q.Per
	case c.prev > 0:
		a.ResetAfter = algo.Span(c.start-now) + m.q.Per
	default:
		a.ResetAfter = 0
	}
}

func (m *sliding) reserve(a *Answer, now algo.Store, cost int64, _ algo.Span) {
	switch {
	case cost > m.q.Count:
		a.RetryAfter = algo.Never
	case m.estimate(now) > m.q.Count-cost:
		a.RetryAfter = m.search(now, cost)
	default:
		a.Admitted = true
		*m = m.at(now)
		m.cur += cost
	}
}

// search halves the time to the end of the next window: what counts never rises while
// nobody asks.
func (m *sliding) search(now algo.Store, cost int64) algo.Span {
	lo, hi := now, m.at(now).start+2*algo.Store(m.q.Per) // refused at lo, free at hi
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		if m.estimate(mid) > m.q.Count-cost {
			lo = mid
		} else {
			hi = mid
		}
	}
	return algo.Span(hi - now)
}

func (m *sliding) charge(now algo.Store, units int64, stamp algo.Store) (int64, algo.Store) {
	c := m.at(now)
	fit := int64(0)
	switch {
	case stamp >= c.start:
		fit = min(units, m.most()-c.cur)
		c.cur += fit
	case stamp >= c.start-algo.Store(m.q.Per):
		fit = min(units, m.most()-c.prev)
		c.prev += fit
	}
	if fit > 0 {
		*m = c
	}
	return fit, stamp
}

func (m *sliding) refund(now algo.Store, r algo.Receipt) int64 {
	c := m.at(now)
	give := int64(0)
	switch {
	case r.At >= c.start:
		give = min(r.Units, c.cur)
		c.cur -= give
	case r.At >= c.start-algo.Store(m.q.Per):
		give = min(r.Units, c.prev)
		c.prev -= give
	}
	if give > 0 {
		*m = c
	}
	return give
}

func (m *sliding) rebase(now algo.Store) {
	m.start = now / algo.Store(m.q.Per) * algo.Store(m.q.Per)
}

func (m *sliding) used(now algo.Store) int64 { return m.estimate(now) }

func (m *sliding) clone() judge { c := *m; return &c }
