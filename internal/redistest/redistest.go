// Package redistest starts real redis-server processes for tests, on free loopback
// ports, and always ends them.
package redistest

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/escapement-io/escapement/internal/redisserver"
)

// Options of a server.
type Options = redisserver.Options

// Server is one running process.
type Server struct {
	Port int

	tb  testing.TB
	own *redisserver.Server
}

// Start runs a server until the test ends.
func Start(tb testing.TB, opts Options) *Server {
	tb.Helper()
	if opts.Dir == "" {
		opts.Dir = tb.TempDir()
	}
	own, err := redisserver.Start(tb.Context(), opts)
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	tb.Cleanup(own.Stop)
	port, _ := strconv.Atoi(own.Port())
	return &Server{Port: port, tb: tb, own: own}
}

// FreePort is a loopback port that was free a moment ago.
func FreePort(tb testing.TB) int {
	tb.Helper()
	port, err := redisserver.FreePort()
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	return port
}

// Addr is host and port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

// Kill ends the process at once, and waits for it. It may be called again.
func (s *Server) Kill() { s.own.Kill() }

// Restart starts a killed server again, on the same port and directory.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	if err := s.own.Restart(tb.Context()); err != nil {
		tb.Fatalf("redistest: %v", err)
	}
}

// Stop halts the process without ending it, so that it is silent; Continue resumes it.
func (s *Server) Stop() {
	s.tb.Helper()
	if err := s.own.Halt(); err != nil {
		s.tb.Errorf("redistest: halt %s: %v", s.Addr(), err)
	}
}

// Continue resumes a stopped process.
func (s *Server) Continue() { _ = s.own.Continue() } // it may have been ended meanwhile

// PID is of the process that was started; under skewrun of the tool.
func (s *Server) PID() int { return s.own.PID() }

// Do sends one command on a connection of its own and returns the reply as text, nested
// replies one element a line.
func (s *Server) Do(args ...string) (string, error) {
	reply, err := s.own.Do(context.Background(), args...)
	return strings.Join(reply, "\n"), err
}

// Must is Do that fails the test.
func (s *Server) Must(tb testing.TB, args ...string) string {
	tb.Helper()
	r, err := s.Do(args...)
	if err != nil {
		tb.Fatalf("redistest: %q on %s: %v", args, s.Addr(), err)
	}
	return r
}
