package algo

import "fmt"

// Leases: the store hands out quota in advance, a unit is charged when it is handed out,
// and a holder admits only against what it holds. So the network, the number of holders
// and their clocks decide how much is left unused, and never how much is admitted: what
// the limit promises. lease_fixed.go, lease_rolling.go and lease_bucket.go hold the records.

// Lease is a limit whose quota is handed out in advance.
type Lease struct {
	Count    int64 // units per window; token_bucket, gcra: the burst
	Per      Span  // token_bucket, gcra: in which Count units come back
	Interval Span  // between two syncs of one holder
	Fence    bool  // a record that has lost writes lends nothing while what they promised may be in use
	Width    Span  // of a bucket of time; 0: fixed windows, aligned to the epoch
	Buckets  int64 // in a rolling window; token_bucket, gcra: as far ahead as quota goes

	// token_bucket, gcra: a unit is P credits, and N of them come back each Tick. Of a
	// window they are 0.
	N, P int64
	Tick Span
}

// MaxLease is the largest count that can be leased.
const MaxLease = maxSlot

// MinLeaseInterval is the shortest interval between two syncs.
const MinLeaseInterval Span = 20_000

// Lease makes the lease of a plan. Fixed windows must be aligned to the epoch, since
// the next one is handed out before it begins; a sliding_window is leased as a
// rolling_window, which promises more; a bucket must hold what comes back between two
// syncs. The error is a *LimitError.
func (p *Plan) Lease(interval Span) (Lease, error) {
	l := Lease{Count: p.count, Per: p.per, Interval: interval, Width: p.width, Buckets: p.buckets}
	bad := func(field, problem, hint string) (Lease, error) {
		return Lease{}, &LimitError{Field: field, Problem: problem, Hint: hint}
	}
	longest := p.per
	switch p.algorithm {
	case FixedWindow:
		if p.firstUse || p.calendar != nil {
			return bad("align", "cannot be leased: where the next window begins must be known to all before it does", "use epoch, or no lease")
		}
	case SlidingWindow, RollingWindow:
		longest = p.per / 2
		if l.Buckets == 0 {
			n := int64(128)
			if p.per <= 1_000_000 {
				n = 256
			}
			l.Width = Span(ceilDiv(int64(p.per), n))
			l.Buckets = ceilDiv(int64(p.per), int64(l.Width))
		}
	case TokenBucket, GCRA:
		return p.leaseBucket(interval)
	case Pacing:
		return bad("algorithm", p.algorithm.String()+" cannot be leased", "use token_bucket, fixed_window or rolling_window")
	}
	if p.count > MaxLease {
		return bad("count", "too large to be leased", fmt.Sprintf("use at most %d", int64(MaxLease)))
	}
	if interval < MinLeaseInterval || interval > longest {
		return bad("interval", written(interval)+" between syncs", fmt.Sprintf("use %s to %s", written(MinLeaseInterval), written(longest)))
	}
	return l, nil
}

// Ask is what a holder says to the store: who it is in terms of demand, what it gives
// back, what it used, what it wants. It is sent at most once; if its fate is unknown,
// what it gave back stays given back and what it was granted is never used. All numbers
// are below 2^53 and none but Base is negative.
type Ask struct {
	Exact int64 // not 0: a request that is decided here and now; nothing else counts then

	Rate     int64 // units per window that this holder would use
	Epoch    int64 // of its last registration, -1 for none
	LastRate int64 // what it registered then

	Ver int64 // of the record when it last answered, 0 if that is longer ago than a window

	// Fixed windows.
	Window         int64 // the window the holder is in, -1 if it does not know which
	Return         int64 // units of it given back
	Spent          int64 // units of it that were used without having been granted
	Want, WantNext int64 // units of it and of the next one
	Have, HaveNext int64 // units it was granted already

	// Rolling windows. Want and Have are about the window that ends now.
	Past    Store    // the store is certainly past it; if it is not, its clock went back
	Settle  []Amount // by expiry: units no longer held
	Used    []Amount // by bucket: those of them that were used
	Base    int64    // of Want, what is wanted at once; the rest until Horizon
	Horizon int64    // buckets from now until the next sync will have come
	Upto    int64    // the last bucket whose releases it was promised a part of
	Carry   int64    // thousandths of a unit owed to it by rounding
}

// Amount is a number of units at a bucket.
type Amount struct{ Bucket, Units int64 }

// Lot is units that may be used from the beginning of one bucket to the end of another.
type Lot struct{ From, Units, Expiry int64 }

// Grant is the store's answer to an Ask.
type Grant struct {
	At        Store // the instant of the answer on the store's line
	Held      bool  // At is a bound that the caller vouched for, no reading: it tells nothing about where the line is
	Admitted  bool  // of an exact Ask
	Epoch     int64 // of the registration
	Instances int64 // holders with demand
	Share     int64 // this holder's part of the demand, in millionths
	Available int64 // units nobody holds
	Free      Store // if none: when there may be some again
	Ver       int64 // of the record after this answer, not of an exact Ask
	Lost      int64 // by how much the record was behind the Ver of the ask: it has lost writes

	Window      int64 // fixed: the window of At
	Units, Next int64 // fixed: granted of it and of the next one
	Lots        []Lot // rolling
	Upto, Carry int64 // rolling: for the next Ask
}

// Demand is what the holders of a key registered, without a record of each: their number
// and the sum of their rates in this epoch and in the one before, of two intervals each.
type Demand struct {
	Epoch                int64
	Number, Rate         int64
	LastNumber, LastRate int64
}

// register takes in an ask and returns the number of holders and the sum of their rates,
// from whichever epoch has seen more of them.
func (l *Lease) register(d *Demand, now Store, a *Ask) (n, sum int64) {
	rate := min(max(0, a.Rate), 10*l.Count)
	epoch := int64(now) / int64(2*l.Interval)
	if epoch != d.Epoch {
		d.LastNumber, d.LastRate = 0, 0
		if epoch == d.Epoch+1 {
			d.LastNumber, d.LastRate = d.Number, d.Rate
		}
		d.Epoch, d.Number, d.Rate = epoch, 0, 0
	}
	if a.Epoch == epoch {
		d.Rate = max(0, d.Rate+rate-min(max(0, a.LastRate), 10*l.Count))
	} else if d.Number < maxHolders {
		d.Number++
		d.Rate += rate
	}
	n, sum = d.LastNumber, d.LastRate
	if d.Number >= n {
		n, sum = d.Number, d.Rate
	}
	return max(1, n), max(rate, sum)
}

// maxHolders bounds the sum of their rates below 2^53.
const maxHolders = 100_000

// split is how much there is to have and by what demand it is divided.
type split struct{ n, rate, sum, last int64 }

// quota is the grant rule: up to what the holder's part of the demand entitles it to,
// and beyond that an equal part of what is there, which hands out what nobody claims.
func (l *Lease) quota(want, available, have int64, s split) int64 {
	if want <= 0 || available <= 0 {
		return 0
	}
	entitled := l.Count / s.n // without a history: equal parts
	if s.last > 0 && s.sum > 0 {
		entitled = portion(l.Count, s.rate, s.sum)
	}
	return min(want, available, max(entitled-have, ceilDiv(available, s.n)))
}

// portion is x*rate/sum for x up to MaxLease, rounded down; where the product would not
// stay below 2^53, rate/sum is taken in millionths first.
func portion(x, rate, sum int64) int64 {
	if rate == 0 || x <= MaxInt/rate {
		return x * rate / sum
	}
	return x * millionths(rate, sum) / 1_000_000
}

// thousandths is 1000*portion(x, rate, sum), finer.
func thousandths(x, rate, sum int64) int64 {
	if rate == 0 || 1000*x <= MaxInt/rate {
		return 1000 * x * rate / sum
	}
	return x * millionths(rate, sum) / 1000
}

// millionths is rate/sum in millionths for rate up to sum, rounded down.
func millionths(rate, sum int64) int64 {
	if sum <= 0 {
		return 1_000_000
	}
	for rate > MaxInt/1_000_000 {
		rate, sum = rate/1024, sum/1024
	}
	return rate * 1_000_000 / sum
}
