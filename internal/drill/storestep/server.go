package storestep

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/escapement-io/escapement/internal/redisserver"
	"github.com/escapement-io/escapement/tools/skewrun"
)

// bench is where servers are run under clocks of their own.
type bench struct {
	dir, tool string
	servers   []*server
}

// newBench makes a folder and builds skewrun.
func newBench(ctx context.Context) (*bench, error) {
	if _, err := redisserver.Binary(); err != nil {
		return nil, fmt.Errorf("drill: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	b := &bench{}
	if b.tool, err = skewrun.Build(ctx, filepath.Join(cache, "escapement")); err != nil {
		return nil, err
	}
	if err := skewrun.Usable(ctx, b.tool); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "escapement-drill-*"); err != nil {
		return nil, fmt.Errorf("drill: %w", err)
	}
	return b, nil
}

// end stops every server.
func (b *bench) end() {
	for i := len(b.servers) - 1; i >= 0; i-- {
		b.servers[i].Stop()
	}
	_ = os.RemoveAll(b.dir) // what stays is temporary
}

// server is a redis-server under a wall clock of its own.
type server struct {
	*redisserver.Server
	tool, file string
}

func (b *bench) start(ctx context.Context, o redisserver.Options) (*server, error) {
	s := &server{tool: b.tool, file: filepath.Join(b.dir, fmt.Sprintf("clock-%d", len(b.servers)))}
	if err := skewrun.Control(ctx, b.tool, s.file, "set", "0"); err != nil {
		return nil, err
	}
	o.Wrap = func(command []string) []string {
		return append([]string{b.tool, "run", s.file, "--"}, command...)
	}
	var err error
	if s.Server, err = redisserver.Start(ctx, o); err != nil {
		return nil, fmt.Errorf("drill: %w", err)
	}
	b.servers = append(b.servers, s)
	return s, nil
}

func (s *server) step(ctx context.Context, by time.Duration) error {
	return skewrun.Control(ctx, s.tool, s.file, "step", fmt.Sprintf("%+dns", by.Nanoseconds()))
}
