package metrics

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/escapement-io/escapement/clock"
)

// ClockDocument is the answer of /v1/clock.
type ClockDocument struct {
	// BootID names this start of the machine: instances with the same one share a clock.
	BootID string `json:"boot_id"`
	// Sources is what this machine's time comes from; empty where that is not known.
	Sources []string `json:"sources"`
	// Fit is what the function Fit says of the rest.
	Fit bool `json:"fit"`
	clock.Snapshot
}

// Clock serves the state of a guard as JSON.
func Clock(snapshot func() clock.Snapshot, sources []string) http.Handler {
	if sources == nil {
		sources = []string{}
	}
	boot := clock.BootID()
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		d := ClockDocument{BootID: boot, Sources: sources, Snapshot: snapshot()}
		d.Fit = Fit(&d.Snapshot)
		if d.References == nil {
			d.References = []clock.ReferenceStatus{}
		}
		b, err := json.Marshal(&d)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(append(b, '\n'))
	})
}

// Log writes one line for each event of a clock.
func Log(to *slog.Logger) func(clock.Event) {
	return func(e clock.Event) {
		line := to.Info
		switch e.Level {
		case clock.Info:
		case clock.Warning:
			line = to.Warn
		case clock.Critical:
			line = to.Error
		}
		line("clock "+string(e.Kind), "severity", string(e.Level), "direction", e.Direction(), "size_seconds", e.Size.Seconds(),
			"cause", e.Cause, "bracket_seconds", e.Width.Seconds(), "since_seconds", e.Since.Seconds(),
			"wall_before_ns", e.Before, "wall_after_ns", e.After)
	}
}

// fitWithin is the error from which on the time of a node is not to be used for decisions
// that it shares with others.
const fitWithin = 2 * time.Second

// Fit reports whether the time of a node is fit to limit by: the references of guarded
// time have agreed, nothing has happened since that makes it doubtful, and its error is at
// most 2 s. What a limit in the memory of the process decides does not depend on it.
func Fit(c *clock.Snapshot) bool { return c.Bounded && c.ErrorBound <= fitWithin }
