package algo

// The lease of a rolling window. Time is cut into buckets of width q, B to a window. A
// unit used in bucket j is free again from the start of bucket j+B+1 on, at least one
// window later. A unit that is handed out is charged to its expiry, the last bucket it
// may be used in, until its holder says where it was used; so what is free errs on the
// safe side. What becomes free soon is handed out ahead, to be used when it does.
//
// The promise: at no bucket k is more than Count charged to k-B or later, less what may
// not be used before a bucket after k. Every interval of one window that ends in bucket k
// begins in k-B or later, so it holds at most Count.

// RollingLease is the record: by bucket, the units charged to it (used there, or able to
// be used until there) and the units that may not be used before it. The zero record is
// fresh. The sums spare a sync looking at every bucket: it looks as far as the horizon and
// the furthest promise.
type RollingLease struct {
	At       Store
	Charged  []int64 // buckets J-B to J+B, J being the one of At: bucket j at j mod (2B+1)
	From     []int64 // buckets J+1 to J+B, likewise
	Sum      int64   // of Charged
	Promised int64   // the sum of From
	Furthest int64   // the last bucket in From, or one that has passed
	Demand   Demand
	Ver      int64 // see missing
}

func (l *Lease) place(bucket int64) int64 {
	size := 2*l.Buckets + 1
	return (bucket%size + size) % size
}

// advance makes now the instant of the record, forgetting what counts no more.
func (l *Lease) advance(r *RollingLease, now Store) (bucket int64) {
	size := 2*l.Buckets + 1
	if r.Charged == nil {
		r.Charged, r.From = make([]int64, size), make([]int64, size)
	}
	was, is := int64(r.At)/int64(l.Width), int64(now)/int64(l.Width)
	for j := max(was, is-size) + 1; j <= is; j++ {
		old, due := l.place(j+l.Buckets), l.place(j) // the first held bucket j-B-1
		r.Sum -= r.Charged[old]
		r.Promised -= r.From[due]
		r.Charged[old], r.From[due] = 0, 0
	}
	r.At = now
	return is
}

// SyncRolling answers an ask about a rolling window. If it grants nothing, Free says
// when there may be something again.
func (l *Lease) SyncRolling(r *RollingLease, now Store, a *Ask) Grant {
	fresh := r.At == 0
	now = max(now, r.At)
	J := l.advance(r, now)
	if a.Exact > 0 {
		return l.exact(r, J, a)
	}
	lost := missing(&r.Ver, fresh, a)
	if lost > 0 && l.Fence {
		last := J + min(max(1, a.Horizon), l.Buckets)
		l.charge(r, last, max(0, l.Count-r.Charged[l.place(last)]))
	}
	l.settle(r, J, a)
	n, sum := l.register(&r.Demand, now, a)
	s := split{n: n, rate: min(max(0, a.Rate), 10*l.Count), sum: sum, last: r.Demand.LastNumber}
	free, release := l.outlook(r, J, min(max(1, a.Horizon), l.Buckets))
	x, carry := l.parts(a, J, free, release, s)
	g := Grant{At: now, Epoch: r.Demand.Epoch, Instances: n, Share: millionths(s.rate, sum), Carry: carry, Lost: lost}
	expiry, given := J+int64(len(x))-1, int64(0)
	for k, units := range x {
		if units <= 0 {
			continue
		}
		g.Lots = append(g.Lots, Lot{From: J + int64(k), Units: units, Expiry: expiry})
		given += units
		if k > 0 {
			r.From[l.place(J+int64(k))] += units
			r.Promised += units
			r.Furthest = max(r.Furthest, J+int64(k))
		}
	}
	l.charge(r, expiry, given)
	g.Ver = lent(&r.Ver, given)
	g.Upto, g.Available = expiry, max(0, free[0]-x[0])
	if g.Available == 0 {
		g.Free = l.freeAfter(r, J, free, given)
	}
	return g
}

// exact decides a request at once: its units are used in this bucket.
func (l *Lease) exact(r *RollingLease, J int64, a *Ask) Grant {
	free, _ := l.outlook(r, J, 1)
	g, given := Grant{At: r.At}, int64(0)
	if g.Admitted = a.Exact <= free[0]; g.Admitted {
		given = a.Exact
		l.charge(r, J, given)
	}
	if g.Available = max(0, free[0]-given); g.Available == 0 {
		g.Free = l.freeAfter(r, J, free, given)
	}
	return g
}

// settle moves charges from where units could have been used last to where they were, or
// takes them back. A store whose clock went back may be asked to take back what is not to
// be used before a bucket still to come; it leaves the charges where they are.
func (l *Lease) settle(r *RollingLease, J int64, a *Ask) {
	if r.At < a.Past {
		return
	}
	for _, m := range a.Settle {
		if m.Bucket >= J-l.Buckets && m.Bucket <= J+l.Buckets {
			l.charge(r, m.Bucket, -min(max(0, m.Units), r.Charged[l.place(m.Bucket)]))
		}
	}
	for _, m := range a.Used {
		if m.Bucket >= J-l.Buckets && m.Bucket <= J+l.Buckets {
			l.charge(r, m.Bucket, min(max(0, m.Units), MaxLease-r.Charged[l.place(m.Bucket)]))
		}
	}
}

func (l *Lease) charge(r *RollingLease, bucket, units int64) {
	r.Charged[l.place(bucket)] += units
	r.Sum += units
}

// outlook is, for each bucket from J on, what may be granted for use from there on
// without breaking a promise made to anyone, and up to the horizon what is released
// there. Beyond the furthest promise more can only become free.
func (l *Lease) outlook(r *RollingLease, J, horizon int64) (free, release []int64) {
	far := max(horizon, r.Furthest-J)
	used, later := r.Sum, r.Promised
	free, release = make([]int64, far+1), make([]int64, horizon+1)
	free[0] = l.Count - used + later
	for k := int64(1); k <= far; k++ {
		c := r.Charged[l.place(J+k-l.Buckets-1)]
		if k <= horizon {
			release[k] = c
		}
		used -= c
		later -= r.From[l.place(J+k)]
		free[k] = l.Count - used + later
	}
	for k := far - 1; k >= 0; k-- {
		free[k] = min(free[k], free[k+1])
	}
	return free, release
}

// parts divides a need over the buckets up to the horizon, first from this holder's part
// of what is released there, and only where that comes too late from what is free now.
func (l *Lease) parts(a *Ask, J int64, free, release []int64, s split) (x []int64, carry int64) {
	H := int64(len(release)) - 1
	want := min(max(0, a.Want), l.Count)
	base := min(max(a.Base, -l.Count), want)
	need := func(k int64) int64 { return base + (want-base)*k/H }
	x, carry = make([]int64, H+1), min(max(0, a.Carry), 999)
	owed, ahead, short := carry, int64(0), need(0)
	released := int64(0)
	for k := int64(1); k <= H; k++ {
		if J+k > a.Upto && want > 0 {
			released += release[k]
			mine := thousandths(min(released, MaxLease), s.rate, max(1, s.sum)) + owed
			carry = mine % 1000
			if c := min(mine/1000, need(k), free[k]); c > ahead {
				x[k], ahead = c-ahead, c
			}
		}
		short = max(short, need(k)-ahead)
	}
	if s.sum > 0 { // an ample stock covers the whole need at once
		short = max(short, min(want, portion(max(0, free[0]), s.rate, s.sum)*3/4))
	}
	x[0] = l.quota(short, free[0], a.Have, s)
	sum := x[0]
	for k := int64(1); k <= H; k++ {
		most := min(free[k], max(need(k), x[0]))
		x[k] = min(x[k], max(0, most-sum))
		sum += x[k]
	}
	return x, carry
}

// freeAfter is the first bucket at which something is free that was not promised.
func (l *Lease) freeAfter(r *RollingLease, J int64, free []int64, given int64) Store {
	k := int64(1)
	for k < int64(len(free)) && free[k]-given <= 0 {
		k++
	}
	last := free[len(free)-1] - given
	for ; last <= 0 && k <= l.Buckets; k++ {
		if last += r.Charged[l.place(J+k-l.Buckets-1)]; last > 0 {
			break
		}
	}
	return Store(J+k) * Store(l.Width)
}
