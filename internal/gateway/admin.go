package gateway

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/escapement-io/escapement/memstore"
	"github.com/escapement-io/escapement/redisstore"
)

// Status is what /v1/limits shows.
type Status struct {
	Limits        []LimitStatus `json:"limits"`
	Held          int64         `json:"held"` // requests waiting for their turn
	ReloadsOK     int64         `json:"reloads_ok"`
	ReloadsFailed int64         `json:"reloads_failed"`
	Memory        *MemoryStatus `json:"memory,omitempty"` // absent if the store is not this process's memory
	Stores        []StoreStatus `json:"stores,omitempty"`
}

// MemoryStatus is what /v1/limits shows of a store in memory, over all limits.
type MemoryStatus struct {
	Keys    int64  `json:"keys"`
	MaxKeys int64  `json:"max_keys"`
	Bytes   int64  `json:"bytes"`
	Refused uint64 `json:"refused"` // claims for unknown keys that met the cap
	Dropped uint64 `json:"dropped"` // records that were as good as new
	Adopted uint64 `json:"adopted"` // records brought under a changed limit
}

// StoreStatus is what /v1/limits shows of a shared store.
type StoreStatus struct {
	Name      string               `json:"name"`
	At        string               `json:"at"`
	Reached   bool                 `json:"reached"`             // it was opened; whether it answers now, the breakers say
	Instances int                  `json:"instances,omitempty"` // absent: not known
	Calls     CallCounts           `json:"calls"`
	State     *redisstore.Snapshot `json:"state,omitempty"` // absent until it is reached
	Sync      []SyncStatus         `json:"sync,omitempty"`  // of each mode in use
}

// SyncStatus is what /v1/limits shows of the limits of a store on which instances agree
// from time to time.
type SyncStatus struct {
	Mode      string           `json:"mode"`
	Keys      int64            `json:"keys"` // that are kept in agreement
	Calls     uint64           `json:"calls"`
	Failed    uint64           `json:"failed"`              // of the calls
	Refused   uint64           `json:"refused"`             // claims for unknown keys that met the cap
	Interval  time.Duration    `json:"interval_ns"`         // between two agreements, as it is in force
	Overshoot map[string]int64 `json:"overshoot,omitempty"` // by limit: the most above it that the store told of
	// Lost is by limit what the store had handed out and forgot, at most, as far as this
	// instance noticed.
	Lost map[string]int64 `json:"lost_units,omitempty"`
}

func (s *shared) status() StoreStatus {
	st := StoreStatus{Name: s.spec.Name, At: s.spec.String(), Instances: s.instances(), Calls: s.calls.counts()}
	if store := s.store.Load(); store != nil {
		snap := store.redis.Snapshot()
		st.Reached, st.State, st.Sync = true, &snap, store.sync()
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
	st.Stores = s.storeStatus()
	stores := map[*shared]*StoreStatus{nil: {Reached: true}}
	for i, sh := range s.stores {
		stores[sh] = &st.Stores[i]
	}
	for i, l := range s.limits {
		st.Limits[i] = l.status(stores[l.shared])
	}
	if m, ok := g.store.(*memstore.Store); ok {
		memory := MemoryStatus(m.Stats())
		st.Memory = &memory
	}
	return st
}

// Stores reads the counters of the shared stores alone.
func (g *Gateway) Stores() []StoreStatus { return g.current.Load().storeStatus() }

func (s *snapshot) storeStatus() []StoreStatus {
	all := make([]StoreStatus, len(s.stores))
	for i, sh := range s.stores {
		all[i] = sh.status()
	}
	return all
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
	limits := func(w http.ResponseWriter, _ *http.Request) { document(w, g.Status()) }
	mux.HandleFunc("GET /v1/limits", limits)
	mux.HandleFunc("GET /limits", limits)
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
