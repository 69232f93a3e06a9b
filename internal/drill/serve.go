package drill

import (
	"context"
	"encoding/json"
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
	"github.com/escapement-io/escapement/memstore"
)

// message is a line from the process under drill: where it listens, or an event.
type message struct {
	URL   string       `json:"url,omitempty"`
	Event *clock.Event `json:"event,omitempty"`
}

// reading is the answer of a process under drill to what time it has.
type reading struct {
	Mono int64 `json:"mono_ns"`
	Wall int64 `json:"wall_us"`
}

const recipesHeader = "X-Drill-Recipes"

// Serve is the process whose clock is stepped: an HTTP server on loopback under the limit,
// on a memstore of its own, and a guard that watches its clocks. It writes its address and
// every event to out as lines of JSON, and ends when in does or ctx is done.
func Serve(ctx context.Context, l Limit, naive bool, in io.Reader, out io.Writer) error {
	if err := l.check(); err != nil {
		return err
	}
	store := memstore.New()
	defer func() { _ = store.Close() }() // never fails
	limiter, err := escapement.New(store, l.limit())
	if err != nil {
		return err
	}
	return serve(ctx, handler(limiter, l, naive), in, out)
}

// serve answers by h and watches the clocks until in ends or ctx is done.
func serve(ctx context.Context, h http.Handler, in io.Reader, out io.Writer) error {
	guard, err := clock.NewGuard(clock.Config{})
	if err != nil {
		return err
	}
	lines := json.NewEncoder(out)
	guard.Subscribe(func(e clock.Event) { _ = lines.Encode(message{Event: &e}) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	if err := lines.Encode(message{URL: "http://" + listener.Addr().String()}); err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() { guard.Run(ctx) })
	go func() { // not waited for: a read of standard input cannot be ended
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // Serve tells
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("drill: %w", err)
	}
	return nil
}

// handler answers /clock with the time, and everything else under the limit.
func handler(limiter *escapement.Limiter, l Limit, naive bool) http.Handler {
	mux := withClock()
	one := func(*http.Request) (string, bool) { return "client", true }
	limited := httplimit.New(limiter, one)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if !naive {
		mux.Handle("/", limited)
		return mux
	}
	var mu sync.Mutex
	beside := recipes(l)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now, bits := clock.Wall().UnixMicro(), 0
		for i := range beside {
			if beside[i].Take(now) {
				bits |= 1 << i
			}
		}
		mu.Unlock()
		w.Header().Set(recipesHeader, fmt.Sprint(bits))
		limited.ServeHTTP(w, r)
	})
	return mux
}

// withClock answers /clock.
func withClock() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/clock", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(reading{Wall: clock.Wall().UnixMicro(), Mono: int64(clock.Mono())})
	})
	return mux
}
