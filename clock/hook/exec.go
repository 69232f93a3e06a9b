package hook

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	keptOutput = 4096            // how much of a failing program's output goes into the error
	lingering  = 2 * time.Second // how long its children may keep its output open
)

// run starts a program and waits for it. When ctx ends, it and its children are killed.
func run(ctx context.Context, argv, env []string, input []byte) error {
	name := filepath.Base(argv[0])
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = bytes.NewReader(input)
	var out limited
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = lingering
	killWholeGroup(cmd)
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("hook: running %s: ended after the time allowed", name)
	}
	if said := strings.TrimSpace(out.String()); said != "" {
		return fmt.Errorf("hook: running %s: %w: %s", name, err, said)
	}
	return fmt.Errorf("hook: running %s: %w", name, err)
}

// limited keeps the first keptOutput bytes and counts the rest as written.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := keptOutput - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
