package gateway

import (
	"encoding/json"
	"net/http"
	"sync/atomic"
)

// Demo is an upstream to try a gateway with: it answers with what it received and how
// many requests came through.
func Demo() http.Handler {
	var count atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		consumer := r.Header.Get("X-Consumer")
		if consumer == "" {
			consumer = r.Header.Get(consumerHeader)
		}
		w.Header().Set("Content-Type", jsonType)
		// A client that is gone needs no answer.
		_ = json.NewEncoder(w).Encode(struct {
			Method   string `json:"method"`
			Path     string `json:"path"`
			Consumer string `json:"consumer,omitempty"`
			For      string `json:"for"`
			Count    int64  `json:"count"`
		}{r.Method, r.URL.Path, consumer, r.Header.Get("X-Forwarded-For"), count.Add(1)})
	})
}
