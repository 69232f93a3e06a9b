package httpretry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/retry"
)

// Transport is an http.RoundTripper that retries. It is safe for concurrent use; share
// one, since what it saves up for retries is its own.
type Transport struct {
	base    http.RoundTripper
	table   *retry.Table
	maxBody int64
	observe func(Event)
}

// New returns a Transport that sends its attempts by base, nil for
// http.DefaultTransport. It reports everything that is out of range at once.
//
// Response bodies of base must allow Close during Read, as those of http.Transport do.
func New(base http.RoundTripper, c Config) (*Transport, error) {
	rules, err := c.rules().Complete()
	if c.MaxBody == 0 {
		c.MaxBody = defaultMaxBody
	}
	if c.MaxBody < -1 || c.MaxBody > mostBody {
		err = errors.Join(err, fmt.Errorf("MaxBody is %d: use -1 to %d, or 0 for %d", c.MaxBody, mostBody, defaultMaxBody))
	}
	if err != nil {
		return nil, fmt.Errorf("httpretry: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if base == nil {
		base = http.DefaultTransport
	}
	if c.Observe == nil {
		c.Observe = func(Event) {}
	}
	return &Transport{base: base, table: retry.NewTable(rules, c.Random), maxBody: c.MaxBody, observe: c.Observe}, nil
}

// RoundTrip sends the request, and again as long as the package comment says so. It
// returns what the last attempt brought, untouched. If the context of the request ends
// while it waits, it returns the cause of that.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	bodies, err := newSource(req, t.maxBody)
	if err != nil {
		return nil, err
	}
	host := hostOf(req)
	t.table.Request(host)
	attempt, err := with(req, &bodies)
	if err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		began := clock.Mono()
		resp, err := t.base.RoundTrip(attempt)
		if resp == nil && err == nil {
			return nil, errors.New("httpretry: the base transport returned neither a response nor an error")
		}
		answer := judge(req.Context(), resp, err)
		if answer.Kind == retry.Done && err == nil {
			return resp, nil
		}
		v := t.table.Decide(host, retry.Attempt{
			Number:     n,
			Idempotent: idempotent(req),
			Repeatable: bodies.again != nil,
			Left:       retry.Left(req.Context()),
			Took:       clock.Since(began),
		}, answer)
		if v.Retry {
			var failed error
			if attempt, failed = with(req, &bodies); failed != nil {
				v = retry.Verdict{Reason: retry.Body}
			}
		}
		t.report(req, host, n, resp, err, answer, v)
		if !v.Retry {
			return resp, err
		}
		if err := wait(req.Context(), resp, v.Wait); err != nil {
			if attempt.Body != nil {
				_ = attempt.Body.Close()
			}
			return nil, err
		}
	}
}

// with is the request of the next attempt.
func with(req *http.Request, bodies *source) (*http.Request, error) {
	body, err := bodies.next()
	if err != nil {
		return nil, err
	}
	attempt := req.WithContext(req.Context())
	attempt.Body = body
	attempt.GetBody = bodies.again
	if body == nil || body == http.NoBody {
		attempt.GetBody = req.GetBody
	}
	return attempt, nil
}

// wait drains what came back while the time passes.
func wait(ctx context.Context, resp *http.Response, d time.Duration) error {
	began := clock.Mono()
	drain(resp, d)
	return retry.Pause(ctx, d-clock.Since(began))
}

func (t *Transport) report(req *http.Request, host string, n int, resp *http.Response, err error, a retry.Answer, v retry.Verdict) {
	e := Event{Method: req.Method, Host: host, Attempt: n, Err: err, Told: -1, Retry: v.Retry, Wait: v.Wait, Reason: Reason(v.Reason)}
	if resp != nil {
		e.Status = resp.StatusCode
	}
	if a.Told {
		e.Told = a.Wait
	}
	if e.Method == "" {
		e.Method = http.MethodGet
	}
	t.observe(e)
}

// CloseIdleConnections closes those of the base, if it has any.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
