package algo

// Numbers are the integers of a plan, for a store that judges elsewhere, such as in a
// script, and must compute the same bits. Those that an algorithm does not use are zero.
type Numbers struct {
	N, P, Full  int64    // bucket, pacing: credits per tick and per unit, capacity in credits
	Tick, Per   Span     //
	Count, Most int64    // capacity in units; windows: the largest counter kept
	Width       Span     // rolling_window: of a bucket, 0 for a log of instants
	Buckets     int64    // rolling_window: in a period
	FirstUse    bool     // fixed_window
	Calendar    Calendar // fixed_window
}

// Numbers are what the plan was compiled to.
func (p *Plan) Numbers() Numbers {
	return Numbers{N: p.n, P: p.p, Full: p.full, Tick: p.tick, Per: p.per, Count: p.count, Most: p.most,
		Width: p.width, Buckets: p.buckets, FirstUse: p.firstUse, Calendar: p.calendar}
}

// Rolled is what a rolling_window that was judged elsewhere reports. Of every other
// algorithm a store reports the state's words, and the verdict is computed from them.
type Rolled struct {
	Admitted bool
	Now      Store // not before the state's own instant
	Units    int64 // asked for or taken
	InUse    int64 // units that count right after the decision
	Wait     Span  // of a refusal whose cost is within the capacity
	Delay    Span  // of a Charge dated before Now: that date minus Now
	None     bool  // nothing was taken: a peek, a refund, a charge of nothing
	Free     Store // when all is free again
}

// Rolled makes the verdict of a rolling_window that was judged elsewhere.
func (p *Plan) Rolled(r Rolled) Verdict {
	return Verdict{Admitted: r.Admitted, plan: p, now: r.Now, units: r.Units, delay: r.Delay, none: r.None, at: r.Free, a: r.InUse, b: int64(r.Wait)}
}

// Told is what is known of a bucket, a fixed_window or a sliding_window that is counted
// elsewhere, when this process decided from what it was told.
type Told struct {
	Admitted  bool
	Now       Store // an instant of the window
	Start     Store // of the window that the units count in; a bucket has none
	Units     int64 // asked for or taken
	Remaining int64 // right after the decision, as far as it is known
	Wait      Span  // of a refusal; zero: until the window ends, or what remains has filled up
	None      bool  // nothing was taken: a peek, a refund
}

// Told makes the verdict of what is counted elsewhere. The receipt of a window names its
// start.
func (p *Plan) Told(t Told) Verdict {
	if p.bucketLike() {
		return Verdict{Admitted: t.Admitted, plan: p, none: t.None, told: !t.Admitted && t.Wait > 0, now: t.Now, units: t.Units,
			at: p.grid(t.Now), a: p.full - max(0, min(t.Remaining, p.count))*p.p, b: int64(t.Wait)}
	}
	return Verdict{Admitted: t.Admitted, plan: p, none: t.None, told: true, now: t.Now, units: t.Units,
		at: t.Start, a: p.count - min(t.Remaining, p.count), b: int64(t.Wait)}
}
