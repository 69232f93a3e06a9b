package algo

import (
	"fmt"
	"math/bits"
)

// The lease of token_bucket and gcra. A unit leaves the bucket when it is handed out, and
// as long as it may still be used it takes up room there: the bucket fills no further than
// that leaves. What comes back soon is handed out ahead, to be used when it does.
//
// The promise is the one of Take: in no span more is used than the burst and what comes
// back in it. Three things are held for it, the level being what a bucket has that fills
// and is drawn from as in Take:
//
//   - level + units out <= burst, at all times;
//   - at no bucket k of time the level that it will have then, less what is promised from
//     k or before on, is below zero;
//   - no more is out than the burst.
//
// Take a span (s, t] and the last grant until t. If it lies in the span, what is used was
// out at s or granted since, and is not promised for later than t: the level at s, what
// came back, and the second line make that at most burst - level and the refill. If it
// lies before, either the bucket filled freely from it to s, which comes to the same, or
// it was as full as the first line lets it be at some time between, so that what was promised
// did not all come back; but no more than the third line allows is there to be used.

// BucketLease is the record. The zero record is fresh.
type BucketLease struct {
	At       Store   // the latest instant seen
	State    State   // as Take has it, but what is out is drained no further: A is at least Sum units
	Charged  []int64 // units out by the last bucket of time they may be used in, J to J+Buckets: j at j mod (Buckets+1)
	From     []int64 // of those what may not be used before a bucket, J+1 to J+Buckets, likewise
	Sum      int64   // of Charged
	Promised int64   // the sum of From
	Furthest int64   // the last bucket in From, or one that has passed
	Ver      int64   // see missing
	Demand   Demand
}

// aheadBuckets is how many buckets quota is handed out for: 8 to 16 intervals.
const aheadBuckets = 256

// leaseBucket makes the lease of a bucket. Its buckets of time are powers of two, so that
// an interval that changes a little keeps them.
func (p *Plan) leaseBucket(interval Span) (Lease, error) {
	bad := func(field, problem, hint string) (Lease, error) {
		return Lease{}, &LimitError{Field: field, Problem: problem, Hint: hint}
	}
	if p.count > MaxLease {
		return bad("burst", "too large to be leased", fmt.Sprintf("use at most %d", int64(MaxLease)))
	}
	l := Lease{Count: p.count, Interval: interval, Buckets: aheadBuckets, N: p.n, P: p.p, Tick: p.tick, Per: Span(MaxInstant)}
	if ticks := ceilDiv(p.full, p.n); ticks <= int64(MaxInstant)/int64(p.tick) {
		l.Per = Span(ticks) * p.tick
	}
	if interval < MinLeaseInterval || interval > Span(MaxInstant) {
		return bad("interval", written(interval)+" between syncs", "use at least "+written(MinLeaseInterval))
	}
	hi, lo := bits.Mul64(uint64(p.rate), uint64(interval))
	if hi >= uint64(p.per) {
		return bad("interval", written(interval)+" between syncs", "use a shorter one")
	}
	back, rest := bits.Div64(hi, lo, uint64(p.per))
	if rest > 0 {
		back++
	}
	if back > uint64(p.count) {
		hint := fmt.Sprintf("use a burst of at least %d, and better of twice that", back)
		if l.Per >= MinLeaseInterval {
			hint += ", or an interval of at most " + written(min(interval-1, l.Per))
		}
		return bad("burst", fmt.Sprintf("%d is less than what comes back between two syncs, which would be lost", p.count), hint)
	}
	l.Width = 1 << (bits.Len64(uint64(interval)/16) - 1)
	return l, nil
}

// IsBucket reports whether the lease is that of token_bucket or gcra.
func (l *Lease) IsBucket() bool { return l.P > 0 }

// Longest is how far the interval of a holder may stretch: a use must be reported before
// its release is promised to others, and quota must reach until the next sync.
func (l *Lease) Longest() Span {
	switch {
	case l.IsBucket():
		return max(l.Interval, min(l.Per, l.Width*aheadBuckets/3))
	case l.Width > 0:
		return l.Per / 2
	}
	return l.Per
}

// Expiry is the last bucket that quota may be used in of which the part until upto is
// promised at bucket J. Of a bucket what is not used comes back only as long as it may be:
// so it may be until the sync after the next one will have come.
func (l *Lease) Expiry(J, upto int64) int64 {
	if l.IsBucket() {
		return J + min(2*(upto-J), l.Buckets)
	}
	return upto
}

// core is the plan that the state is kept by.
func (l *Lease) core() Plan {
	return Plan{algorithm: TokenBucket, tick: l.Tick, n: l.N, p: l.P, count: l.Count, full: l.Count * l.P, horizon: MaxInt / l.N}
}

func (l *Lease) spot(bucket int64) int64 { return bucket % (l.Buckets + 1) }

// fill brings the state to now, no further than what is out leaves.
func (l *Lease) fill(core *Plan, r *BucketLease, now Store) {
	at, a := core.backlog(&r.State, now)
	r.State.At, r.State.A = at, max(a, r.Sum*l.P)
}

// forward makes now the instant of the record. What is out makes room at the end of the
// last bucket it may be used in, and not earlier.
func (l *Lease) forward(core *Plan, r *BucketLease, now Store) (bucket int64) {
	if r.Charged == nil {
		r.Charged, r.From = make([]int64, l.Buckets+1), make([]int64, l.Buckets+1)
	}
	was, is := int64(r.At)/int64(l.Width), int64(now)/int64(l.Width)
	for j := was; j < min(is, was+l.Buckets+1); j++ {
		if over := &r.Charged[l.spot(j)]; *over > 0 {
			l.fill(core, r, Store(j+1)*Store(l.Width))
			r.Sum -= *over
			*over = 0
		}
		due := &r.From[l.spot(j+1)]
		r.Promised -= *due
		*due = 0
	}
	l.fill(core, r, now)
	r.At = now
	return is
}

// SyncBucket answers an ask about a bucket. If it grants nothing, Free says when there may
// be something again.
func (l *Lease) SyncBucket(r *BucketLease, now Store, a *Ask) Grant {
	fresh := r.At == 0
	now = max(now, r.At)
	core := l.core()
	J := l.forward(&core, r, now)
	g := Grant{At: now}
	if a.Exact > 0 {
		free, _ := l.prospect(&core, r, J, 1, l.Count)
		given := int64(0)
		if g.Admitted = a.Exact <= free[0]; g.Admitted {
			given = a.Exact
			r.State.A += given * l.P
		}
		l.rest(&core, r, J, &g, free, given, given)
		return g
	}
	horizon := min(max(1, a.Horizon), l.Buckets)
	expiry, given := l.Expiry(J, J+horizon), int64(0)
	g.Lost = missing(&r.Ver, fresh, a) // a bucket has no fence: it fills up by itself
	l.report(r, J, a)
	n, sum := l.register(&r.Demand, now, a)
	s := split{n: n, rate: min(max(0, a.Rate), 10*l.Count), sum: sum, last: r.Demand.LastNumber}
	free, release := l.prospect(&core, r, J, horizon, l.Count-r.Sum)
	x, carry := l.parts(a, J, free, release, s)
	g.Epoch, g.Instances, g.Share, g.Carry = r.Demand.Epoch, n, millionths(s.rate, sum), carry
	g.Upto = J + horizon
	for k, units := range x {
		if units <= 0 {
			continue
		}
		g.Lots = append(g.Lots, Lot{From: J + int64(k), Units: units, Expiry: expiry})
		given += units
		if k > 0 {
			r.From[l.spot(J+int64(k))] += units
			r.Promised += units
			r.Furthest = max(r.Furthest, J+int64(k))
		}
	}
	r.State.A += given * l.P
	r.Charged[l.spot(expiry)] += given
	r.Sum += given
	g.Ver = lent(&r.Ver, given)
	l.rest(&core, r, J, &g, free, x[0], given)
	return g
}

// report takes in what became of units that were out. A use makes room when the bucket it
// was dated in is over; what was not used goes back into the bucket, unless it was taken as
// used already. A use beyond what was out is charged. A store whose clock went back may be
// told of uses still to come; it leaves them out.
func (l *Lease) report(r *BucketLease, J int64, a *Ask) {
	if r.At < a.Past {
		return
	}
	settled, late := int64(0), int64(0)
	for _, m := range a.Settle {
		units := max(0, m.Units)
		if m.Bucket < J || m.Bucket > J+l.Buckets {
			late = min(MaxInt, late+units)
			continue
		}
		c := &r.Charged[l.spot(m.Bucket)]
		units = min(units, *c)
		*c -= units
		settled += units
	}
	r.Sum -= settled
	for _, m := range a.Used {
		units := max(0, m.Units)
		known := min(units, settled)
		settled -= known
		if m.Bucket >= J && m.Bucket <= J+l.Buckets {
			r.Charged[l.spot(m.Bucket)] += known
			r.Sum += known
		}
		units -= known
		known = min(units, late)
		late -= known
		r.State.A += min(units-known, (MaxInt-r.State.A)/l.P) * l.P
	}
	r.State.A -= settled * l.P
}

// prospect is, for each bucket from J on, what may be granted for use from there on, at
// most most, without breaking a promise made to anyone, and up to the horizon what comes
// back until it begins.
func (l *Lease) prospect(core *Plan, r *BucketLease, J, horizon, most int64) (free, release []int64) {
	far := max(horizon, r.Furthest-J)
	later, before := r.Promised, int64(0)
	free, release = make([]int64, far+1), make([]int64, horizon+1)
	free[0] = min(most, l.whole(core, r, 0, later))
	for k := int64(1); k <= far; k++ {
		back := l.back(core, r, Store(J+k)*Store(l.Width))
		if k <= horizon {
			release[k] = back/l.P - before
			before = back / l.P
		}
		later -= r.From[l.spot(J+k)]
		free[k] = min(most, l.whole(core, r, back, later))
	}
	for k := far - 1; k >= 0; k-- {
		free[k] = min(free[k], free[k+1])
	}
	return free, release
}

// back is the credits that come back until an instant, as far as a backlog may reach.
func (l *Lease) back(core *Plan, r *BucketLease, until Store) int64 {
	ticks := max(0, int64(until-r.State.At)/int64(l.Tick))
	if ticks > core.horizon {
		return MaxInt - core.full
	}
	return min(ticks*l.N, MaxInt-core.full)
}

// whole is the units that the level has with some credits more and what is promised for
// later, of what is out; not below zero.
func (l *Lease) whole(core *Plan, r *BucketLease, credits, later int64) int64 {
	return max(0, core.full-r.State.A+credits+min(later, r.Sum)*l.P) / l.P
}

// rest says what is left: of what there is now, first was granted of it and given in all.
func (l *Lease) rest(core *Plan, r *BucketLease, J int64, g *Grant, free []int64, first, given int64) {
	if g.Available = max(0, free[0]-first); g.Available > 0 {
		return
	}
	for k := int64(1); k < int64(len(free)) && r.Promised > 0; k++ {
		if free[k] > given {
			g.Free = Store(J+k) * Store(l.Width)
			return
		}
	}
	// Later than all promises, when the level has come to one unit; sooner than that if less
	// is used than is out, and later if all that the bucket holds is out.
	g.Free = MaxInstant
	if wait := core.drain(r.State.At, g.At, r.State.A-core.full+l.P); wait != Never {
		g.Free = g.At + Store(wait)
	}
	if r.Promised > 0 {
		g.Free = max(g.Free, Store(J+int64(len(free)))*Store(l.Width))
	}
}
