package httplimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/escapement-io/escapement"
)

// CostFunc says how many units a request takes. A cost that is negative or above 2^53-1
// refuses the request with 400, so r.ContentLength, -1 if it is unknown, is no bypass.
type CostFunc func(r *http.Request) int64

// Keyed is one limit's part in All. Cost nil means that of WithCost, or 1.
type Keyed struct {
	Limiter *escapement.Limiter
	Key     KeyFunc
	Cost    CostFunc
}

// New returns middleware that lets pass what l allows under the request's key.
func New(l *escapement.Limiter, key KeyFunc, opts ...Option) func(http.Handler) http.Handler {
	return All([]Keyed{{Limiter: l, Key: key}}, opts...)
}

// All returns middleware that charges each request to every limit or to none of them
// (see escapement.TakeAll). It panics if there are none, more than
// escapement.MaxClaims, or one without a limiter or a key.
func All(limits []Keyed, opts ...Option) func(http.Handler) http.Handler {
	if len(limits) == 0 || len(limits) > escapement.MaxClaims {
		panic(fmt.Sprintf("httplimit: %d limits, want 1 to %d", len(limits), escapement.MaxClaims))
	}
	m := &middleware{
		triple: XTriple(""),
		outage: DefaultOutageWait,
		cost:   func(*http.Request) int64 { return 1 },
		refuse: WriteProblem,
	}
	for _, o := range opts {
		o(m)
	}
	for i, k := range limits {
		if k.Limiter == nil || k.Key == nil {
			panic(fmt.Sprintf("httplimit: limit %d has no limiter or no key function", i))
		}
		if k.Cost == nil {
			k.Cost = m.cost
		}
		m.limits = append(m.limits, k)
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if m.admit(w, r) {
				next.ServeHTTP(w, r)
			}
		})
	}
}

// middleware is what All was told, checked.
type middleware struct {
	limits  []Keyed
	style   Style
	triple  Triple
	jitter  Jitter
	outage  time.Duration
	cost    CostFunc
	refuse  RefuseFunc
	shadow  bool
	keyless bool // requests without a key pass
}

// admit decides on r and waits for its turn; if it answers the request it returns false.
func (m *middleware) admit(w http.ResponseWriter, r *http.Request) bool {
	uses, err := m.uses(r)
	if err != nil {
		return m.shadow || m.answer(w, r, &Refusal{Status: http.StatusBadRequest, Err: err})
	}
	if len(uses) == 0 {
		return true
	}
	allowed, parts, err := take(r.Context(), uses)
	if m.shadow {
		return true
	}
	named := make([]Named, len(parts))
	for i := range parts {
		named[i].Decision = &parts[i]
	}
	m.writeHeaders(w.Header(), named)
	if !allowed {
		return m.answer(w, r, refusal(named, err))
	}
	if err := hold(r.Context(), uses, named); err != nil {
		return m.answer(w, r, &Refusal{Status: http.StatusServiceUnavailable, Err: err})
	}
	return true
}

// uses is what the request asks of each limit.
func (m *middleware) uses(r *http.Request) ([]escapement.Use, error) {
	uses := make([]escapement.Use, 0, len(m.limits))
	for i := range m.limits {
		k := &m.limits[i]
		key, ok := k.Key(r)
		if !ok {
			if m.keyless {
				continue
			}
			return nil, fmt.Errorf("%w: limit %s", ErrNoKey, k.Limiter.Plan().Limit().Name)
		}
		uses = append(uses, escapement.Use{Limiter: k.Limiter, Key: BoundKey(key), Cost: k.Cost(r)})
	}
	return uses, nil
}

// take goes the shorter way for one limit.
func take(ctx context.Context, uses []escapement.Use) (bool, []escapement.Decision, error) {
	if len(uses) > 1 {
		return escapement.TakeAll(ctx, uses...)
	}
	d, err := uses[0].Limiter.Take(ctx, uses[0].Key, uses[0].Cost)
	return d.Allowed, []escapement.Decision{d}, err
}

// hold waits for the turn of an allowed request, the latest of its limits'. If ctx ends
// before, what was taken is given back.
func hold(ctx context.Context, uses []escapement.Use, ds []Named) error {
	var delay time.Duration
	for i := range ds {
		if ds[i].visible() {
			delay = max(delay, ds[i].Decision.Delay())
		}
	}
	if delay <= 0 {
		return nil
	}
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
	}
	for i, u := range uses {
		// A store that is away keeps it, on the strict side.
		_ = u.Limiter.Refund(context.WithoutCancel(ctx), u.Key, *ds[i].Decision)
	}
	return ctx.Err()
}

func (m *middleware) writeHeaders(h http.Header, ds []Named) {
	if m.style == X {
		m.triple.Write(h, ds...)
		return
	}
	WriteHeaders(h, m.style, ds...)
}

// answer refuses the request and returns false.
func (m *middleware) answer(w http.ResponseWriter, r *http.Request, f *Refusal) bool {
	switch f.Status {
	case http.StatusTooManyRequests:
		f.Wait = m.jitter.Add(f.Wait)
		WriteRetryAfter(w.Header(), f.Wait)
	case http.StatusServiceUnavailable:
		f.Wait = m.jitter.Add(m.outage)
		WriteRetryAfter(w.Header(), f.Wait)
	}
	m.refuse(w, r, f)
	return false
}

// refusal tells a limit that is used up from a store that could not answer.
func refusal(ds []Named, err error) *Refusal {
	if errors.Is(err, escapement.ErrCost) {
		return &Refusal{Status: http.StatusBadRequest, Err: err, Limits: ds}
	}
	f := &Refusal{Status: http.StatusServiceUnavailable, Err: err, Limits: ds}
	for i := range ds {
		if d := &ds[i]; d.refused() && d.known() {
			f.Status, f.Wait = http.StatusTooManyRequests, Wait(ds...)
		}
	}
	return f
}
