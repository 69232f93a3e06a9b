// Package ntp makes references for package clock of NTP servers.
package ntp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/beevik/ntp"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

const (
	within   = 5 * time.Second  // an answer that takes longer does not come
	banished = 15 * time.Minute // how long a server is left alone that asks us to go away
)

// Reference is an NTP server, asked with one packet per measurement. Its error is the root
// distance: half the delay to the server and from there to the primary clock, and the
// dispersion that the servers claim on the way.
type Reference struct {
	host   string
	anchor int64 // Unix time minus monotonic time when the reference was made

	mu    sync.Mutex
	quiet algo.Mono // not to be asked before, unless 0
}

// Server returns the reference for a host, "host:port" or "[address]:port"; the port is 123
// unless given. Nothing is resolved or sent before the first measurement. Ask no server
// more often than once a minute without its owner's consent.
func Server(host string) *Reference {
	return &Reference{host: host, anchor: clock.Wall().UnixNano() - int64(clock.Mono())}
}

// Name is "ntp" and the host.
func (r *Reference) Name() string { return "ntp " + r.host }

// Measure asks the server once. Local time is taken from the monotonic clock, so a step of
// the wall clock during the exchange does no harm. A server that answers with a kiss of
// death, which is one of the codes DENY, RSTR and RATE, is not asked again for 15 minutes.
func (r *Reference) Measure(ctx context.Context) (clock.Sample, error) {
	if left := r.left(); left > 0 {
		return clock.Sample{}, r.failed(fmt.Errorf("the server asked us to go away; asking again in %v", left.Round(time.Second)))
	}
	timeout := within
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, clock.Until(deadline))
	}
	if err := ctx.Err(); err != nil || timeout <= 0 {
		return clock.Sample{}, r.failed(errors.Join(err, context.DeadlineExceeded))
	}
	var sent, received time.Time // the first and the last reading of the exchange
	resp, err := ntp.QueryWithOptions(r.host, ntp.QueryOptions{
		Timeout: timeout,
		GetSystemTime: func() time.Time {
			if received = r.now(); sent.IsZero() {
				sent = received
			}
			return received
		},
		Dialer: func(_, remote string) (net.Conn, error) {
			return (&net.Dialer{Timeout: timeout}).DialContext(ctx, "udp", remote)
		},
	})
	after := clock.Mono()
	if err != nil {
		return clock.Sample{}, r.failed(err)
	}
	switch code := resp.KissCode; {
	case code == "DENY" || code == "RSTR" || code == "RATE":
		r.mu.Lock()
		r.quiet = after + algo.Mono(banished)
		r.mu.Unlock()
		return clock.Sample{}, r.failed(fmt.Errorf("kiss of death %q: ask it less often, or another server", code))
	case resp.IsKissOfDeath():
		return clock.Sample{}, r.failed(fmt.Errorf("kiss %q: the server has no time to give yet", code))
	}
	if err := errors.Join(resp.Validate(), plausible(resp, sent, received)); err != nil {
		return clock.Sample{}, r.failed(fmt.Errorf("the answer is not fit to set a clock by: %w", err))
	}
	at := after - algo.Mono(resp.RTT/2)
	return clock.Sample{
		At:   at,
		Time: r.anchor + int64(at) + int64(resp.ClockOffset),
		Err:  resp.RootDistance + resp.Precision,
		RTT:  resp.RTT,
		N:    1,
	}, nil
}

// plausible refuses what a server cannot say of itself: a precision of a second or more, and
// to have held the question for longer than it was away, which would move the offset by
// half of that without showing in the error.
func plausible(resp *ntp.Response, sent, received time.Time) error {
	if resp.Precision < 0 || resp.Precision >= time.Second {
		return fmt.Errorf("it claims a precision of %v", resp.Precision)
	}
	// The offset is ((t2-t1)+(t3-t4))/2, which gives t2, when the question was received.
	t3 := resp.Time.Add(-resp.ClockOffset)
	held, away := t3.Sub(sent)+t3.Sub(received), received.Sub(sent)
	if held > away+resp.Precision+time.Millisecond {
		return fmt.Errorf("it claims to have held the question for %v, and the answer came after %v", held, away)
	}
	return nil
}

// now is a time line of this reference alone: near UTC, and steady.
func (r *Reference) now() time.Time { return time.Unix(0, r.anchor+int64(clock.Mono())) }

func (r *Reference) left() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.quiet == 0 {
		return 0
	}
	return time.Duration(r.quiet - clock.Mono())
}

func (r *Reference) failed(err error) error {
	return fmt.Errorf("ntp: asking %s for the time: %w", r.host, err)
}
