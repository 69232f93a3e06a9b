package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/httplimit"
	"github.com/escapement-io/escapement/internal/policy"
)

// asked is what became of the limits of one request.
type asked struct {
	limits []*limit // in the order of the route, or of their stores; without those that were skipped
	claims []escapement.Claim
	parts  []escapement.Decision // of the claims, as far as they were asked
	wait   time.Duration         // how long the request must be held
	refuse *limit                // the first limit that refused, or nil
	gone   bool                  // the client gave up before a store had answered

	request [1]escapement.Request
	answer  [1]escapement.Answer
}

func (a *asked) reset() {
	clear(a.limits)
	clear(a.claims)
	clear(a.parts)
	a.limits, a.claims, a.parts = a.limits[:0], a.claims[:0], a.parts[:0]
	a.wait, a.refuse, a.gone = 0, nil, false
	a.request[0], a.answer[0] = escapement.Request{}, escapement.Answer{Parts: a.answer[0].Parts[:0]}
}

// enforce asks all limits of the route at once. It returns nil if they let the request
// pass, and otherwise what to answer; the fields to go with it are in writeHeaders.
func (x *exchange) enforce(ctx context.Context) *refusal {
	if no := x.collect(); no != nil {
		return no
	}
	if len(x.claims) == 0 {
		return nil
	}
	admitted := x.ask(ctx)
	if x.gone {
		panic(http.ErrAbortHandler) // nobody is there to be answered
	}
	x.count()
	no := x.judge(admitted)
	if no == nil && x.wait > 0 {
		no = x.hold(ctx)
	}
	if no == nil {
		x.countPassed()
	}
	return no
}

// count counts what each limit that was asked said for itself, whatever becomes of the
// request.
func (x *exchange) count() {
	for i, l := range x.limits[:len(x.parts)] {
		if d := &x.parts[i]; d.Plan() != nil || d.Basis() == escapement.Fallback {
			l.counts.add(d, l.Shadow)
		}
	}
}

// countPassed counts the units of a request that passes.
func (x *exchange) countPassed() {
	for i, l := range x.limits[:len(x.parts)] {
		if x.parts[i].Allowed {
			l.counts.units.Add(x.claims[i].Cost)
		}
	}
}

// collect makes the claims of the request. A limit's rule that does not apply is
// skipped; if all rules of a list are, the request is refused.
func (x *exchange) collect() *refusal {
	var used, skipped uint32 // rule lists, by their number in the route
	for i, l := range x.rt.limits {
		if bypassed(l.Bypass, &x.vars) {
			used |= x.rt.rules[i]
			continue
		}
		key, ok := l.Key.Eval(&x.vars)
		if !ok && l.SkipUnresolved {
			skipped |= x.rt.rules[i]
			continue
		}
		if !ok && l.Compatible {
			// No header or argument holds a NUL: nobody else's key is an address.
			key = "\x00" + x.vars.remoteAddr()
		}
		plan, problem := l.planFor(&x.vars)
		switch {
		case errors.Is(problem, errUnresolved) && l.SkipUnresolved:
			skipped |= x.rt.rules[i]
			continue
		case errors.Is(problem, errWindows):
			l.counts.invalid.Add(1)
			x.g.quiet.log("requests ask for too many different windows; one more was refused", "limit", l.Name, "most", maxWindows)
			return &l.refusal
		case problem != nil:
			l.counts.invalid.Add(1)
			if !l.AllowDegradation {
				return &badVariable
			}
			used |= x.rt.rules[i]
			continue
		}
		used |= x.rt.rules[i]
		x.limits = append(x.limits, l)
		x.claims = append(x.claims, escapement.Claim{Plan: plan, Key: key, Cost: 1})
	}
	if x.rt.strict&skipped&^used != 0 {
		return &noRule
	}
	return nil
}

func bypassed(list []policy.Bypass, v *vars) bool {
	for i := range list {
		b := &list[i]
		if b.Var == "" {
			if b.Prefix.Contains(v.client) {
				return true
			}
		} else if s, ok := v.Var(b.Var); ok && s == b.Value {
			return true
		}
	}
	return false
}

var (
	errUnresolved = errors.New("a variable of count or time_window has no value")
	errInvalid    = errors.New("count or time_window is not a positive integer")
	errWindows    = errors.New("too many window lengths")
)

// planFor is the plan for this request.
func (l *limit) planFor(v policy.Vars) (*escapement.Plan, error) {
	if l.variants == nil {
		return l.plan, nil
	}
	plan, seconds := l.plan, int64(0)
	if l.Window != nil {
		text, ok := l.Window.Eval(v)
		if !ok {
			return nil, errUnresolved
		}
		if seconds, ok = positive(text, maxSeconds); !ok {
			return nil, errInvalid
		}
	}
	count := int64(0)
	if l.Count != nil {
		text, ok := l.Count.Eval(v)
		if !ok {
			return nil, errUnresolved
		}
		if count, ok = positive(text, algo.MaxInt); !ok {
			return nil, errInvalid
		}
	}
	if l.Window != nil {
		var err error
		if plan, err = l.variants.window(seconds); err != nil {
			return nil, errInvalid
		} else if plan == nil {
			return nil, errWindows
		}
	}
	if l.Count == nil {
		return plan, nil
	}
	plan, err := l.variants.withCount(plan, seconds, count)
	if err != nil {
		return nil, errInvalid
	}
	return plan, nil
}

// ask decides the claims and reports whether all limits in force admit them.
func (x *exchange) ask(ctx context.Context) bool {
	if x.rt.shared {
		return x.askStores(ctx)
	}
	if x.g.fast != nil && len(x.claims) == 1 {
		d, err := x.g.fast.DecideOne(ctx, x.claims[0])
		if err != nil {
			d = x.without(0, err)
		}
		x.parts = append(x.parts, d)
		return d.Allowed || x.limits[0].Shadow
	}
	x.request[0].Claims = x.claims
	x.g.store.Decide(ctx, x.request[:], x.answer[:])
	a := &x.answer[0]
	switch {
	case a.Outcome == escapement.Decided:
		x.parts = append(x.parts, a.Parts...)
		return a.Admitted
	case a.Outcome == escapement.NotRun && len(x.claims) > 1:
		return x.apart(ctx)
	}
	admitted := true
	for i := range x.claims {
		d := x.without(i, a.Err)
		x.parts = append(x.parts, d)
		admitted = admitted && d.Allowed
	}
	return admitted
}

// apart asks the limits one by one after a request of all of them did not run: a store
// that cannot take on one key still knows the others, and who fills it up with keys must
// not gain from that. What was taken is given back if one refuses.
func (x *exchange) apart(ctx context.Context) bool {
	admitted := true
	for i := range x.claims {
		x.request[0].Claims = x.claims[i : i+1]
		x.answer[0] = escapement.Answer{Parts: x.answer[0].Parts[:0]}
		x.g.store.Decide(ctx, x.request[:], x.answer[:])
		d := escapement.Decision{}
		if a := &x.answer[0]; a.Outcome == escapement.Decided {
			d = a.Parts[0]
		} else {
			d = x.without(i, a.Err)
		}
		x.parts = append(x.parts, d)
		admitted = admitted && (d.Allowed || x.limits[i].Shadow)
	}
	if !admitted {
		x.giveBack(ctx, 0, len(x.parts))
	}
	return admitted
}

// without is the answer of a limit whose store has none: its own policy. The memory of
// one process has no share to fall back to, so local_share denies.
func (x *exchange) without(i int, err error) escapement.Decision {
	l := x.limits[i]
	x.undecided(i, err)
	return escapement.Undecided(nil, l.Shadow || l.OnFailure == escapement.Allow || l.AllowDegradation)
}

// giveBack returns what the claims from from to to were charged.
func (x *exchange) giveBack(ctx context.Context, from, to int) {
	ctx = context.WithoutCancel(ctx)
	for i := from; i < to; i++ {
		d := &x.parts[i]
		if !d.Allowed || d.Units() == 0 {
			continue
		}
		store := x.g.store // of shares too
		if s := x.limits[i].shared; s != nil && !s.policy.IsShare(d.Plan()) {
			store = s
		}
		refund := [1]escapement.Claim{{Plan: d.Plan(), Key: x.claims[i].Key, Mode: escapement.Refund, Receipt: d.Receipt()}}
		x.request[0].Claims = refund[:]
		answer := [1]escapement.Answer{}
		// A store that is away keeps the units: the strict side.
		store.Decide(ctx, x.request[:], answer[:])
	}
}

// judge finds what to answer: nil if the request may pass.
func (x *exchange) judge(admitted bool) *refusal {
	var undecided *limit
	for i, l := range x.limits[:len(x.parts)] {
		d := &x.parts[i]
		if d.Basis() == escapement.Fallback {
			switch {
			case d.Units() > 0 && d.Allowed:
				x.wait = max(x.wait, d.Delay())
			case d.Units() > 0 && x.refuse == nil:
				x.refuse = l // its share is spent
			case !d.Allowed && undecided == nil:
				undecided = l
			}
			continue
		}
		switch {
		case l.Shadow:
		case d.Allowed:
			x.wait = max(x.wait, d.Delay())
		case x.refuse == nil:
			x.refuse = l
		}
	}
	switch {
	case x.refuse != nil:
		x.refuse.counts.refused.Add(1)
		return &x.refuse.refusal
	case undecided != nil && undecided.Compatible:
		return &noVerdict500
	case undecided != nil || !admitted:
		return &noVerdict
	}
	return nil
}

// maxHeld is how many requests wait for their turn at once, over all pacing limits.
const maxHeld = 10_000

// hold waits for the request's turn. A client that gives up, and one too many, gives its
// turn back.
func (x *exchange) hold(ctx context.Context) *refusal {
	defer x.g.held.Add(-1)
	if x.g.held.Add(1) > maxHeld {
		x.giveBack(ctx, 0, len(x.parts))
		return &tooManyHeld
	}
	var cancelled bool
	t := time.NewTimer(x.wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		cancelled = true
		x.giveBack(ctx, 0, len(x.parts))
	}
	for i, l := range x.limits[:len(x.parts)] {
		if x.parts[i].Allowed && !l.Shadow && x.parts[i].Delay() > 0 {
			l.counts.delayed.Add(1)
			if cancelled {
				l.counts.cancelled.Add(1)
			}
		}
	}
	if cancelled {
		panic(http.ErrAbortHandler) // nobody is there to be answered
	}
	return nil
}

// retryAfter is the wait a refused client is told, and whether it is told one.
func (x *exchange) retryAfter(no *refusal) (time.Duration, bool) {
	switch no {
	case &noVerdict, &noVerdict500, &tooManyHeld:
		return time.Second, true
	}
	if x.refuse == nil || !x.refuse.Headers.RetryAfter {
		return 0, false
	}
	named := [1]httplimit.Named{}
	wait := time.Duration(0)
	for i := range x.parts {
		named[0] = httplimit.Named{Name: x.limits[i].Name, Decision: &x.parts[i]}
		wait = max(wait, httplimit.Wait(named[:]...))
	}
	return wait, true
}
