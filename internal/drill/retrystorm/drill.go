package retrystorm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/drill/bench"
)

const (
	grace    = time.Minute      // what building, starting and ending may take beside the load
	patience = 10 * time.Second // of a client, for one request
)

// Phase is a stretch of load on a server of its own.
type Phase struct {
	Limiter, Client string
	Step            time.Duration // of the server's wall clock; zero if it was left alone
	Stepped         algo.Mono     // just before it, or when it would have been
	Began, Ended    algo.Mono     // of the load
	Requests        []Request
}

// Run drills every phase, one after the other. It needs Linux on x86-64 with gcc and
// ptrace: skewrun.ErrUnsupported says what is missing.
func Run(ctx context.Context, o Options) (*Report, error) { return run(ctx, o, all) }

func run(ctx context.Context, o Options, setups []setup) (*Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	load := time.Duration(len(setups)) * (o.For + patience)
	ctx, cancel := context.WithTimeoutCause(ctx, load+grace, fmt.Errorf("drill: not done %v after the load was to end: this machine is too busy", grace))
	defer cancel()
	on, err := bench.New()
	if err != nil {
		return nil, err
	}
	defer on.End()
	var phases []Phase
	for i, s := range setups {
		if o.Progress != nil {
			o.Progress(i)
		}
		p, err := o.phase(ctx, on, s)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		} else if err != nil {
			return nil, err
		}
		phases = append(phases, *p)
	}
	return Judge(&o, phases), nil
}

// phase starts a server, loads it and steps its clock.
func (o *Options) phase(ctx context.Context, on *bench.Bench, s setup) (_ *Phase, err error) {
	wall, err := on.Clock(ctx)
	if err != nil {
		return nil, err
	}
	server, err := start(ctx, wall.Under(o.Child(s.limiter)))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	base := connections(o.Clients)
	defer base.CloseIdleConnections()
	client, err := newClient(s.client, base)
	if err != nil {
		return nil, err
	}
	p := &Phase{Limiter: s.limiter, Client: s.client, Requests: make([]Request, int(float64(o.Rate)*o.For.Seconds()))}
	if s.steps {
		p.Step = o.Step
	}
	p.Began = clock.Mono()
	p.Ended = p.Began + algo.Mono(o.For)
	p.Stepped = p.Began + algo.Mono(o.stepAfter())

	ctx, cancel := context.WithCancel(ctx)
	var stepping sync.WaitGroup
	defer func() { cancel(); stepping.Wait() }()
	failed := make(chan error, 1)
	stepping.Go(func() {
		err := until(ctx, p.Stepped)
		if err == nil && s.steps {
			p.Stepped = clock.Mono()
			err = wall.Step(ctx, o.Step)
		}
		failed <- err
	})
	if err := o.press(ctx, client, server.url, p); err != nil {
		return nil, err
	}
	return p, <-failed
}

// stepAfter is the time from now until the step: the server's wall clock is still that of
// this machine.
func (o *Options) stepAfter() time.Duration {
	half := o.Limit.Per / 2
	at := clock.Wall().Add(settled(o.Limit.Per))
	into := time.Duration(at.UnixNano()) % half
	return settled(o.Limit.Per) + (half+o.Limit.Per/10-into)%half
}

// press makes the requests when they are due, whatever becomes of those before, and waits
// for the last.
func (o *Options) press(ctx context.Context, by http.RoundTripper, url string, p *Phase) error {
	var load sync.WaitGroup
	defer load.Wait()
	for i := range p.Requests {
		r := &p.Requests[i]
		r.Due = p.Began + algo.Mono(int64(i)*int64(time.Second)/int64(o.Rate))
		if err := until(ctx, r.Due); err != nil {
			return err
		}
		load.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			send(ctx, by, url, r)
		})
	}
	return until(ctx, p.Ended)
}

// until waits for an instant; one of the past has come.
func until(ctx context.Context, at algo.Mono) error {
	d := time.Duration(at - clock.Mono())
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
