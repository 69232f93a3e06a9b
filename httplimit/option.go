package httplimit

import "time"

// Option configures New and All.
type Option func(*middleware)

// WithStyle chooses the fields that describe the limits; without it IETF.
func WithStyle(s Style) Option { return func(m *middleware) { m.style = s } }

// WithTriple chooses style X with other field names.
func WithTriple(t Triple) Option {
	return func(m *middleware) { m.style, m.triple = X, t }
}

// WithJitter lengthens each Retry-After a little, so that clients refused together do
// not come back together.
func WithJitter(j Jitter) Option { return func(m *middleware) { m.jitter = j } }

// WithCost says what a request costs where Keyed does not; without it 1.
func WithCost(f CostFunc) Option { return func(m *middleware) { m.cost = f } }

// WithRefusal answers refused requests by f instead of WriteProblem.
func WithRefusal(f RefuseFunc) Option { return func(m *middleware) { m.refuse = f } }

// WithShadow decides and charges as always, then lets every request pass at once and
// tells nobody: to learn from an escapement.Observer what a limit would do. The Shadow of
// one escapement.Limit does the same for that limit alone.
func WithShadow() Option { return func(m *middleware) { m.shadow = true } }

// PassWithoutKey does not apply a limit to requests that have no key for it. Without this
// they are refused with 400.
func PassWithoutKey() Option { return func(m *middleware) { m.keyless = true } }

// DefaultOutageWait is what clients are told to wait if a store could not answer and the
// limit's policy is to deny.
const DefaultOutageWait = 5 * time.Second

// WithOutageWait replaces DefaultOutageWait.
func WithOutageWait(d time.Duration) Option { return func(m *middleware) { m.outage = d } }
