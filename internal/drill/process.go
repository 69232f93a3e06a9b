package drill

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/child"
)

// process is a running Serve under a clock of its own.
type process struct {
	cmd    *exec.Cmd
	in     io.Closer
	stderr child.Tail
	url    string
	client http.Client
	ahead  algo.Mono // its monotonic clock minus ours
	wall   int64     // its wall clock at our instant 0, in microseconds

	done   chan struct{} // closed when its output has ended
	mu     sync.Mutex
	events []clock.Event // guarded by mu
}

// start runs the command and waits until it listens.
func start(ctx context.Context, command []string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, command[0], command[1:]...), done: make(chan struct{})}
	p.cmd.WaitDelay = 5 * time.Second
	p.cmd.Stderr = &p.stderr
	p.client.Transport = &http.Transport{Proxy: nil, MaxIdleConnsPerHost: 1}
	p.client.Timeout = 10 * time.Second
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.in = in
	lines := bufio.NewScanner(out)
	var first message
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &first) != nil || first.URL == "" {
		close(p.done)
		return nil, errors.Join(fmt.Errorf("drill: the process to drill did not start"), p.stop())
	}
	p.url = first.URL
	go func() {
		defer close(p.done)
		for lines.Scan() {
			var m message
			if json.Unmarshal(lines.Bytes(), &m) == nil && m.Event != nil {
				p.mu.Lock()
				p.events = append(p.events, *m.Event)
				p.mu.Unlock()
			}
		}
	}()
	if err := p.compareClocks(ctx); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// stop ends the process and waits for it.
func (p *process) stop() error {
	_ = p.in.Close() // fails if the process has ended, which Wait tells
	<-p.done
	err := p.cmd.Wait()
	p.client.CloseIdleConnections()
	if err != nil {
		return fmt.Errorf("drill: the process under drill: %w\n%s", err, p.stderr.String())
	}
	return nil
}

// compareClocks asks for the time of the process until both monotonic clocks, which
// differ by a constant, are known to each other: the best of eight exchanges.
func (p *process) compareClocks(ctx context.Context) error {
	var got []clock.Exchange
	walls := map[int64]int64{}
	for range 8 {
		var r reading
		before := clock.Mono()
		body, _, err := p.get(ctx, "/clock")
		after := clock.Mono()
		if err != nil {
			return err
		}
		if err := json.Unmarshal(body, &r); err != nil {
			return fmt.Errorf("drill: the process under drill answered %q: %w", body, err)
		}
		got = append(got, clock.Exchange{Before: before, After: after, Remote: r.Mono})
		walls[r.Mono] = r.Wall
	}
	best, ok := clock.Best(got)
	if !ok {
		return errors.New("drill: the monotonic clock went back")
	}
	p.ahead = algo.Mono(best.Time) - best.At
	p.wall = walls[best.Time] - int64(best.At)/1000
	return nil
}

func (p *process) get(ctx context.Context, path string) ([]byte, *http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		return nil, nil, err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, nil, fmt.Errorf("drill: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return body, resp, err
}

// ask makes one request under the limit.
func (p *process) ask(ctx context.Context) (Asked, error) {
	a := Asked{Sent: clock.Mono()}
	_, resp, err := p.get(ctx, "/")
	a.Answered = clock.Mono()
	if err != nil {
		return a, err
	}
	switch resp.StatusCode {
	case http.StatusOK:
		a.Admitted = true
	case http.StatusTooManyRequests:
	default:
		return a, fmt.Errorf("drill: the process under drill answered %s", resp.Status)
	}
	bits, _ := strconv.ParseUint(resp.Header.Get(recipesHeader), 10, 8)
	a.Recipes = uint8(bits)
	return a, nil
}

// seen are the changes of the clocks that were reported, on our monotonic clock. Unclear,
// rebased and switched are about guarded time, not about the clocks.
func (p *process) seen() []Seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	var seen []Seen
	for _, e := range p.events {
		if e.Kind == clock.Step || e.Kind == clock.Suspend || e.Kind == clock.Leap {
			seen = append(seen, Seen{Kind: e.Kind, Size: e.Size, At: e.At - p.ahead})
		}
	}
	return seen
}
