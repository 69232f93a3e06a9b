package cases

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/httplimit"
)

// once does an event once, at the time the world shows.
func (k *course) once(ctx context.Context, e *Event) (*answer, error) {
	switch e.Op {
	case "allow":
		if e.Fault != "" {
			return k.failing(ctx, e)
		}
		return k.allow(ctx, e), nil
	case "peek":
		return k.peek(ctx, e), nil
	case "credit":
		return k.credit(ctx, e), nil
	case "reserve":
		return k.reserve(ctx, e), nil
	case "cancel":
		return k.cancel(ctx, e), nil
	case "wait":
		return k.wait(ctx, e), nil
	case "reconfigure":
		return k.reconfigure(ctx, e)
	case "reload_same":
		return k.reload()
	case "suspend":
		k.w.suspend(e.UntilMS)
		k.s.Woken()
	case "node_restart":
		if err := k.s.(faulty).Fault(ctx, e.Op); err != nil {
			return failed(err), nil
		}
		return k.reload()
	case "script_flush", "store_restart":
		if err := k.s.(faulty).Fault(ctx, e.Op); err != nil {
			return failed(err), nil
		}
	case "cleanup", "note", "flush":
	}
	return &answer{}, nil
}

// failing asks while something happens to the call. The store knows its scripts by then,
// so that the fault meets the decision.
func (k *course) failing(ctx context.Context, e *Event) (*answer, error) {
	_ = k.allow(ctx, &Event{Op: e.Op, Keys: e.Keys})
	if err := k.s.(faulty).Fault(ctx, e.Fault); err != nil {
		return failed(err), nil
	}
	a := k.allow(ctx, e)
	if a.err == "" {
		return failed(errors.New("the fault did not meet the decision")), nil
	}
	if err := k.s.(faulty).Back(ctx); err != nil {
		return failed(err), nil
	}
	a.err = "" // the case makes it fail; what it charged shows in the events to come
	return a, nil
}

// limiter is the one of a case with a single limit; nil for several.
func (k *course) limiter() *escapement.Limiter {
	if len(k.c.Limits) > 0 {
		return nil
	}
	return k.limiters[single]
}

// key is what an event is counted under. Addresses and parts go the way of requests.
func (k *course) key(e *Event) string {
	if len(e.KeyParts) > 0 {
		parts := make([]httplimit.KeyFunc, len(e.KeyParts))
		for i, p := range e.KeyParts {
			parts[i] = func(*http.Request) (string, bool) { return p, true }
		}
		key, _ := httplimit.Composite(parts...)(nil)
		return httplimit.BoundKey(key)
	}
	if l := k.c.Limit; e.Peer != "" && l != nil && l.Ident != nil {
		clients := httplimit.Clients{IPv6Prefix: l.Ident.IPv6Prefix}
		for _, p := range l.Ident.TrustedProxies {
			clients.Trusted = append(clients.Trusted, netip.MustParsePrefix(p)) // checked by Parse
		}
		r := &http.Request{RemoteAddr: e.Peer, Header: http.Header{}}
		if e.XFF != "" {
			r.Header.Set("X-Forwarded-For", e.XFF)
		}
		key, _ := httplimit.RemoteAddr(clients)(r)
		return httplimit.BoundKey(key)
	}
	if e.Key != nil {
		return *e.Key
	}
	return "k"
}

func ptr[T any](v T) *T { return &v }

// failed is the answer to an event that got no decision.
func failed(err error) *answer {
	a := &answer{allowed: ptr(false)}
	switch {
	case errors.Is(err, escapement.ErrCost):
		a.err = "invalid_cost"
	case errors.Is(err, context.DeadlineExceeded):
		a.err = "deadline_exceeded"
	case errors.Is(err, context.Canceled):
		a.err = "canceled"
	case errors.Is(err, escapement.ErrLimited):
		a.err = "never"
	default:
		a.err = "store: " + err.Error()
	}
	return a
}

// ceilMS rounds a wait up to milliseconds.
func ceilMS(d time.Duration) *Wait {
	if d == escapement.Never {
		return &Wait{Set: true, Never: true}
	}
	return &Wait{Set: true, MS: int64((d-1)/time.Millisecond) + min(1, int64(d))}
}

// decided is the answer that one decision amounts to. The wait in seconds is read from
// the header that clients get.
func decided(d *escapement.Decision) *answer {
	a := &answer{allowed: ptr(d.Allowed), remaining: ptr(d.Remaining()), retry: ceilMS(d.RetryAfter()), reset: ceilMS(d.ResetAfter())}
	if !d.Allowed {
		a.retryS = retryAfter(d.RetryAfter())
	}
	return a
}

func retryAfter(wait time.Duration) *int64 {
	h := http.Header{}
	httplimit.WriteRetryAfter(h, wait)
	s, err := strconv.ParseInt(h.Get("Retry-After"), 10, 64)
	if err != nil {
		return nil
	}
	return &s
}

func (k *course) allow(ctx context.Context, e *Event) *answer {
	if k.limiter() == nil {
		return k.takeAll(ctx, e)
	}
	if e.Cost.Bad {
		return failed(escapement.ErrCost)
	}
	d, err := k.limiter().Take(ctx, k.key(e), e.Cost.Units)
	if err != nil {
		return failed(err)
	}
	return decided(&d)
}

func (k *course) peek(ctx context.Context, e *Event) *answer {
	l := k.limiter()
	if l == nil {
		return &answer{remainingBy: k.remaining(ctx, e)}
	}
	d, err := l.Peek(ctx, k.key(e))
	if err != nil {
		return failed(err)
	}
	a := decided(&d)
	a.allowed, a.retry, a.retryS = nil, nil, nil
	return a
}

// takeAll charges the limits that the event names, or none.
func (k *course) takeAll(ctx context.Context, e *Event) *answer {
	var uses []escapement.Use
	for i := range k.c.Limits {
		name := k.c.Limits[i].Name
		key, ok := e.Keys[name]
		if !ok {
			continue
		}
		cost, ok := e.Costs[name]
		if !ok {
			cost = e.Cost
		}
		if cost.Bad {
			return failed(escapement.ErrCost)
		}
		uses = append(uses, escapement.Use{Limiter: k.limiters[name], Key: key, Cost: cost.Units})
	}
	allowed, parts, err := escapement.TakeAll(ctx, uses...)
	if err != nil {
		return failed(err)
	}
	a := &answer{allowed: &allowed, remainingBy: k.remaining(ctx, e), deniedBy: []string{}}
	var wait time.Duration
	for i := range parts {
		if l := uses[i].Limiter.Plan().Limit(); !parts[i].Allowed && !l.Shadow {
			a.deniedBy = append(a.deniedBy, l.Name)
			wait = max(wait, parts[i].RetryAfter())
		}
	}
	a.retry = ceilMS(wait)
	if !allowed {
		a.retryS = retryAfter(wait)
	}
	return a
}

// remaining looks at every limit that the event names.
func (k *course) remaining(ctx context.Context, e *Event) map[string]int64 {
	by := map[string]int64{}
	for name, key := range e.Keys {
		if d, err := k.limiters[name].Peek(ctx, key); err == nil {
			by[name] = d.Remaining()
		}
	}
	return by
}

// credit gives units back that belong to no decision: a receipt of this moment.
func (k *course) credit(ctx context.Context, e *Event) *answer {
	l := k.limiter()
	if l == nil {
		return failed(errors.New("credit in a case with several limits"))
	}
	if e.Cost.Bad || e.Cost.Units < 0 || e.Cost.Units > algo.MaxInt {
		return failed(escapement.ErrCost)
	}
	key := k.key(e)
	now, err := l.Peek(ctx, key)
	if err != nil {
		return failed(err)
	}
	c := escapement.Claim{Plan: l.Plan(), Key: key, Mode: escapement.Refund,
		Receipt: algo.Receipt{At: now.At(), Units: min(e.Cost.Units, now.Limit())}}
	answers := make([]escapement.Answer, 1)
	k.s.Store().Decide(ctx, []escapement.Request{{Claims: []escapement.Claim{c}}}, answers)
	if answers[0].Outcome != escapement.Decided {
		return failed(answers[0].Err)
	}
	return k.peek(ctx, e)
}

func (k *course) reserve(ctx context.Context, e *Event) *answer {
	l := k.limiter()
	if l == nil {
		return failed(errors.New("reserve in a case with several limits"))
	}
	if e.Cost.Bad {
		return failed(escapement.ErrCost)
	}
	key := k.key(e)
	r, err := l.Reserve(ctx, key, e.Cost.Units, escapement.Never)
	if err != nil {
		return failed(err)
	}
	a := decided(&r.Decision)
	if !r.Decision.Allowed {
		if r.Decision.RetryAfter() == escapement.Never {
			a.err = "never"
		}
		return a
	}
	k.held[e.ID], k.heldKey[e.ID] = r, key
	a.wait = ptr(ceilMS(r.Decision.Delay()).MS)
	return a
}

func (k *course) cancel(ctx context.Context, e *Event) *answer {
	if r := k.held[e.ID]; r != nil {
		if err := r.Cancel(ctx); err != nil {
			return failed(err)
		}
	}
	key, ok := k.heldKey[e.ID]
	if !ok {
		key = k.key(e)
	}
	return k.peek(ctx, &Event{Key: &key})
}

// wait does in virtual time what Limiter.Wait does in real time: it reserves with the
// deadline for patience. Where that is refused Wait itself says why, which it does at
// once.
func (k *course) wait(ctx context.Context, e *Event) *answer {
	l := k.limiter()
	if l == nil {
		return failed(errors.New("wait in a case with several limits"))
	}
	if e.Cost.Bad {
		return failed(escapement.ErrCost)
	}
	key, patience := k.key(e), escapement.Never
	if e.DeadlineMS != nil {
		patience = time.Duration(min(max(*e.DeadlineMS, 0), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	}
	if e.Ctx != "canceled" {
		r, err := l.Reserve(ctx, key, e.Cost.Units, patience)
		if err != nil {
			return failed(err)
		}
		if r.Decision.Allowed {
			return k.waiting(e, r)
		}
		if r.Decision.RetryAfter() != escapement.Never && e.DeadlineMS == nil {
			return failed(errors.New("wait without a deadline on a limit that lends nothing would wait for events to come"))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if e.Ctx == "canceled" {
		cancel()
	}
	err := l.Wait(ctx, key, e.Cost.Units)
	if err == nil {
		return failed(errors.New("Wait admitted what Reserve refused"))
	}
	a := failed(err)
	a.remaining = k.peek(context.WithoutCancel(ctx), &Event{Key: &key}).remaining
	return a
}

// waiting is the answer to a wait that was granted; the waiter may give up before its turn.
func (k *course) waiting(e *Event, r *escapement.Reservation) *answer {
	delay := ceilMS(r.Decision.Delay()).MS
	if e.CancelMS != nil && *e.CancelMS < delay {
		k.later = append(k.later, cancellation{k.w.now + *e.CancelMS, r})
		return &answer{allowed: ptr(false), err: "canceled"}
	}
	return &answer{allowed: ptr(true), wait: &delay, remaining: ptr(r.Decision.Remaining())}
}

// reconfigure puts another limit in the place of the one in force.
func (k *course) reconfigure(ctx context.Context, e *Event) (*answer, error) {
	name := single
	if e.Limit.Name != "" && len(k.c.Limits) > 0 {
		name = e.Limit.Name
	}
	if k.limiters[name] == nil {
		return failed(errors.New("reconfigure of a limit that the case does not have: " + name)), nil
	}
	p, err := e.Limit.compile(name, k.c.Algorithm)
	if err != nil {
		return nil, errors.Join(errRejected, err)
	}
	k.s.Announce(p)
	k.limiters[name] = escapement.NewLimiter(k.s.Store(), p)
	if k.limiter() == nil {
		return &answer{}, nil
	}
	return k.peek(ctx, e), nil
}

// reload compiles every limit again, as a reload of an unchanged configuration does.
func (k *course) reload() (*answer, error) {
	for name, l := range k.limiters {
		p, err := l.Plan().Limit().Compile()
		if err != nil {
			return nil, errors.Join(errRejected, err)
		}
		k.s.Announce(p)
		k.limiters[name] = escapement.NewLimiter(k.s.Store(), p)
	}
	return &answer{}, nil
}
