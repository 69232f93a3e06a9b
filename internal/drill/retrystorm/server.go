package retrystorm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/httplimit"
	"github.com/escapement-io/escapement/internal/naive"
	"github.com/escapement-io/escapement/memstore"
)

// Serve is the process whose clock is stepped: an HTTP server on loopback that decides on
// arrival and answers a round trip later. It writes its address to out, and ends when in
// does or ctx is done.
func Serve(ctx context.Context, limiter string, rate escapement.Rate, in io.Reader, out io.Writer) error {
	if _, err := limitOf(rate).Compile(); err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	var h http.Handler
	switch limiter {
	case Naive:
		h = byTheWall(rate)
	case Ours:
		store := memstore.New()
		defer func() { _ = store.Close() }() // never fails
		l, err := escapement.New(store, limitOf(rate))
		if err != nil {
			return err
		}
		h = httplimit.New(l, httplimit.Everyone)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	default:
		return fmt.Errorf("drill: no limiter is called %q; use %s or %s", limiter, Naive, Ours)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	if _, err := fmt.Fprintf(out, "http://%s\n", listener.Addr()); err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // not waited for: a read of standard input cannot be ended
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	server := &http.Server{Handler: later(h), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // Serve tells
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("drill: %w", err)
	}
	return nil
}

// byTheWall is the limiter of the incident: its refusals tell no wait.
func byTheWall(rate escapement.Rate) http.Handler {
	var mu sync.Mutex
	window := naive.Window{Limit: rate.Count, Bucket: rate.Per.Microseconds() / 2}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		admitted := window.Take(clock.Wall().UnixMicro())
		mu.Unlock()
		if !admitted {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
}

// later holds the answer back, which stays in its buffer until the handler returns.
func later(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		t := time.NewTimer(roundTrip)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
		}
	})
}
