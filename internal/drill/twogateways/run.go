package twogateways

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/drill/bench"
)

const (
	grace = 2 * time.Minute        // what starting and ending may take beside the load
	lead  = 250 * time.Millisecond // from the warm-up to the load, at least
)

// Run drills. The error says that the drill could not run, or could not be judged; what it
// found is in the report, whose Problems are empty if every bound held. With wrong clocks
// there is a run with right ones before, to compare.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	var clean *float64
	if o.Faults.clocks() {
		right := o
		right.Faults = Faults{}
		r, err := run(ctx, &right)
		if err != nil {
			return nil, err
		}
		clean = &r.Error
	}
	r, err := run(ctx, &o)
	if err != nil {
		return nil, err
	}
	r.Clean = clean
	r.Problems = r.problems(&o)
	return r, nil
}

// run is one run, not yet judged.
func run(ctx context.Context, o *Options) (*Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.For+2*o.Per+grace, fmt.Errorf("drill: not done %v after the load was to end: this machine is too busy", grace))
	defer cancel()
	b, err := bench.New()
	if err != nil {
		return nil, err
	}
	defer b.End()
	r, err := onBench(ctx, o, b)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return r, err
}

func onBench(ctx context.Context, o *Options, b *bench.Bench) (*Report, error) {
	o.tell("starting")
	u, err := startUpstream(ctx)
	if err != nil {
		return nil, err
	}
	b.OnEnd(func() { u.close() })
	s, err := startStage(ctx, o, b, u.addr)
	if err != nil {
		return nil, err
	}
	line, at, err := warm(ctx, s.gateways)
	if err != nil {
		return nil, err
	}
	// The next boundary of the store's windows, on both clocks.
	boundary := (line + clock.Mono() - at + algo.Mono(lead)) / algo.Mono(o.Per)
	boundary = (boundary + 1) * algo.Mono(o.Per)
	s.begin = at + boundary - line
	if !sleep(ctx, s.begin-algo.Mono(lead/2)) {
		return nil, ctx.Err()
	}
	before, err := s.meter.read(ctx)
	if err != nil {
		return nil, err
	}
	o.tell(fmt.Sprintf("%v of load", o.For))
	all, err := s.underLoad(ctx)
	if err != nil {
		return nil, err
	}
	took := clock.Since(s.begin)
	after, err := s.meter.read(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range s.gateways {
		g.stop()
	}
	h := &history{
		limit: o.Limit, per: algo.Span(o.Per / time.Microsecond), opened: o.opened(), rolling: s.rolls(), each: o.each(),
		begin: algo.Store(boundary / 1000), length: algo.Span(o.For / time.Microsecond), covered: algo.Span(o.covered() / time.Microsecond),
	}
	unanswered, err := match(all, u.close())
	if err != nil {
		return nil, err
	}
	h.take(all, unanswered, s.begin)
	r := judge(o, h)
	r.describe(o, all, unanswered)
	each := float64(o.Instances) * took.Seconds()
	r.Keeping = hundredths(float64(after.keeping-before.keeping) / each)
	r.Calls = hundredths(float64(after.scripts-before.scripts-after.keeping+before.keeping) / each)
	s.report(r, h)
	return r, nil
}

// covered is how long the load lasts: a little longer than what is counted, for windows
// that open late.
func (o *Options) covered() time.Duration {
	return o.For + min(o.Per/10, 500*time.Millisecond)
}

func (o *Options) tell(what string) {
	if o.Progress != nil {
		o.Progress(what)
	}
}

// underLoad makes the load while the faults happen.
func (s *stage) underLoad(ctx context.Context) ([]asked, error) {
	acting, stop := context.WithCancel(ctx)
	defer stop()
	var acts sync.WaitGroup
	var fault error
	acts.Go(func() {
		if fault = s.act(acting); fault != nil && acting.Err() == nil {
			stop()
		}
	})
	all, err := press(acting, s.o, s.gateways, s.begin, s.o.covered())
	if err == nil {
		acts.Wait() // what begins during the load is done
	}
	stop()
	acts.Wait()
	if fault != nil && !errors.Is(fault, context.Canceled) {
		return nil, fault
	}
	return all, err
}

// take fills in what was admitted, and when the load fell behind. What arrived at the
// upstream and was not answered counts to the instant it was sent at.
func (h *history) take(all []asked, unanswered []int, begin algo.Mono) {
	line := func(m algo.Mono) algo.Store { return h.begin + algo.Store((m-begin)/1000) }
	behind := algo.Mono(max(stalling, time.Duration(h.per)*time.Microsecond/stallShare))
	for i := range all {
		a := &all[i]
		if a.status == admitted {
			h.admitted = append(h.admitted, a.stamp)
		}
		if a.sent-a.due > behind {
			h.stalls = append(h.stalls, stall{line(a.due), line(a.sent)})
		}
	}
	answered := h.admitted
	for _, n := range unanswered {
		s := Stamp{At: line(all[n].sent)}
		s.Window = s.At - algo.Store(int64(s.At)%int64(h.per))
		if h.opened {
			s.Window = lastOpened(answered, s.At)
		}
		h.admitted = append(h.admitted, s)
	}
}

// lastOpened is the last window that was open by an instant, which opens one if there is
// none.
func lastOpened(stamps []Stamp, at algo.Store) algo.Store {
	last := algo.Store(0)
	for _, s := range stamps {
		if s.Window <= at {
			last = max(last, s.Window)
		}
	}
	if last == 0 {
		return at
	}
	return last
}

// The load fell behind when a request was sent so late: by stalling, and by the share of a
// window.
const (
	stalling   = 50 * time.Millisecond
	stallShare = 20
)

// describe adds what is known of the load.
func (r *Report) describe(o *Options, all []asked, unanswered []int) {
	r.Unanswered, r.Burst = len(unanswered), o.Burst
	if !o.Burst {
		r.Rate = o.Rate
	}
	latest := time.Duration(0)
	for i := range all {
		a := &all[i]
		if a.sent == 0 {
			continue // the burst was over
		}
		r.Offered++
		switch a.status {
		case admitted:
		case refused:
			r.Refused++
		default:
			r.Failed++
		}
		late := time.Duration(a.sent - a.due)
		latest = max(latest, late)
		if late > tooLate {
			r.Late++
		}
	}
	r.LatestMS = hundredths(float64(latest) / 1e6)
}
