package cases

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/redisserver"
	"github.com/escapement-io/escapement/redisstore"
)

// What cases call their faults.
const (
	lostReply     = "executed, reply lost"
	timeForbidden = "TIME refused inside scripts"
)

// network can lose the reply to the next decision.
type network struct{ armed atomic.Bool }

func (n *network) dial(ctx context.Context, kind, addr string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, kind, addr)
	if err != nil {
		return nil, err
	}
	return &lossyConn{Conn: c, network: n}, nil
}

type lossyConn struct {
	net.Conn
	network *network
	deaf    atomic.Bool
}

func (c *lossyConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("EVALSHA")) && c.network.armed.CompareAndSwap(true, false) {
		c.deaf.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *lossyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.deaf.Load() {
		_ = c.Close()
		return 0, errors.New("the connection was cut")
	}
	return n, err
}

// Fault does to the server, to the way there or to this instance what a case says happens
// to it, and waits until all is there again. A reply is lost when the next decision is made.
func (s *onRedis) Fault(ctx context.Context, op string) (err error) {
	switch op {
	case "script_flush":
		_, err = s.server.Do(ctx, "SCRIPT", "FLUSH")
		return err
	case lostReply:
		s.network.armed.Store(true)
		return nil
	case "node_restart":
		if err = s.store.Close(); err == nil {
			s.store, err = redisstore.Open(s.config)
		}
		return err
	}
	if err = s.server.Restart(ctx); err != nil {
		return err
	}
	return s.Back(ctx)
}

// Back waits until the store decides.
func (s *onRedis) Back(ctx context.Context) error {
	probe, err := escapement.New(s.store, escapement.Limit{Name: "probe", Rate: escapement.PerSecond(1)})
	if err != nil {
		return err
	}
	for range 200 {
		if _, err = probe.Peek(ctx, strconv.Itoa(0)); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("the store does not decide again: %w", err)
}

// Age lets so many ms pass for the keys of the case, which the server drops by its own clock.
func (s *onRedis) Age(ctx context.Context, by int64) error {
	names, err := s.names()
	for _, name := range names {
		var left []string
		if left, err = redisserver.Do(ctx, s.reach, "PTTL", name); err != nil {
			break
		}
		ms, _ := strconv.ParseInt(left[0], 10, 64)
		if ms < 0 {
			continue // it never expires, or has
		}
		if _, err = redisserver.Do(ctx, s.reach, "PEXPIRE", name, strconv.FormatInt(ms-by, 10)); err != nil {
			break
		}
	}
	return err
}

// blind opens the store without a clock of the caller's that is vouched for.
func (s *onRedis) blind() (*redisstore.Store, error) {
	c := s.config
	c.Bound = nil
	return redisstore.Open(c)
}

// noTime: the account of every replay may not ask for the time.
func noTime(ctx context.Context, _ *Case, b Backend) (found string, err error) {
	s, err := b.Start(&World{base: around})
	if err != nil {
		return "", err
	}
	defer end(s, &err)
	blind, err := s.(*onRedis).blind()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, blind.Close()) }()
	if f := blind.Findings(); len(f) != 1 || !strings.Contains(f[0], "TIME") {
		return fmt.Sprintf("findings at the start: %q", f), nil
	}
	l := escapement.Limit{Name: "dated", Rate: escapement.PerMinute(10)}
	p, err := l.Compile()
	if err != nil {
		return "", err
	}
	if _, err := blind.DecideOne(ctx, escapement.Claim{Plan: p, Key: "k", Cost: 1}); !errors.Is(err, escapement.ErrStoreUnavailable) {
		return fmt.Sprintf("a decision dated by nobody: %v", err), nil
	}
	return policies(ctx, blind, 10)
}

// policies lets 100 requests of each policy meet a store that decides nothing.
func policies(ctx context.Context, s escapement.Store, capacity int64) (found string, err error) {
	for policy, most := range map[escapement.OnFailure]int64{escapement.Deny: 0, escapement.LocalShare: capacity, escapement.Allow: 100} {
		admitted, unmarked, err := without(ctx, s, policy, capacity)
		if err != nil {
			return "", err
		}
		least := min(1, most)
		if policy == escapement.Allow {
			least = most
		}
		if admitted < least || admitted > most || unmarked > 0 {
			return fmt.Sprintf("%v: %d of 100 admitted, want %d to %d; %d not marked as decided without the store", policy, admitted, least, most, unmarked), nil
		}
	}
	return "", nil
}

// silent halts the server of the case.
func silent(ctx context.Context, c *Case, b Backend) (found string, err error) {
	w, err := newWorld(c)
	if err != nil {
		return "", err
	}
	s, err := b.Start(w)
	if err != nil {
		return "", err
	}
	defer end(s, &err)
	server := s.(*onRedis).server
	if err := server.Halt(); err != nil {
		return "", err
	}
	found, err = policies(ctx, s.Store(), 10)
	return found, errors.Join(err, server.Continue())
}
