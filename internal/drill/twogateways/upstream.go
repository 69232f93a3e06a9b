package twogateways

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// upstream is what stands behind the gateways: it keeps the numbers of the requests that
// arrive.
type upstream struct {
	addr   string
	server *http.Server

	mu       sync.Mutex
	arrivals []int // guarded by mu
}

const numberField = "X-Drill-Number"

func startUpstream(ctx context.Context) (*upstream, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("drill: %w", err)
	}
	u := &upstream{addr: l.Addr().String()}
	u.server = &http.Server{Handler: u, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := u.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			u.mu.Lock()
			u.arrivals = append(u.arrivals, -1) // match will not have it
			u.mu.Unlock()
		}
	}()
	return u, nil
}

// ServeHTTP answers with nothing.
func (u *upstream) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	field := r.Header.Get(numberField)
	if field == "" {
		return // of the warm-up
	}
	n, err := strconv.Atoi(field)
	if err != nil {
		n = -1
	}
	u.mu.Lock()
	u.arrivals = append(u.arrivals, n)
	u.mu.Unlock()
}

// close ends it, and returns what arrived.
func (u *upstream) close() []int {
	_ = u.server.Close() // of connections that are of no more use
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.arrivals
}
