package algomodel

import (
	"slices"

	"github.com/escapement-io/escapement/algo"
)

// rollingLog is rolling_window up to algo.LogMax: the instant of every unit, oldest
// first, the newest Count of them.
type rollingLog struct {
	q     algo.Params
	at    algo.Store
	units []algo.Store
}

func (m *rollingLog) instant(now algo.Store) algo.Store { return max(now, m.at) }

// live is what counts at now.
func (m *rollingLog) live(now algo.Store) []algo.Store {
	for i, t := range m.units {
		if now < t+algo.Store(m.q.Per) {
			return m.units[i:]
		}
	}
	return nil
}

func (m *rollingLog) fill(a *Answer, now algo.Store) {
	live := m.live(now)
	a.Remaining, a.ResetAfter = max(0, m.q.Count-int64(len(live))), 0
	if len(live) > 0 {
		a.ResetAfter = algo.Span(live[len(live)-1]-now) + m.q.Per
	}
}

func (m *rollingLog) trim() {
	if over := int64(len(m.units)) - m.q.Count; over > 0 {
		m.units = m.units[over:]
	}
}

func (m *rollingLog) record(now, stamp algo.Store, units int64) {
	m.units = slices.Clone(m.live(now))
	for range min(units, m.q.Count) {
		m.units = append(m.units, stamp)
	}
	slices.Sort(m.units)
	m.trim()
	m.at = now
}

func (m *rollingLog) reserve(a *Answer, now algo.Store, cost int64, _ algo.Span) {
	live := m.live(now)
	over := int64(len(live)) + cost - m.q.Count
	switch {
	case cost > m.q.Count:
		a.RetryAfter = algo.Never
	case over > 0:
		a.RetryAfter = algo.Span(live[over-1]-now) + m.q.Per
	default:
		a.Admitted = true
		m.record(now, now, cost)
	}
}

func (m *rollingLog) charge(now algo.Store, units int64, stamp algo.Store) (int64, algo.Store) {
	if stamp+algo.Store(m.q.Per) <= now {
		return 0, stamp
	}
	m.record(now, stamp, units)
	return units, stamp
}

func (m *rollingLog) refund(now algo.Store, r algo.Receipt) int64 {
	if r.At+algo.Store(m.q.Per) <= now {
		return 0
	}
	given := int64(0)
	m.units = slices.DeleteFunc(slices.Clone(m.units), func(t algo.Store) bool {
		hit := t == r.At && given < r.Units
		if hit {
			given++
		}
		return hit
	})
	return given
}

func (m *rollingLog) rebase(now algo.Store) {
	by := m.at - now
	moved := make([]algo.Store, len(m.units))
	for i, t := range m.units {
		moved[i] = max(0, t-by)
	}
	m.units, m.at = moved, now
}

func (m *rollingLog) used(now algo.Store) int64 { return int64(len(m.live(now))) }

func (m *rollingLog) clone() judge {
	c := *m
	c.units = slices.Clone(m.units)
	return &c
}

// ring is rolling_window above algo.LogMax: units per bucket of time, by number. A
// bucket counts until the whole of it is a period old, and so all claims of any span
// of one period are among those that count at its end.
type ring struct {
	q      algo.Params
	width  int64
	behind int64 // how many buckets before the newest still count
	newest int64
	counts map[int64]int64
}

// maxBucket is the most that 32 bits count.
const maxBucket = 1<<32 - 1

func newRing(q algo.Params) *ring {
	b := int64(q.Buckets)
	if b == 0 && q.Per > 1_000_000 {
		b = 128
	} else if b == 0 {
		b = 256
	}
	width := (int64(q.Per) + b - 1) / b
	return &ring{q: q, width: width, behind: (int64(q.Per) + width - 1) / width, counts: map[int64]int64{}}
}

func (m *ring) bucket(t algo.Store) int64 { return int64(t) / m.width }

func (m *ring) instant(now algo.Store) algo.Store { return max(now, algo.Store(m.newest*m.width)) }

func (m *ring) live(k int64, now algo.Store) bool { return k >= m.bucket(now)-m.behind }

// gone is the instant at which bucket k counts no more.
func (m *ring) gone(k int64) algo.Store { return algo.Store((k + m.behind + 1) * m.width) }

func (m *ring) total(now algo.Store) (n int64, newest int64) {
	newest = -1 << 62
	for k, c := range m.counts {
		if m.live(k, now) && c > 0 {
			n, newest = n+c, max(newest, k)
		}
	}
	return n, newest
}

func (m *ring) fill(a *Answer, now algo.Store) {
	n, newest := m.total(now)
	a.Remaining, a.ResetAfter = max(0, m.q.Count-n), 0
	if n > 0 {
		a.ResetAfter = algo.Span(m.gone(newest) - now)
	}
}

func (m *ring) move(now algo.Store, k, units int64) {
	m.newest = m.bucket(now)
	for k := range m.counts {
		if !m.live(k, now) {
			delete(m.counts, k)
		}
	}
	m.counts[k] += units
}

func (m *ring) reserve(a *Answer, now algo.Store, cost int64, _ algo.Span) {
	n, _ := m.total(now)
	if cost > m.q.Count {
		a.RetryAfter = algo.Never
		return
	}
	if n+cost <= m.q.Count {
		a.Admitted = true
		m.move(now, m.bucket(now), cost)
		return
	}
	for k := m.bucket(now) - m.behind; n+cost > m.q.Count; k++ {
		n -= m.counts[k]
		a.RetryAfter = algo.Span(m.gone(k) - now)
	}
}

func (m *ring) charge(now algo.Store, units int64, stamp algo.Store) (int64, algo.Store) {
	k := m.bucket(stamp)
	if !m.live(k, now) {
		return 0, stamp
	}
	fit := min(units, maxBucket-m.counts[k])
	if fit > 0 {
		m.move(now, k, fit)
	}
	return fit, stamp
}

func (m *ring) refund(now algo.Store, r algo.Receipt) int64 {
	k := m.bucket(r.At)
	if !m.live(k, now) {
		return 0
	}
	give := min(r.Units, m.counts[k])
	if give > 0 {
		m.move(now, k, -give)
	}
	return give
}

func (m *ring) rebase(now algo.Store) {
	by := m.newest - m.bucket(now)
	moved := make(map[int64]int64, len(m.counts))
	for k, c := range m.counts {
		moved[k-by] = c
	}
	m.counts, m.newest = moved, m.bucket(now)
}

func (m *ring) used(now algo.Store) int64 {
	n, _ := m.total(now)
	return n
}

func (m *ring) clone() judge {
	c := *m
	c.counts = make(map[int64]int64, len(m.counts))
	for k, n := range m.counts {
		c.counts[k] = n
	}
	return &c
}
