package retrystorm

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/httpretry"
)

// Request is one request of a client with all its attempts. Instants are on the monotonic
// clock of the process that makes the load, whose wall clock is left alone.
type Request struct {
	Due, Done algo.Mono
	Attempts  []Attempt
}

// Attempt is an attempt of a request. It counts for when it was sent: the server decides
// on arrival.
type Attempt struct {
	Sent   algo.Mono
	Status int // 0 if there was no answer
}

// last is the status that the client got in the end.
func (r *Request) last() int {
	if len(r.Attempts) == 0 {
		return 0
	}
	return r.Attempts[len(r.Attempts)-1].Status
}

// connections is the transport that clients of every kind send by.
func connections(clients int) *http.Transport {
	return &http.Transport{
		Proxy:               nil,
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		MaxConnsPerHost:     clients,
		MaxIdleConnsPerHost: clients,
	}
}

// newClient is what all requests of a phase go through.
func newClient(kind string, base *http.Transport) (http.RoundTripper, error) {
	seen := noting{base}
	switch kind {
	case AtOnce:
		return atOnce{seen}, nil
	case Budget:
		return httpretry.New(seen, httpretry.Config{MaxAttempts: attempts})
	}
	return nil, fmt.Errorf("drill: no client is called %q", kind)
}

type requestKey struct{}

// noting writes each attempt down in the request it belongs to.
type noting struct{ base http.RoundTripper }

func (n noting) RoundTrip(req *http.Request) (*http.Response, error) {
	a := Attempt{Sent: clock.Mono()}
	resp, err := n.base.RoundTrip(req)
	if resp != nil {
		a.Status = resp.StatusCode
	}
	if r, ok := req.Context().Value(requestKey{}).(*Request); ok {
		r.Attempts = append(r.Attempts, a)
	}
	return resp, err
}

// atOnce repeats what was refused without a wait. Its requests have no bodies.
type atOnce struct{ base http.RoundTripper }

func (c atOnce) RoundTrip(req *http.Request) (*http.Response, error) {
	for n := 1; ; n++ {
		resp, err := c.base.RoundTrip(req)
		if err != nil || resp.StatusCode != http.StatusTooManyRequests || n == attempts {
			return resp, err
		}
		drain(resp)
	}
}

// drain keeps the connection for the next attempt. The server under drill says little.
func drain(resp *http.Response) {
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}

// send makes a request and waits until the client has its answer, or none.
func send(ctx context.Context, by http.RoundTripper, url string, r *Request) {
	defer func() { r.Done = clock.Mono() }()
	req, err := http.NewRequestWithContext(context.WithValue(ctx, requestKey{}, r), http.MethodGet, url, nil)
	if err != nil {
		return
	}
	if resp, err := by.RoundTrip(req); err == nil {
		drain(resp)
	}
}
