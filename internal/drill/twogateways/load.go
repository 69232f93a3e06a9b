package twogateways

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

const (
	maxUnderWay = 4096 // requests of the load; beyond that the machine is too slow
	workers     = 128  // who make a burst
	tooLate     = 10 * time.Millisecond

	// ahead is how long after a boundary the load begins, so that no error of the mapping
	// puts a request before it.
	ahead = 2 * time.Millisecond
)

// errOverrun says that requests wait for each other.
var errOverrun = fmt.Errorf("drill: %d requests are under way: this machine is too busy", maxUnderWay)

// ask makes one request, and keeps what was said.
func (g *gateway) ask(ctx context.Context, path, number string, a *asked) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+path, nil)
	if err != nil {
		return err
	}
	if number != "" {
		req.Header[numberField] = []string{number}
	}
	a.sent = clock.Mono()
	resp, err := g.client.Do(req)
	a.answered = clock.Mono()
	if err != nil {
		return nil // no answer, which the status says
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // the status is known
	_ = resp.Body.Close()
	if resp.StatusCode == admitted {
		if a.stamp, err = ParseStamp(resp.Header.Get(StampField)); err != nil {
			return err
		}
	}
	a.status = resp.StatusCode
	return nil
}

// load is a load under way.
type load struct {
	gateways []*gateway
	all      []asked
	going    sync.WaitGroup
	underWay atomic.Int64
	once     sync.Once
	err      error
	fail     context.CancelFunc
}

func (l *load) failed(err error) {
	l.once.Do(func() { l.err = err; l.fail() })
}

// pick is the gateway whose turn it is, of those that live.
func (l *load) pick(n int) *gateway {
	for i := range l.gateways {
		if g := l.gateways[(n+i)%len(l.gateways)]; !g.dead.Load() {
			return g
		}
	}
	return l.gateways[n%len(l.gateways)]
}

func (l *load) make(ctx context.Context, n int) {
	a := &l.all[n]
	g := l.pick(n)
	if err := g.ask(ctx, drillPath, strconv.Itoa(n), a); err != nil {
		l.failed(err)
	}
}

// steady sends requests at a fixed rate, whatever the answers.
func (l *load) steady(ctx context.Context, from algo.Mono, rate int) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := range l.all {
		due := from + algo.Mono(ahead) + algo.Mono(int64(n)*int64(time.Second)/int64(rate))
		l.all[n].due = due
		if wait := time.Duration(due - clock.Mono()); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		}
		if l.underWay.Add(1) > maxUnderWay {
			l.failed(errOverrun)
			return
		}
		l.going.Go(func() {
			l.make(ctx, n)
			l.underWay.Add(-1)
		})
	}
}

// burst sends the requests from..to as fast as this machine can, until it is over.
func (l *load) burst(ctx context.Context, due, over algo.Mono, from, to int) {
	if !sleep(ctx, due) {
		return
	}
	var next atomic.Int64
	next.Store(int64(from))
	for range workers {
		l.going.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= to || clock.Mono() >= over || ctx.Err() != nil {
					return
				}
				l.all[n].due = clock.Mono()
				l.make(ctx, n)
			}
		})
	}
	l.going.Wait()
}

// sleep waits until an instant, and says whether the context let it.
func sleep(ctx context.Context, until algo.Mono) bool {
	timer := time.NewTimer(time.Duration(until - clock.Mono()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// press makes the whole load from an instant on.
func press(ctx context.Context, o *Options, gateways []*gateway, from algo.Mono, covered time.Duration) ([]asked, error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &load{gateways: gateways, fail: cancel}
	if !o.Burst {
		l.all = make([]asked, int(int64(o.Rate)*int64(covered)/int64(time.Second)))
		l.steady(inner, from, o.Rate)
	} else {
		each, every := int(o.Limit)*o.Instances, time.Duration(o.each())*o.Per
		times := int((o.For + every - o.Per) / every)
		l.all = make([]asked, each*times)
		for i := range times {
			at := from + algo.Mono(time.Duration(i)*every)
			l.burst(inner, at+algo.Mono(ahead), at+algo.Mono(o.Per)*9/10, i*each, (i+1)*each)
		}
		sleep(inner, from+algo.Mono(covered))
	}
	l.going.Wait()
	return l.all, errors.Join(l.err, ctx.Err())
}

// warm makes connections to every gateway, and has the first tell what the store's line is
// on this process's monotonic clock.
func warm(ctx context.Context, gateways []*gateway) (line, at algo.Mono, err error) {
	const (
		connections = 8
		exchanges   = 16
	)
	errs := make([]error, len(gateways))
	var all sync.WaitGroup
	for i, g := range gateways {
		all.Go(func() {
			var some sync.WaitGroup
			each := make([]error, connections)
			for k := range connections {
				some.Go(func() { each[k] = g.reach(ctx) })
			}
			some.Wait()
			errs[i] = errors.Join(each...)
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, 0, err
	}
	var got []clock.Exchange
	for range exchanges {
		var a asked
		if err := gateways[0].ask(ctx, warmPath, "", &a); err != nil {
			return 0, 0, err
		}
		if a.status == admitted {
			got = append(got, clock.Exchange{Before: a.sent, After: a.answered, Remote: int64(a.stamp.At) * 1000})
		}
	}
	best, ok := clock.Best(got)
	if !ok {
		return 0, 0, errors.New("drill: the gateways do not tell the time of the store")
	}
	return algo.Mono(best.Time), best.At, nil
}

// reach asks until the store decides.
func (g *gateway) reach(ctx context.Context) error {
	var a asked
	for range 100 {
		if err := g.ask(ctx, warmPath, "", &a); err != nil {
			return err
		}
		if a.status == admitted {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return fmt.Errorf("drill: a gateway answers with status %d\n%s", a.status, g.said.String())
}
