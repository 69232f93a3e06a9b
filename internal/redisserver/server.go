package redisserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/escapement-io/escapement/internal/child"
)

// ErrMissing says that there is no redis-server; the error that wraps it says what to do.
var ErrMissing = errors.New("redis-server is not there")

// Binary finds redis-server in PATH.
func Binary() (string, error) {
	b, err := exec.LookPath("redis-server")
	if err != nil {
		return "", fmt.Errorf("%w\n  install the package redis-server (apt-get install redis-server), or put it in PATH", ErrMissing)
	}
	return b, nil
}

// Options of a server.
type Options struct {
	Args []string // further arguments
	// Wrap makes the command line that runs the server, for example under a clock of its
	// own; nil: as it is.
	Wrap func(command []string) []string
	Dir  string // where it keeps its files; empty: a temporary folder that Stop removes
	Port int    // 0: a free one
	// Config, if it is not empty, is the content of its configuration file, such as a
	// sentinel's.
	Config string
}

// Server is a running server.
type Server struct {
	Addr string // host:port

	opts      Options
	binary    string
	temporary bool
	mu        sync.Mutex // guards cmd and gone
	cmd       *exec.Cmd
	gone      chan struct{}
	out       child.Tail
}

// Start runs a server, and waits until it answers.
func Start(ctx context.Context, opts Options) (*Server, error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	s := &Server{opts: opts, binary: binary}
	if s.opts.Dir == "" {
		if s.opts.Dir, err = os.MkdirTemp("", "escapement-redis-"); err != nil {
			return nil, fmt.Errorf("redis-server: %w", err)
		}
		s.temporary = true
	}
	for range 5 {
		port := opts.Port
		if port == 0 {
			if port, err = FreePort(); err != nil {
				break
			}
		}
		s.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if err = s.run(ctx); err == nil || ctx.Err() != nil || opts.Port != 0 {
			break
		}
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// FreePort is a loopback port that was free a moment ago, and 10000 above which a node of
// a cluster has its second one.
func FreePort() (int, error) {
	const most = 65535 - 10000
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, fmt.Errorf("redis-server: a free port: %w", err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			return 0, fmt.Errorf("redis-server: a free port: %w", err)
		}
		if port <= most {
			return port, nil
		}
	}
	return 0, fmt.Errorf("redis-server: no free port up to %d", most)
}

// Port is the port of Addr.
func (s *Server) Port() string {
	_, port, _ := net.SplitHostPort(s.Addr)
	return port
}

func (s *Server) command() ([]string, error) {
	args := []string{s.binary}
	if s.opts.Config != "" {
		file := filepath.Join(s.opts.Dir, "redis.conf")
		if err := os.WriteFile(file, []byte(s.opts.Config), 0o600); err != nil {
			return nil, err
		}
		args = append(args, file)
	}
	args = append(args, s.opts.Args...)
	args = append(args, "--bind", "127.0.0.1", "--port", s.Port(), "--dir", s.opts.Dir)
	if s.opts.Config == "" {
		args = append(args, "--save", "")
	}
	if s.opts.Wrap != nil {
		args = s.opts.Wrap(args)
	}
	return args, nil
}

func (s *Server) run(ctx context.Context) error {
	args, err := s.command()
	if err != nil {
		return fmt.Errorf("redis-server: %w", err)
	}
	cmd := exec.Command(args[0], args[1:]...)
	s.out.Reset()
	cmd.Stdout, cmd.Stderr = &s.out, &s.out
	cmd.SysProcAttr = child.OwnGroup()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("redis-server: %w", err)
	}
	gone := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(gone)
	}()
	s.mu.Lock()
	s.cmd, s.gone = cmd, gone
	s.mu.Unlock()
	for range 400 {
		if _, err = s.Do(ctx, "PING"); err == nil {
			return nil
		}
		select {
		case <-gone:
			return fmt.Errorf("redis-server: it ended at once: %s", s.out.String())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(25 * time.Millisecond):
		}
	}
	s.Kill()
	return fmt.Errorf("redis-server: it does not answer on %s: %w: %s", s.Addr, err, s.out.String())
}

// Do sends one command on a connection of its own; the reply of a status or a number is
// its text, of a list each element.
func (s *Server) Do(ctx context.Context, args ...string) ([]string, error) {
	return Do(ctx, rueidis.ClientOption{InitAddress: []string{s.Addr}}, args...)
}

// Do sends one command to the server that o names.
func Do(ctx context.Context, o rueidis.ClientOption, args ...string) ([]string, error) {
	o.DisableCache, o.DisableRetry, o.ForceSingleClient, o.AlwaysRESP2 = true, true, true, true
	o.Dialer.Timeout = 2 * time.Second
	c, err := rueidis.NewClient(o)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	m, err := c.Do(ctx, c.B().Arbitrary(args...).Build()).ToMessage()
	if err != nil {
		return nil, err
	}
	return texts(m), nil
}

func texts(m rueidis.RedisMessage) (all []string) {
	if list, err := m.ToArray(); err == nil {
		for _, e := range list {
			all = append(all, texts(e)...)
		}
		return all
	}
	if n, err := m.ToInt64(); err == nil {
		return []string{strconv.FormatInt(n, 10)}
	}
	text, _ := m.ToString()
	return []string{text}
}

// Kill ends the process at once, and waits for it. It may be called again.
func (s *Server) Kill() {
	s.mu.Lock()
	cmd, gone := s.cmd, s.gone
	s.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = child.Kill(cmd.Process) // fails if it has ended
	<-gone
}

// PID is of the process that was started: under Wrap, of the tool.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd.Process.Pid
}

// Halt makes the process silent without ending it, until Continue.
func (s *Server) Halt() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return child.Halt(s.cmd.Process)
}

// Continue ends a Halt.
func (s *Server) Continue() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return child.Resume(s.cmd.Process)
}

// Restart ends the process and starts it on the same address and files.
func (s *Server) Restart(ctx context.Context) error {
	s.Kill()
	return s.run(ctx)
}

// Stop ends the process and removes what was temporary.
func (s *Server) Stop() {
	s.Kill()
	if s.temporary {
		_ = os.RemoveAll(s.opts.Dir) // what stays is temporary
	}
}
