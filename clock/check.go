package clock

import (
	"fmt"
	"slices"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// Check looks at the clocks once: it reports what happened since the last check and, once a
// second or when something happened, aims guarded time anew. Run calls it; programs with a
// loop of their own may. Calls wait for each other.
func (g *Guard) Check() { g.check("seen by the polled check") }

func (g *Guard) check(how string) {
	g.checking.Lock()
	defer g.checking.Unlock()
	g.deliver(g.inspect(how))
}

// inspect is a check but for telling the subscribers.
func (g *Guard) inspect(how string) []Event {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pending = nil
	g.tally.Checks++
	r, ok := look(g.src)
	if !ok {
		g.tally.Unclear++
		if g.unclear++; g.unclear == 1 {
			g.emit(Event{Kind: Unclear, Level: Info, Width: time.Duration(r.width()), At: r.mid(), Before: r.Wall, After: r.Wall,
				Cause: fmt.Sprintf("no bracket within %v in %d readings; the next check will tell", time.Duration(widest), tries)})
		}
		return g.pending
	}
	g.unclear = 0
	f := g.det.observe(r)
	g.report(r, f, how)
	happened := f.step != 0 || f.suspend != 0
	if happened || g.owed > 0 || r.mid()-g.aimed >= aimEvery {
		g.sampleSystem(r)
		g.settle(r, f)
	}
	if happened {
		g.kick()
	}
	return g.pending
}

// report turns what a reading showed into events and counts.
func (g *Guard) report(r Reading, f found, how string) {
	e := Event{Width: time.Duration(r.width()), At: r.mid(), Since: f.since, After: r.Wall, Before: r.Wall - f.step}
	if f.suspend > 0 {
		g.tally.Suspends++
		g.tally.Suspended += time.Duration(f.suspend)
		s := e
		s.Kind, s.Level, s.Size = Suspend, Info, time.Duration(f.suspend)
		s.Before = e.Before - f.suspend
		s.Cause = "the boot clock counted time that the monotonic clock did not"
		g.emit(s)
	}
	if f.step == 0 {
		return
	}
	e.Kind, e.Size, e.Cause = Step, time.Duration(f.step), "the wall clock was set, "+how
	e.Level = g.level(e)
	if isLeap(f.step, r.Wall, kernelOf(g.src).LeapArmed) {
		e.Kind, e.Cause = Leap, "a leap second, "+how
	}
	if f.blind && f.step > 0 {
		e.Cause += "; or the machine slept: there is no boot clock to tell"
	}
	if f.step > 0 {
		g.tally.StepsForward++
	} else {
		g.tally.StepsBackward++
	}
	g.tally.LastStep = e.Size
	g.emit(e)
}

func (g *Guard) level(e Event) Level {
	often := g.steps[0] != 0 && e.At-g.steps[0] <= algo.Mono(time.Minute)
	g.steps[0], g.steps[1] = g.steps[1], e.At
	switch size := e.Size.Abs(); {
	case size >= g.cfg.Critical || often:
		return Critical
	case size >= g.cfg.Warning:
		return Warning
	}
	return Info
}

// settle accounts for what happened, lets the references confer and moves guarded time.
func (g *Guard) settle(r Reading, f found) {
	m := r.mid()
	if f.suspend > 0 {
		g.carry(m, f)
		if !g.cfg.IgnoreSuspend {
			g.owed += f.suspend
		}
	}
	if f.blind && f.step > 0 {
		g.doubt = true
		for i := range g.cands {
			g.cands[i].known = g.cands[i].known && g.kicks[i] == nil
		}
	}
	g.con = confer(m, g.cands, g.drift())
	if g.con.quorum {
		g.doubt = false
	}
	before := g.choose.current
	if g.choose.round(g.con) {
		g.tally.Switches++
		g.emit(Event{Kind: Switched, Level: Warning, Width: time.Duration(r.width()), At: m, Before: r.Wall, After: r.Wall,
			Cause: fmt.Sprintf("%s no longer agrees with the majority; following %s", g.name(before), g.name(g.choose.current))})
	}
	g.move(r)
	g.hold(m)
}

// carry takes what the references said across a suspend that was seen at m: their clocks
// went on. A measurement that may have been under way when the machine slept is dropped.
func (g *Guard) carry(m algo.Mono, f found) {
	g.slept = m
	for i := range g.cands {
		if g.kicks[i] == nil {
			continue // the system clock has been read since
		}
		c := &g.cands[i]
		if c.sample.At+algo.Mono(c.sample.RTT/2) > m-algo.Mono(f.since) {
			c.known = false
		}
		c.sample.Time += f.suspend
		c.sample.Err += time.Duration(widest) // as far as the brackets can be off
	}
	h := *g.held.Load()
	h.span.lo += f.suspend - widest
	h.span.hi += f.suspend + widest
	g.held.Store(&h)
}

// move brings guarded time towards the references, or, while they have never agreed,
// towards the raw wall clock.
func (g *Guard) move(r Reading) {
	m := r.mid()
	followed, confirmed := r.Wall-int64(m), false
	follow := !g.agreed && !g.con.quorum
	if g.con.quorum {
		followed, follow = g.choose.target(g.cands, g.con), true
		// The first agreement has no history to contradict: the start took the wall clock as
		// it was.
		confirmed = g.con.votes >= confirmations || !g.agreed
	}
	p := g.pace.Load()
	cur, ok := p.current(m)
	if !ok {
		return // the last offer is not yet in force; nothing is lost, owed stands
	}
	err := followed + int64(m) - cur.at(m) - g.owed
	what := keep
	if follow {
		what = g.judge(m, err, followed, confirmed, cur)
	} else {
		g.large = false
	}
	switch rest := cur.rest(m); {
	case what == rebase && cur.ppb == slewHalf && err < -slewable,
		what == slew && cur.ppb != slewHalf && rest != 0 && abs(err-rest) <= settledWithin/10:
		what = keep // already on the way
	}
	if what == keep && g.owed == 0 {
		g.aimed = m
		return
	}
	size, ok := g.offer(what, followed)
	if !ok {
		return
	}
	g.owed, g.aimed = 0, m
	if what == rebase {
		g.large = false
		g.tally.Rebases++
		g.epoch.Add(1)
		cause := "the references agree, and slewing would take too long"
		if !confirmed {
			cause = "the majority has stood by it for ten minutes"
		}
		g.emit(Event{Kind: Rebased, Level: Warning, Size: time.Duration(size), Width: time.Duration(r.width()), At: m,
			Before: r.Wall, After: r.Wall, Cause: cause})
	}
}

// judge is aim with the memory of how long a large error has stood: the majority has stood
// by one instant, to within a second, all the time. Without a majority there is nobody to
// stand by it.
func (g *Guard) judge(m algo.Mono, err, followed int64, confirmed bool, cur stretch) act {
	if abs(err) <= slewable {
		g.large = false
		return slew
	}
	if cur.ppb == slewHalf && err < 0 && g.con.quorum {
		return rebase
	}
	if !g.large || !g.con.quorum || abs(followed-g.errLine) > slewable {
		g.large, g.errSince, g.errLine = true, m, followed
	}
	return aim(err, confirmed, time.Duration(m-g.errSince))
}

// offer publishes the next stretch, a little ahead, and takes it unless a reader came
// first; see pace. It returns the error that the stretch starts with, and whether it is in
// force from then on.
func (g *Guard) offer(what act, followed int64) (err int64, ok bool) {
	for lead := algo.Mono(100 * time.Microsecond); lead <= algo.Mono(25*time.Millisecond); lead *= 4 {
		m0 := g.mono() + lead
		cur, ok := g.pace.Load().current(m0 - lead)
		if !ok {
			return 0, false
		}
		g0 := cur.at(m0) + g.owed
		err = followed + int64(m0) - g0
		p := &pace{now: cur, next: toward(cur, what, m0, g0, err)}
		g.pace.Store(p)
		if g.mono() < m0 && p.take() {
			return err, true
		}
		p.turn.Store(void)
	}
	return 0, false
}

// hold publishes what the references have agreed on, for Bound.
func (g *Guard) hold(m algo.Mono) {
	h := *g.held.Load()
	h.drift = g.drift()
	switch {
	case g.con.quorum:
		g.agreed = g.agreed || !g.large
		h.span, h.at, h.state = g.con.span, m, Synchronised
		if g.large {
			h.state = Holdover
		}
	case g.agreed && g.doubt:
		h.state = Disrupted
	case g.agreed:
		h.state = Holdover
	default:
		h.state = Unknown
	}
	g.held.Store(&h)
}

func (g *Guard) drift() int64 { return int64(g.cfg.DriftPPM) * 1000 }

func (g *Guard) name(i int) string { return g.cfg.References[i].Reference.Name() }

// kick asks for the references to be measured soon.
func (g *Guard) kick() {
	for _, k := range g.kicks {
		if k == nil {
			continue
		}
		select {
		case k <- struct{}{}:
		default:
		}
	}
}

func (g *Guard) emit(e Event) { g.pending = append(g.pending, e) }

// deliver hands events to the subscribers, in the order in which they subscribed.
func (g *Guard) deliver(events []Event) {
	for _, e := range events {
		g.mu.Lock()
		last := e
		g.last = &last
		subs := slices.Clone(g.subs)
		g.mu.Unlock()
		for _, s := range subs {
			s.f(e)
		}
	}
}
