// Package redistest starts real redis-server processes for tests, on free loopback
// ports, and always ends them.
package redistest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Binary is the server that is started: redis-server, or what REDIS_SERVER names.
func Binary() string {
	if b := os.Getenv("REDIS_SERVER"); b != "" {
		return b
	}
	return "redis-server"
}

// Options of a server.
type Options struct {
	Args []string // further arguments, such as "--maxmemory-policy", "noeviction"
	// Command makes the process, for example under skewrun; nil means exec.Command.
	Command  func(name string, args ...string) *exec.Cmd
	Dir      string // where it keeps its files; empty means a new directory
	Port     int    // 0 means a free one
	Sentinel bool   // the file sentinel.conf of Dir is the configuration
}

// Server is one running process.
type Server struct {
	Port int
	Dir  string

	opts Options
	mu   sync.Mutex
	cmd  *exec.Cmd
	gone chan struct{}
	out  *bytes.Buffer
}

// Start runs a server until the test ends.
func Start(tb testing.TB, opts Options) *Server {
	tb.Helper()
	if opts.Dir == "" {
		opts.Dir = tb.TempDir()
	}
	s := &Server{Dir: opts.Dir, opts: opts}
	for try := 0; ; try++ {
		s.Port = opts.Port
		if s.Port == 0 {
			s.Port = FreePort(tb)
		}
		err := s.run()
		if err == nil {
			break
		}
		if try == 4 || opts.Port != 0 {
			tb.Fatalf("redistest: %v\n%s", err, s.log())
		}
	}
	tb.Cleanup(s.Kill)
	return s
}

// FreePort is a loopback port that was free a moment ago, and whose cluster bus port is
// in range.
func FreePort(tb testing.TB) int {
	tb.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if port < 55000 {
			return port
		}
	}
	tb.Fatal("redistest: no free port below 55000")
	return 0
}

func (s *Server) run() error {
	var args []string
	if s.opts.Sentinel {
		args = []string{filepath.Join(s.Dir, "sentinel.conf"), "--sentinel", "--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1"}
	} else {
		args = []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(s.Port), "--save", "", "--appendonly", "no",
			"--dir", s.Dir, "--loglevel", "notice"}
		args = append(args, s.opts.Args...)
	}
	command := s.opts.Command
	if command == nil {
		command = exec.Command
	}
	cmd := command(Binary(), args...)
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w (install the package redis-server)", Binary(), err)
	}
	gone := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(gone)
	}()
	s.mu.Lock()
	s.cmd, s.gone, s.out = cmd, gone, out
	s.mu.Unlock()
	for range 400 {
		if _, err := s.Do("PING"); err == nil {
			return nil
		}
		select {
		case <-gone:
			return fmt.Errorf("%s ended at once", Binary())
		case <-time.After(25 * time.Millisecond):
		}
	}
	s.Kill()
	return fmt.Errorf("%s does not answer on port %d", Binary(), s.Port)
}

func (s *Server) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out == nil {
		return ""
	}
	return s.out.String()
}

// Addr is host and port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

// Kill ends the process at once, and waits for it. It may be called again.
func (s *Server) Kill() {
	s.mu.Lock()
	cmd, gone := s.cmd, s.gone
	s.mu.Unlock()
	if cmd == nil {
		return
	}
	// The group: under skewrun the server is a child of the tool.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-gone
}

// Restart starts a killed server again, on the same port and directory.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.Kill()
	if err := s.run(); err != nil {
		tb.Fatalf("redistest: %v\n%s", err, s.log())
	}
}

// Stop halts the process without ending it, so that it is silent; Continue resumes it.
func (s *Server) Stop() { s.signal(syscall.SIGSTOP) }

// Continue resumes a stopped process.
func (s *Server) Continue() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = syscall.Kill(-s.cmd.Process.Pid, sig)
}

// PID is of the process that was started; under skewrun of the tool.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Do sends one command on a connection of its own and returns the reply as text, nested
// replies one element a line.
func (s *Server) Do(args ...string) (string, error) {
	d := net.Dialer{}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := d.DialContext(ctx, "tcp", s.Addr())
	if err != nil {
		return "", err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := c.Write([]byte(b.String())); err != nil {
		return "", err
	}
	return read(bufio.NewReader(c))
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

func read(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	switch line[0] {
	case '-':
		return "", fmt.Errorf("%s", line[1:])
	case '$':
		n, _ := strconv.Atoi(line[1:])
		if n < 0 {
			return "", nil
		}
		buf := make([]byte, n+2)
		if _, err := readFull(r, buf); err != nil {
			return "", err
		}
		return string(buf[:n]), nil
	case '*':
		n, _ := strconv.Atoi(line[1:])
		var all []string
		for range n {
			e, err := read(r)
			if err != nil {
				return "", err
			}
			all = append(all, e)
		}
		return strings.Join(all, "\n"), nil
	}
	return line[1:], nil
}

func readFull(r *bufio.Reader, buf []byte) (int, error) {
	n := 0
	for n < len(buf) {
		k, err := r.Read(buf[n:])
		if err != nil {
			return n, err
		}
		n += k
	}
	return n, nil
}
