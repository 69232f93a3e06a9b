package gateway

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/escapement-io/escapement/internal/config"
	"github.com/escapement-io/escapement/internal/policy"
)

// upstream is where a route's requests go.
type upstream struct {
	balance  balancer
	hashOn   *policy.Template
	scheme   string
	passHost string // pass, node or rewrite
	host     string // rewrite
	retries  int
	read     time.Duration
	rt       http.RoundTripper
}

// link is what a transport depends on; upstreams with the same link share connections,
// also across a reload.
type link struct {
	scheme              string
	verify              bool
	serverName          string
	connect, send, read time.Duration
}

// Bounds of the connections to upstreams.
const (
	idlePerNode     = 256
	idleTotal       = 4096
	idleTimeout     = 60 * time.Second
	maxResponseHead = 1 << 20
	defaultTimeout  = 60 * time.Second // connect, send and read, as in nginx
	maxRetries      = 8
)

// newUpstream compiles c; the link says over which transport to reach it.
func newUpstream(c *config.Upstream) (*upstream, link, error) {
	b, err := newBalancer(c)
	if err != nil {
		return nil, link{}, err
	}
	u := &upstream{
		balance: b, hashOn: c.HashOn, scheme: c.Scheme, passHost: c.PassHost, host: c.Host,
		retries: min(max(0, c.Retries), maxRetries, len(c.Nodes)-1), read: orDefault(c.Read),
	}
	if u.scheme == "" {
		u.scheme = "http"
	}
	if u.scheme != "http" && u.scheme != "https" {
		return nil, link{}, fmt.Errorf("scheme %q is not known; use http or https", u.scheme)
	}
	k := link{scheme: u.scheme, connect: orDefault(c.Connect), send: orDefault(c.Send), read: u.read}
	if u.scheme == "https" {
		k.verify = c.TLSVerify
		if c.PassHost == "rewrite" {
			k.serverName = policy.HostName(c.Host)
		}
	}
	return u, k, nil
}

func orDefault(d time.Duration) time.Duration {
	if d <= 0 {
		return defaultTimeout
	}
	return d
}

// dialError is a connection that was not made: nothing was sent.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

func newTransport(k link) *http.Transport {
	dialer := &net.Dialer{Timeout: k.connect, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, &dialError{err}
			}
			return newWatched(c, k.send), nil
		},
		// An upstream is often a private host with its own certificate; without verify the
		// connection is encrypted and nothing more, as in APISIX.
		TLSClientConfig:        &tls.Config{InsecureSkipVerify: !k.verify, ServerName: k.serverName, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    k.connect,
		ResponseHeaderTimeout:  k.read,
		ExpectContinueTimeout:  time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // bodies pass as they are
		MaxIdleConns:           idleTotal,
		MaxIdleConnsPerHost:    idlePerNode,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxResponseHead,
		ReadBufferSize:         8 << 10,
		WriteBufferSize:        8 << 10,
	}
}
