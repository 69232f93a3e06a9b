package gateway

import "github.com/escapement-io/escapement"

// LimitStatus is what /v1/limits shows of a limit. The numbers are since the start of the
// process.
type LimitStatus struct {
	Name      string `json:"name"`
	Algorithm string `json:"algorithm"`
	Count     int64  `json:"count"`            // as configured
	PerMs     int64  `json:"per_ms,omitempty"` // absent for a calendar window
	Align     string `json:"align,omitempty"`
	Enforced  int64  `json:"enforced"` // capacity, headroom taken off
	Key       string `json:"key"`
	Store     string `json:"store,omitempty"` // absent: the memory of the process
	OnFailure string `json:"on_failure"`
	Shadow    bool   `json:"shadow,omitempty"`
	Variable  bool   `json:"variable,omitempty"` // count or window comes from the request

	// Basis is what decisions rest on at present: fallback if on_failure answered any of the
	// last 10 s, or nothing else can.
	Basis string `json:"basis"`
	// PerSecond is the rate that is enforced, headroom taken off; absent where there is none
	// to speak of: calendar windows, and limits that depend on the request.
	PerSecond float64 `json:"per_second,omitempty"`
	// Bound is how many units of one key can pass above the limit at most on that basis;
	// absent if nothing bounds them, or the number of instances is not known.
	Bound *int64 `json:"bound,omitempty"`
	// Overshoot is the most units above the limit that were seen; absent where this process
	// is not told.
	Overshoot *int64 `json:"overshoot,omitempty"`
	// Lost is how many units the store had handed out at most in writes that it lost, as far as
	// this instance noticed.
	Lost int64 `json:"lost_units,omitempty"`

	Bases           []BasisStatus `json:"bases,omitempty"` // without fallback
	Decided         int64         `json:"decided"`
	DecidedRefused  int64         `json:"decided_refused"` // of these, refused by this limit
	Refused         int64         `json:"refused"`         // requests answered with this limit's refusal
	ShadowRefused   int64         `json:"shadow_refused"`
	Fallback        int64         `json:"fallback"`
	FallbackRefused int64         `json:"fallback_refused"` // of these
	AdmittedUnits   int64         `json:"admitted_units"`   // of requests that passed
	Invalid         int64         `json:"invalid"`
	Delayed         int64         `json:"delayed"`
	Cancelled       int64         `json:"cancelled"`

	// RefusedRatio is the share refused of the decisions of the last 10 s, on any basis, and
	// RefusedRatioMax the highest of the 10 s spans that ended in the last minute. A span of
	// less than 10 decisions counts as 0.
	RefusedRatio    float64 `json:"refused_ratio"`
	RefusedRatioMax float64 `json:"refused_ratio_max"`
}

// BasisStatus is what a store answered on one basis.
type BasisStatus struct {
	Basis         string `json:"basis"`
	Decided       int64  `json:"decided"`
	Refused       int64  `json:"refused"`        // of these
	ShadowRefused int64  `json:"shadow_refused"` // of these
}

// status reads the counters. The state is that of the limit's store.
func (l *limit) status(store *StoreStatus) LimitStatus {
	c, described := l.counts, l.base()
	st := LimitStatus{
		Name: l.Name, Algorithm: described.Algorithm.String(), Count: l.Rate.Count, PerMs: l.Rate.Per.Milliseconds(),
		Key: l.Key.String(), Store: store.Name, OnFailure: l.OnFailure.String(), Shadow: l.Shadow, Variable: l.variants != nil,
		Refused: c.refused.Load(), FallbackRefused: c.closed.Load(), Fallback: c.fallback.Load(), AdmittedUnits: c.units.Load(),
		Invalid: c.invalid.Load(), Delayed: c.delayed.Load(), Cancelled: c.cancelled.Load(),
	}
	if described.Algorithm == escapement.FixedWindow {
		st.Align = l.Align.String()
	}
	if l.plan != nil {
		st.Enforced = l.plan.Core().Capacity()
		if count, per := l.plan.Core().Rate(); per > 0 && l.variants == nil {
			st.PerSecond = float64(count) / (float64(per) / 1e6)
		}
	}
	usual := described.Basis()
	for i := range c.by {
		b := BasisStatus{Basis: escapement.Basis(i).String(), Refused: c.by[i].denied.Load(), ShadowRefused: c.by[i].shadow.Load()}
		b.Decided = c.by[i].decided.Load()
		if b.Decided > 0 || escapement.Basis(i) == usual {
			st.Bases = append(st.Bases, b)
		}
		st.Decided, st.DecidedRefused, st.ShadowRefused = st.Decided+b.Decided, st.DecidedRefused+b.Refused, st.ShadowRefused+b.ShadowRefused
	}
	c.mu.Lock()
	st.RefusedRatio, st.RefusedRatioMax = c.recent.now(), c.recent.highest()
	fellBack := c.recent.fellBack()
	c.mu.Unlock()
	if fellBack || !store.Reached {
		usual = escapement.Fallback
	}
	st.Basis = usual.String()
	if n, ok := l.bound(usual, store.Instances); ok {
		st.Bound = &n
	}
	for i := range store.Sync {
		if n, ok := store.Sync[i].Overshoot[l.Name]; ok {
			st.Overshoot = &n
		}
		st.Lost += store.Sync[i].Lost[l.Name]
	}
	return st
}

// bound is how many units of a key can pass above the limit at most while decisions rest
// on a basis and so many instances share the store; false if nothing bounds them, or it is
// not known how many instances there are (0).
func (l *limit) bound(b escapement.Basis, instances int) (int64, bool) {
	if l.Shadow {
		return 0, false
	}
	switch b {
	case escapement.Exact, escapement.Leased:
		return 0, true
	case escapement.Delayed:
		if instances < 1 || l.plan == nil || l.variants != nil {
			return 0, false
		}
		return int64(instances-1) * l.plan.Core().Capacity(), true
	case escapement.Fallback:
	}
	if l.Sync > 0 && l.SyncMode == escapement.SyncLease && l.OnFailure == escapement.LocalShare {
		return 0, false // the parts of the demand that instances were told come to the limit, but nothing holds them to it
	}
	return 0, l.OnFailure != escapement.Allow && !l.AllowDegradation
}
