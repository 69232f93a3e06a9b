package retrystorm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/escapement-io/escapement/internal/child"
	"github.com/escapement-io/escapement/tools/skewrun"
)

// process is a running Serve under a wall clock of its own.
type process struct {
	cmd        *exec.Cmd
	in         io.Closer
	out        io.Reader
	stderr     child.Tail
	tool, file string // skewrun and what it reads the clock from
	url        string
}

// start runs the command on a clock that is the machine's until it is stepped, and waits
// until it listens.
func start(ctx context.Context, tool, dir string, command []string) (*process, error) {
	p := &process{tool: tool, file: filepath.Join(dir, "clock")}
	if err := skewrun.Control(ctx, tool, p.file, "set", "0"); err != nil {
		return nil, err
	}
	p.cmd = exec.CommandContext(ctx, tool, append([]string{"run", p.file, "--"}, command...)...)
	p.cmd.WaitDelay = 5 * time.Second
	p.cmd.Stderr = &p.stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("drill: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("drill: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("drill: %w", err)
	}
	p.in, p.out = in, out
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "http://") {
		return nil, errors.Join(errors.New("drill: the process to drill did not start"), p.stop())
	}
	p.url = lines.Text()
	return p, nil
}

// stop ends the process and waits for it.
func (p *process) stop() error {
	_ = p.in.Close() // fails if the process has ended, which Wait tells
	_, _ = io.Copy(io.Discard, p.out)
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("drill: the process under drill: %w\n%s", err, p.stderr.String())
	}
	return nil
}

func (p *process) step(ctx context.Context, by time.Duration) error {
	return skewrun.Control(ctx, p.tool, p.file, "step", fmt.Sprintf("%+dns", by.Nanoseconds()))
}
