package cases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/escapement-io/escapement"
)

// atATime is how many cases are run at a time: some wait for a store to sweep itself.
const atATime = 8

// Run runs cases, each on a store of its own, and reports in their order. progress, if it
// is not nil, is told how many are done, one call at a time.
func Run(ctx context.Context, cases []Case, b Backend, progress func(done int)) (*Report, error) {
	type outcome struct {
		skip     string
		failures []Failure
		err      error
	}
	outcomes := make([]outcome, len(cases))
	var mu sync.Mutex
	var wg sync.WaitGroup
	next, done := 0, 0
	for range atATime {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= len(cases) || ctx.Err() != nil {
					return
				}
				c, o := &cases[i], &outcomes[i]
				if o.skip = c.cannot(b); o.skip == "" {
					o.failures, o.err = c.run(ctx, b)
				}
				mu.Lock()
				if done++; progress != nil {
					progress(done)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &Report{Cases: len(cases), Failed: []Failure{}, Skipped: []Skip{}}
	for i, o := range outcomes {
		switch {
		case o.err != nil:
			return nil, fmt.Errorf("case %s, line %d: %w", cases[i].ID, cases[i].Line, o.err)
		case o.skip != "":
			r.Skipped = append(r.Skipped, Skip{cases[i].ID, o.skip})
		case len(o.failures) > 0:
			o.failures[0].More = len(o.failures) - 1
			r.Failed = append(r.Failed, o.failures[0])
		default:
			r.Passed++
		}
	}
	return r, nil
}

// cannot says why a case is not run, or is empty.
func (c *Case) cannot(b Backend) string {
	for i := range c.Events {
		e := &c.Events[i]
		if reason := b.Cannot(e.Op); reason != "" {
			return reason
		}
		if e.Fault == "" {
			continue
		}
		if reason := b.Cannot(e.Fault); reason != "" {
			return reason
		}
	}
	if reason := b.Unfit(c); reason != "" {
		return reason
	}
	if !c.numeric() {
		if c.sentence() == nil {
			return c.unchecked()
		}
		return ""
	}
	if c.Limit == nil && len(c.Limits) == 0 {
		return "names no limit to run"
	}
	if l := c.Limit; l != nil && cmp.Or(l.Algorithm, c.Algorithm) == "sliding_window" && l.Variant == "log" && l.Count > logMax {
		return errInexact.Error()
	}
	return ""
}

// run runs a case. The error is of the machinery; what the case finds is in the failures.
func (c *Case) run(ctx context.Context, b Backend) (failures []Failure, err error) {
	if c.numeric() {
		if failures, err = c.runEvents(ctx, b); err != nil || len(failures) > 0 {
			return failures, err
		}
	}
	if check := c.sentence(); check != nil {
		got, err := check(ctx, c, b)
		if err != nil {
			return nil, err
		}
		if got != "" {
			return []Failure{{ID: c.ID, Event: -1, Field: "expect_text", Want: c.ExpectText, Got: got}}, nil
		}
	}
	return nil, nil
}

// course is a case under way.
type course struct {
	c        *Case
	w        *World
	s        Session
	limiters map[string]*escapement.Limiter
	held     map[string]*escapement.Reservation
	heldKey  map[string]string
	later    []cancellation
}

// cancellation is a waiter that gives up, at a true time to come.
type cancellation struct {
	t int64
	r *escapement.Reservation
}

// single is the name of a limit that has none.
const single = "limit"

func (c *Case) runEvents(ctx context.Context, b Backend) ([]Failure, error) {
	w, err := newWorld(c)
	if err != nil {
		return []Failure{{ID: c.ID, Event: -1, Field: "t_ms", Want: "a time before the year 2112", Got: err.Error()}}, nil
	}
	s, err := b.Start(w)
	if err != nil {
		return nil, err
	}
	k := &course{c: c, w: w, s: s, limiters: map[string]*escapement.Limiter{}, held: map[string]*escapement.Reservation{}, heldKey: map[string]string{}}
	failures := k.events(ctx)
	return failures, s.Close()
}

func (k *course) events(ctx context.Context) []Failure {
	if f := k.compile(); f != nil {
		if k.c.ConfigRejectOK {
			return nil
		}
		return []Failure{*f}
	}
	var failures []Failure
	var total int64
	for i := range k.c.Events {
		e := &k.c.Events[i]
		a, err := k.event(ctx, e)
		if err != nil {
			if errors.Is(err, errRejected) && k.c.ConfigRejectOK {
				return nil
			}
			return append(failures, Failure{ID: k.c.ID, Event: i, Field: "limit", Want: "accepted", Got: err.Error()})
		}
		if a.count != nil {
			total += *a.count
		}
		if len(k.c.Expect) > 0 {
			failures = append(failures, k.c.differ(i, a)...)
		}
	}
	if b := k.c.ExpectTotal; b != nil {
		if b.Min != nil && total < *b.Min {
			failures = append(failures, Failure{ID: k.c.ID, Event: -1, Field: "expect_total.min", Want: *b.Min, Got: total})
		}
		if b.Max != nil && total > *b.Max {
			failures = append(failures, Failure{ID: k.c.ID, Event: -1, Field: "expect_total.max", Want: *b.Max, Got: total})
		}
	}
	return failures
}

// errRejected says that the limits of a case were refused.
var errRejected = errors.New("limit refused")

func (k *course) compile() *Failure {
	limits := k.c.Limits
	if len(limits) == 0 {
		limits = []Limit{*k.c.Limit}
	}
	for i := range limits {
		name := cmp.Or(limits[i].Name, single)
		p, err := limits[i].compile(name, k.c.Algorithm)
		if err != nil {
			return &Failure{ID: k.c.ID, Event: -1, Field: "limit", Want: "accepted", Got: err.Error()}
		}
		k.limiters[name] = escapement.NewLimiter(k.s.Store(), p)
	}
	return nil
}

// event lets an event happen as often as it says; the answer is the last one's, with the
// count of all.
func (k *course) event(ctx context.Context, e *Event) (*answer, error) {
	if e.Concurrent && e.Op == "allow" {
		k.passTo(ctx, e.TMS, e)
		return k.atOnce(ctx, e), nil
	}
	var a *answer
	var passed int64
	for i := range e.Times {
		var err error
		k.passTo(ctx, e.TMS+i*e.EveryMS, e)
		if a, err = k.once(ctx, e); err != nil {
			return nil, err
		}
		if a.allowed != nil && *a.allowed {
			passed++
		}
	}
	if e.Op == "allow" || e.Op == "reserve" || e.Op == "wait" {
		a.count = &passed
	}
	return a, nil
}

// passTo lets true time pass up to t, and waiters give up on the way.
func (k *course) passTo(ctx context.Context, t int64, e *Event) {
	slices.SortStableFunc(k.later, func(x, y cancellation) int { return cmp.Compare(x.t, y.t) })
	for len(k.later) > 0 && k.later[0].t <= t {
		k.w.at(k.later[0].t, e)
		_ = k.later[0].r.Cancel(ctx) // what it gave back shows in the next answer
		k.later = k.later[1:]
	}
	k.w.at(t, e)
}

// atOnce asks from as many goroutines as there are attempts, up to 64. A refusal is the
// last answer if there was one.
func (k *course) atOnce(ctx context.Context, e *Event) *answer {
	var mu sync.Mutex
	var wg sync.WaitGroup
	last := &answer{}
	var passed int64
	left := e.Times
	for range min(e.Times, 64) {
		wg.Go(func() {
			for {
				mu.Lock()
				left--
				done := left < 0
				mu.Unlock()
				if done {
					return
				}
				a := k.allow(ctx, e)
				mu.Lock()
				if a.allowed != nil && *a.allowed {
					passed++
				}
				if last.remaining == nil || a.remaining != nil && *a.remaining <= *last.remaining && !(*a.allowed && !*last.allowed) {
					last = a
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	last.count = &passed
	return last
}
