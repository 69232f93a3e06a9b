package storestep

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/escapement-io/escapement/tools/skewrun"
)

// server is a redis-server under a wall clock of its own.
type server struct {
	tool, file string
	addr       string
	cmd        *exec.Cmd
	gone       chan struct{}
}

// ErrNoServer says that there is no redis-server to drill.
var ErrNoServer = errors.New("drill: redis-server is not installed; install the package redis-server")

// startServer runs redis-server in dir on a free loopback port, with no persistence.
func startServer(ctx context.Context, dir, binary string) (*server, error) {
	path, err := exec.LookPath(binary)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoServer, err)
	}
	tool, err := skewrun.Build(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := skewrun.Usable(ctx, tool); err != nil {
		return nil, err
	}
	s := &server{tool: tool, file: filepath.Join(dir, "clock")}
	if err := skewrun.Control(ctx, tool, s.file, "set", "0"); err != nil {
		return nil, err
	}
	var failed error
	for range 5 {
		if failed = s.run(ctx, dir, path); failed == nil {
			return s, nil
		}
	}
	return nil, failed
}

func (s *server) run(ctx context.Context, dir, path string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.addr = l.Addr().String()
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	s.cmd = exec.Command(s.tool, "run", s.file, "--", path, "--bind", "127.0.0.1", "--port", strconv.Itoa(port),
		"--save", "", "--appendonly", "no", "--dir", dir, "--loglevel", "warning")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("drill: start %s: %w", path, err)
	}
	cmd, gone := s.cmd, make(chan struct{})
	s.gone = gone
	go func() {
		_ = cmd.Wait()
		close(gone)
	}()
	var d net.Dialer
	for range 200 {
		if c, err := d.DialContext(ctx, "tcp", s.addr); err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			s.end()
			return ctx.Err()
		case <-gone:
			return fmt.Errorf("drill: %s ended at once", path)
		case <-time.After(25 * time.Millisecond):
		}
	}
	s.end()
	return fmt.Errorf("drill: %s does not listen on %s", path, s.addr)
}

// end kills the process and those it started, and waits for it.
func (s *server) end() {
	// The error says that it is gone already.
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	<-s.gone
}

func (s *server) step(ctx context.Context, by time.Duration) error {
	return skewrun.Control(ctx, s.tool, s.file, "step", fmt.Sprintf("%+dns", by.Nanoseconds()))
}

// workspace is a folder that is gone afterwards.
func workspace() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp("", "escapement-drill-*")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}
