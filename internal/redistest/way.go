package redistest

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// Way is a network between a client and a server that can be made bad.
type Way struct {
	tb    testing.TB
	proxy *toxiproxy.Proxy
}

// Between opens a way to a server until the test ends.
func Between(tb testing.TB, s *Server) *Way {
	tb.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	w := &Way{tb: tb, proxy: toxiproxy.NewProxy(server, "way", net.JoinHostPort("127.0.0.1", "0"), s.Addr())}
	if err := w.proxy.Start(); err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	tb.Cleanup(w.proxy.Stop)
	return w
}

// Addr is host and port of its near end.
func (w *Way) Addr() string { return w.proxy.Listen }

// Spoil begins a fault, a toxic as toxiproxy describes it in JSON.
func (w *Way) Spoil(toxic string) {
	w.tb.Helper()
	if _, err := w.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		w.tb.Fatalf("redistest: %v", err)
	}
}

// Mend ends all faults.
func (w *Way) Mend() { w.proxy.Toxics.ResetToxics(context.Background()) }
