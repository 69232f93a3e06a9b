package algo

// FixedLease is the record of a leased fixed window: units charged to the window that
// holds At and, handed out ahead, to the one after it. A unit belongs to one window: it
// is spent or given back there, and worthless later. The zero record is fresh.
type FixedLease struct {
	At          Store // the latest instant seen; time before it counts as it
	Given, Next int64
	Ver         int64 // see missing
	Demand      Demand
}

// SyncFixed answers an ask about fixed windows. An Available of zero means: nothing
// before Free.
func (l *Lease) SyncFixed(r *FixedLease, now Store, a *Ask) Grant {
	fresh := r.At == 0
	now = max(now, r.At)
	w, was := int64(now)/int64(l.Per), int64(r.At)/int64(l.Per)
	switch {
	case w == was+1:
		r.Given, r.Next = r.Next, 0
	case w > was:
		r.Given, r.Next = 0, 0
	}
	r.At = now
	g := Grant{At: now, Window: w, Free: Store(w+1) * Store(l.Per)}
	if a.Exact > 0 {
		if g.Admitted = a.Exact <= l.Count-r.Given; g.Admitted {
			r.Given += a.Exact
		}
		g.Available = max(0, l.Count-r.Given)
		return g
	}
	if g.Lost = missing(&r.Ver, fresh, a); g.Lost > 0 && l.Fence {
		r.Given = max(r.Given, l.Count)
		if g.Free-now <= Store(2*l.Interval) {
			r.Next = max(r.Next, l.Count)
		}
	}
	n, sum := l.register(&r.Demand, now, a)
	s := split{n: n, rate: min(max(0, a.Rate), 10*l.Count), sum: sum, last: r.Demand.LastNumber}
	want, have, next, haveNext := a.Want, a.Have, a.WantNext, a.HaveNext
	switch {
	case a.Window == w:
		r.Given -= min(max(0, a.Return), r.Given)
		r.Given += min(max(0, a.Spent), MaxInt-r.Given)
	case a.Window == w-1 && a.Window >= 0: // sent just before the boundary
		want, have, next, haveNext = next, haveNext, 0, 0
	default:
		have, haveNext = 0, 0
	}
	g.Units = l.quota(want, l.Count-r.Given, have, s)
	r.Given += g.Units
	g.Next = l.quota(next, l.Count-r.Next, haveNext, s)
	r.Next += g.Next
	g.Available, g.Instances, g.Epoch, g.Share = max(0, l.Count-r.Given), n, r.Demand.Epoch, millionths(s.rate, sum)
	g.Ver = lent(&r.Ver, g.Units+g.Next)
	return g
}
