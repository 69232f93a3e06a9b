package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/escapement-io/escapement/clock"
)

// Mode is how the servers are arranged.
type Mode string

// The modes.
const (
	Single   Mode = "single"
	Cluster  Mode = "cluster"
	Sentinel Mode = "sentinel" // Addrs are the sentinels'
)

// Config says where the store is and how it is used. Plain data; zero values have the
// defaults given.
type Config struct {
	Mode    Mode     // Single
	Addrs   []string // host:port, at least one
	Primary string   // Sentinel: the name of the primary

	Username, Password                 string
	SentinelUsername, SentinelPassword string
	DB                                 int // not with Cluster
	TLS                                *tls.Config

	Prefix       string        // of every key: "esc:"; no braces
	Deadline     time.Duration // of a decision: 50 ms, and never beyond the caller's own
	ExpiryMargin time.Duration // how long a record outlives its use: 1 h. A step of the store's clock beyond it forgets
	Connections  int           // per primary: 1; at most 8, rounded up to a power of two
	Queue        int           // decisions that may wait to be sent, per primary: 4096; a longer list of one Decide only if none waits

	Logger   *slog.Logger // nil: silent
	Observer Observer     // nil: nobody
	// Bound is what the caller's own clock can vouch for, such as clock.Guard.Bound. It dates
	// decisions where scripts may not ask the server for the time; without it they are then not run.
	Bound func() clock.Interval
	// Dial replaces the dialer, for tests.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Observer is told what happens at the store. Implementations must not block.
type Observer interface {
	// Called reports a script call: how many requests it carried, how long it took, and why it
	// failed.
	Called(primary string, requests int, took time.Duration, err error)
	// Stepped reports that a primary's clock moved against the deployment's line.
	Stepped(primary string, by time.Duration)
	// Opened reports that the breaker of a primary opened, or closed.
	Opened(primary string, open bool)
}

const (
	defaultPrefix   = "esc:"
	defaultDeadline = 50 * time.Millisecond
	defaultMargin   = time.Hour
	defaultQueue    = 4096
	maxMargin       = 30 * 24 * time.Hour
)

// check fills in what is left out and reports every problem.
func (c *Config) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("redisstore: "+format, args...)) }
	if c.Mode == "" {
		c.Mode = Single
	}
	if c.Mode != Single && c.Mode != Cluster && c.Mode != Sentinel {
		bad("mode %q is unknown; use single, cluster or sentinel", c.Mode)
	}
	if len(c.Addrs) == 0 {
		bad("no address; give at least one host:port")
	}
	for _, a := range c.Addrs {
		if _, _, err := net.SplitHostPort(a); err != nil {
			bad("address %q: %v; write it as host:port", a, err)
		}
	}
	if c.Mode == Single && len(c.Addrs) > 1 {
		bad("%d addresses for a single server; give one, or set the mode", len(c.Addrs))
	}
	if c.Mode == Sentinel && c.Primary == "" {
		bad("no name of the primary; give the one that the sentinels monitor, such as mymaster")
	}
	if c.Mode == Cluster && c.DB != 0 {
		bad("database %d: a cluster has only database 0", c.DB)
	}
	if c.DB < 0 {
		bad("database %d is negative", c.DB)
	}
	if c.Prefix == "" {
		c.Prefix = defaultPrefix
	}
	if strings.ContainsAny(c.Prefix, "{}") || len(c.Prefix) > 64 {
		bad("prefix %q: use up to 64 bytes without braces", c.Prefix)
	}
	c.defaults(bad)
	return errors.Join(errs...)
}

func (c *Config) defaults(bad func(format string, args ...any)) {
	if c.Deadline == 0 {
		c.Deadline = defaultDeadline
	}
	if c.Deadline < time.Millisecond || c.Deadline > 10*time.Second {
		bad("deadline %v: use 1ms to 10s", c.Deadline)
	}
	if c.ExpiryMargin == 0 {
		c.ExpiryMargin = defaultMargin
	}
	if c.ExpiryMargin < time.Second || c.ExpiryMargin > maxMargin {
		bad("expiry margin %v: use 1s to %v", c.ExpiryMargin, maxMargin)
	}
	if c.Connections == 0 {
		c.Connections = 1
	}
	if c.Connections < 1 || c.Connections > 8 {
		bad("%d connections: use 1 to 8", c.Connections)
	}
	if c.Queue == 0 {
		c.Queue = defaultQueue
	}
	if c.Queue < 1 || c.Queue > 1<<20 {
		bad("a queue of %d: use 1 to %d", c.Queue, 1<<20)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}
