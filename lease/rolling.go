package lease

import (
	"math"
	"slices"

	"github.com/escapement-io/escapement/algo"
)

// rolling holds lots of a rolling window: units that may be used from one bucket to
// another. A unit is spent only when the store's line is certainly past the beginning of
// its lot and not past its expiry, and counts as used in the latest bucket possible.
type rolling struct {
	lots         []algo.Lot
	settle, used []algo.Amount // to be reported: by expiry, by bucket of use
	own          []algo.Amount // used here within the last window
	upto, carry  int64
}

// add counts units at a bucket, up to MaxInt; the latest buckets stand last.
func add(list []algo.Amount, bucket, units int64) []algo.Amount {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Bucket == bucket {
			list[i].Units = min(algo.MaxInt, list[i].Units+units)
			return list
		}
	}
	return append(list, algo.Amount{Bucket: bucket, Units: units})
}

// If too little is, but more will be as soon as it is certain that a bucket has begun,
// crossing is how long that takes.
func (r *rolling) take(p *algo.Lease, lo, hi algo.Store, cost int64) (bucket int64, crossing algo.Mono, ok bool) {
	from, bucket := int64(lo)/int64(p.Width), int64(hi)/int64(p.Width)
	usable := int64(0)
	for i := range r.lots {
		if l := &r.lots[i]; l.From <= from && bucket <= l.Expiry {
			if usable += l.Units; usable >= cost {
				break
			}
		}
	}
	if usable < cost {
		return 0, r.crossing(p, lo, hi, cost-usable), false
	}
	for left := cost; left > 0; {
		first := -1
		for i := range r.lots {
			l := &r.lots[i]
			if l.Units > 0 && l.From <= from && bucket <= l.Expiry && (first < 0 || l.Expiry < r.lots[first].Expiry) {
				first = i
			}
		}
		l := &r.lots[first]
		n := min(left, l.Units)
		l.Units -= n
		left -= n
		r.settle = add(r.settle, l.Expiry, n)
	}
	r.used = add(r.used, bucket, cost)
	r.own = add(r.own, bucket, cost)
	return bucket, 0, true
}

// crossing is how long it takes until it is certain that lots of so many units may be
// used, if the bucket they begin with may be on already.
func (r *rolling) crossing(p *algo.Lease, lo, hi algo.Store, short int64) algo.Mono {
	from, bucket := int64(lo)/int64(p.Width), int64(hi)/int64(p.Width)
	if from == bucket {
		return 0
	}
	soon, last := int64(0), from
	for i := range r.lots {
		if l := &r.lots[i]; l.From > from && l.From <= bucket && bucket <= l.Expiry {
			soon += l.Units
			last = max(last, l.From)
		}
	}
	if soon < short {
		return 0
	}
	return algo.Mono(last*int64(p.Width)-int64(lo)+1) * 1000
}

func (r *rolling) usable(p *algo.Lease, lo, hi algo.Store) (units int64) {
	from, bucket := int64(lo)/int64(p.Width), int64(hi)/int64(p.Width)
	for i := range r.lots {
		if l := &r.lots[i]; l.From <= from && bucket <= l.Expiry {
			units += l.Units
		}
	}
	return units
}

// putBack takes back a use that was not reported yet: the units are then given back.
func (r *rolling) putBack(bucket, units int64) int64 {
	for i := range r.used {
		if r.used[i].Bucket != bucket {
			continue
		}
		units = min(units, r.used[i].Units)
		r.used[i].Units -= units
		for j := range r.own {
			if r.own[j].Bucket == bucket {
				r.own[j].Units -= units
			}
		}
		return units
	}
	return 0
}

func (r *rolling) held() (units int64) {
	for _, l := range r.lots {
		units += l.Units
	}
	return units
}

// expire gives back lots that are over, and forgets own use older than a window. What is
// to be reported is never forgotten by half: the store's line may be behind this one.
func (r *rolling) expire(p *algo.Lease, lo, hi algo.Store) {
	late := int64(hi) / int64(p.Width)
	kept := r.lots[:0]
	for _, l := range r.lots {
		if l.Units > 0 && late > l.Expiry {
			r.settle = add(r.settle, l.Expiry, l.Units)
		} else if l.Units > 0 {
			kept = append(kept, l)
		}
	}
	r.lots = kept
	oldest := int64(lo)/int64(p.Width) - p.Buckets
	r.own = slices.DeleteFunc(r.own, func(a algo.Amount) bool { return a.Bucket < oldest })
}

// fill asks for the need of the time ahead. A tick gives back all that is usable now,
// except what the round trip may use, and asks again: so unused units are renewed, or go
// to whoever needs them.
func (r *rolling) fill(a *algo.Ask, p *algo.Lease, c forecast, at position, tick bool, rtt algo.Mono) {
	width := algo.Mono(p.Width) * 1000
	a.Horizon = int64((c.ahead+width-1)/width) + 1
	a.Past, a.Upto, a.Carry = at.lo, r.upto, r.carry
	needed := c.need(c.ahead) + c.waiting
	a.Base = c.waiting + c.margin()
	from := int64(at.lo) / int64(p.Width)
	keep := int64(0)
	if needed > 0 {
		keep = int64(math.Ceil(float64(c.rate * float64(2*rtt))))
	}
	for i := range r.lots {
		l := &r.lots[i]
		if !at.known || l.From > from {
			continue
		}
		if tick {
			stays := min(keep, l.Units)
			keep -= stays
			if back := l.Units - stays; back > 0 {
				r.settle = add(r.settle, l.Expiry, back)
			}
			l.Units = stays
		}
		a.Base -= l.Units
	}
	held := r.held()
	a.Want = max(0, needed-held)
	a.Base = min(a.Base, a.Want)
	a.Settle, a.Used = r.settle, r.used
	r.settle, r.used = nil, nil
	a.Have = held
	for _, o := range r.own {
		a.Have += o.Units
	}
}

func (r *rolling) absorb(g *algo.Grant) {
	r.lots = append(r.lots, g.Lots...)
	if len(g.Lots) > 0 {
		r.upto = max(r.upto, g.Upto)
	}
	r.carry = g.Carry
}
