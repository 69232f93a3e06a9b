package gateway

import (
	"encoding/json"
	"net/http"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/memstore"
	"github.com/escapement-io/escapement/redisstore"
)

// LimitStatus is what /limits shows of a limit. The numbers are since the start of the
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

	Decided         int64 `json:"decided"`
	DecidedRefused  int64 `json:"decided_refused"` // of these, refused by this limit
	Refused         int64 `json:"refused"`         // requests answered with this limit's refusal
	ShadowRefused   int64 `json:"shadow_refused"`
	Fallback        int64 `json:"fallback"`
	FallbackRefused int64 `json:"fallback_refused"` // of these
	Invalid         int64 `json:"invalid"`
	Delayed         int64 `json:"delayed"`
	Cancelled       int64 `json:"cancelled"`
}

// Status is what /limits shows.
type Status struct {
	Limits        []LimitStatus `json:"limits"`
	Held          int64         `json:"held"` // requests waiting for their turn
	ReloadsOK     int64         `json:"reloads_ok"`
	ReloadsFailed int64         `json:"reloads_failed"`
	Memory        *MemoryStatus `json:"memory,omitempty"` // absent if the store is not this process's memory
	Stores        []StoreStatus `json:"stores,omitempty"`
}

// MemoryStatus is what /limits shows of a store in memory, over all limits.
type MemoryStatus struct {
	Keys    int64  `json:"keys"`
	MaxKeys int64  `json:"max_keys"`
	Bytes   int64  `json:"bytes"`
	Refused uint64 `json:"refused"` // claims for unknown keys that met the cap
	Dropped uint64 `json:"dropped"` // records that were as good as new
	Adopted uint64 `json:"adopted"` // records brought under a changed limit
}

// StoreStatus is what /limits shows of a shared store.
type StoreStatus struct {
	Name      string               `json:"name"`
	At        string               `json:"at"`
	Reached   bool                 `json:"reached"`             // it was opened; whether it answers now, the breakers say
	Instances int                  `json:"instances,omitempty"` // absent: not known
	Calls     CallCounts           `json:"calls"`
	State     *redisstore.Snapshot `json:"state,omitempty"` // absent until it is reached
}

func (s *shared) status() StoreStatus {
	st := StoreStatus{Name: s.spec.Name, At: s.spec.String(), Instances: s.instances(), Calls: s.calls.counts()}
	if store := s.store.Load(); store != nil {
		snap := store.Snapshot()
		st.Reached, st.State = true, &snap
	}
	return st
}

// Status reads the counters.
func (g *Gateway) Status() Status {
	s := g.current.Load()
	st := Status{
		Limits: make([]LimitStatus, len(s.limits)), Held: g.held.Load(),
		ReloadsOK: g.reloads.ok.Load(), ReloadsFailed: g.reloads.failed.Load(),
	}
	for i, l := range s.limits {
		st.Limits[i] = l.status()
	}
	for _, sh := range s.stores {
		st.Stores = append(st.Stores, sh.status())
	}
	if m, ok := g.store.(*memstore.Store); ok {
		memory := MemoryStatus(m.Stats())
		st.Memory = &memory
	}
	return st
}

func (l *limit) status() LimitStatus {
	st := LimitStatus{
		Name: l.Name, Algorithm: l.base().Algorithm.String(), Count: l.Rate.Count, PerMs: l.Rate.Per.Milliseconds(),
		Key: l.Key.String(), OnFailure: l.OnFailure.String(), Shadow: l.Shadow, Variable: l.variants != nil,
		DecidedRefused: l.counts.denied.Load(), ShadowRefused: l.counts.shadow.Load(), Decided: l.counts.decided.Load(),
		Refused: l.counts.refused.Load(), FallbackRefused: l.counts.closed.Load(), Fallback: l.counts.fallback.Load(),
		Invalid: l.counts.invalid.Load(),
		Delayed: l.counts.delayed.Load(), Cancelled: l.counts.cancelled.Load(),
	}
	if l.base().Algorithm == escapement.FixedWindow {
		st.Align = l.Align.String()
	}
	if l.shared != nil {
		st.Store = l.shared.spec.Name
	}
	if l.plan != nil {
		st.Enforced = l.plan.Core().Capacity()
	}
	return st
}

// adminHandler shows and never changes.
func (g *Gateway) adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		// Readiness is about this process alone: a store that is away is the limits' own
		// policy, and all gateways would leave the balancer at once.
		if !g.ready.Load() {
			text(w, http.StatusServiceUnavailable, "not serving\n")
			return
		}
		text(w, http.StatusOK, "ready\n")
	})
	mux.HandleFunc("GET /config", func(w http.ResponseWriter, _ *http.Request) {
		document(w, g.current.Load().config.Redacted())
	})
	mux.HandleFunc("GET /limits", func(w http.ResponseWriter, _ *http.Request) { document(w, g.Status()) })
	for pattern, h := range g.opts.admin {
		mux.Handle(pattern, h)
	}
	return mux
}

func text(w http.ResponseWriter, code int, s string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(s))
}

func document(w http.ResponseWriter, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", jsonType)
	_, _ = w.Write(append(b, '\n'))
}
