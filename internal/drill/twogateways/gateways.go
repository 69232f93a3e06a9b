package twogateways

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement-io/escapement/internal/child"
)

// gateway is a running gateway process.
type gateway struct {
	url    string
	client *http.Client
	dead   atomic.Bool // it gets no more requests

	cmd  *exec.Cmd
	said child.Tail
	gone chan struct{}
	end  sync.Once
}

var serving = regexp.MustCompile(`^gateway on (http://\S+)$`)

const (
	startWait  = 20 * time.Second
	endWait    = 5 * time.Second
	answerWait = 5 * time.Second // for an answer, after which there is none
)

// startGateway runs a gateway and waits until it listens.
func startGateway(ctx context.Context, command []string) (*gateway, error) {
	g := &gateway{cmd: exec.Command(command[0], command[1:]...), gone: make(chan struct{})}
	g.client = &http.Client{Timeout: answerWait, Transport: &http.Transport{Proxy: nil, MaxIdleConnsPerHost: 1024, DisableCompression: true}}
	g.cmd.SysProcAttr = child.OwnGroup()
	pipe, err := g.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("drill: %w", err)
	}
	if err := g.cmd.Start(); err != nil {
		return nil, fmt.Errorf("drill: %w", err)
	}
	url := make(chan string, 1)
	go func() {
		defer close(g.gone)
		lines := bufio.NewScanner(pipe)
		for lines.Scan() {
			_, _ = g.said.Write(append(lines.Bytes(), '\n')) // never fails
			if m := serving.FindStringSubmatch(lines.Text()); m != nil {
				select {
				case url <- m[1]:
				default:
				}
			}
		}
		_ = g.cmd.Wait() // it was ended, or its absence shows
	}()
	select {
	case g.url = <-url:
		return g, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-g.gone:
		err = fmt.Errorf("drill: a gateway ended at once")
	case <-time.After(startWait):
		err = fmt.Errorf("drill: a gateway does not listen after %v", startWait)
	}
	g.stop()
	return nil, fmt.Errorf("%w\n%s", err, g.said.String())
}

// stop ends the gateway in order, or at once if it takes long, and waits for it.
func (g *gateway) stop() {
	g.end.Do(func() {
		g.client.CloseIdleConnections()
		select {
		case <-g.gone: // its number may be another's by now
			return
		default:
		}
		_ = child.End(g.cmd.Process) // fails if it has ended
		select {
		case <-g.gone:
		case <-time.After(endWait):
			_ = child.Kill(g.cmd.Process)
			<-g.gone
		}
	})
}

// kill ends the gateway at once; its share of the load goes to the others.
func (g *gateway) kill() {
	g.dead.Store(true)
	_ = child.Kill(g.cmd.Process) // fails if it has ended
	<-g.gone
}
