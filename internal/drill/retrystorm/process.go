package retrystorm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/escapement-io/escapement/internal/child"
)

// process is a running Serve.
type process struct {
	cmd    *exec.Cmd
	in     io.Closer
	out    io.Reader
	stderr child.Tail
	url    string
}

// start runs the command and waits until it listens.
func start(ctx context.Context, command []string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, command[0], command[1:]...)}
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
