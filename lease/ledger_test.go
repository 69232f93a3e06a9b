package lease

import (
	"testing"

	"github.com/escapement-io/escapement/algo"
)

const (
	second = 1000 * millisecond
	rtt    = 400_000 // of the network in these stories
	base   = 1_728_000_000_000_000
)

// line is where the store is when the monotonic clock of a story shows m.
func line(m algo.Mono) algo.Store { return base + algo.Store(m/1000) }

func plan(t testing.TB, q algo.Params, interval algo.Span) algo.Lease {
	t.Helper()
	p, err := algo.Compile(q)
	if err != nil {
		t.Fatal(err)
	}
	l, err := p.Lease(interval)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// stories drive one ledger against a record.
type story struct {
	*testing.T
	l     *Ledger
	plan  algo.Lease
	fixed algo.FixedLease
	ring  algo.RollingLease
}

func newStory(t *testing.T, q algo.Params, cfg Config) *story {
	cfg.Lease = plan(t, q, 200_000)
	return &story{T: t, l: New(cfg), plan: cfg.Lease}
}

func (s *story) sync(at algo.Store, a *algo.Ask) algo.Grant {
	if s.plan.Width > 0 {
		return s.plan.SyncRolling(&s.ring, at, a)
	}
	return s.plan.SyncFixed(&s.fixed, at, a)
}

// round sends what is due at now and absorbs the answer; it reports whether there was
// anything.
func (s *story) round(now algo.Mono) bool {
	s.Helper()
	a, send := s.l.Poll(now)
	if !send {
		return false
	}
	g := s.sync(line(now+rtt/2), &a)
	s.l.Absorb(now+rtt, &g)
	return true
}

// take asks about a request until it is decided.
func (s *story) take(now algo.Mono, cost int64) Answer {
	s.Helper()
	r := Request{Cost: cost, Since: now}
	a := s.l.Admit(now, &r)
	for i := 0; a.Verdict == Waiting; i++ {
		if i == 10 {
			s.Fatalf("at %d a request still waits", now)
		}
		if s.round(now) {
			now += rtt
		} else {
			now = a.Until
		}
		a = s.l.Admit(now, &r)
	}
	return a
}

func (s *story) want(now algo.Mono, cost int64, verdict Verdict, retry algo.Span) {
	s.Helper()
	if a := s.take(now, cost); a.Verdict != verdict || verdict != Admitted && a.RetryAfter != retry {
		s.Fatalf("at %v: %+v, want verdict %d and retry after %d", now, a, verdict, retry)
	}
}

var tenPerSecond = algo.Params{Algorithm: algo.FixedWindow, Count: 10, Per: 1_000_000}

func TestFixedStory(t *testing.T) {
	s := newStory(t, tenPerSecond, Config{})
	for range 10 {
		s.want(10*millisecond, 1, Admitted, 0)
	}
	// The eleventh is refused until the window ends; told a little late, never early.
	if a := s.take(20*millisecond, 1); a.Verdict != Refused || a.RetryAfter < 980_000 || a.RetryAfter > 981_500 {
		t.Fatalf("the eleventh: %+v", a)
	}
	s.want(30*millisecond, 11, Refused, algo.Never)
	s.want(second+2*millisecond, 1, Admitted, 0)
}

// A request costs all of its units or nothing.
func TestAllOrNothing(t *testing.T) {
	for _, q := range []algo.Params{tenPerSecond, {Algorithm: algo.RollingWindow, Count: 10, Per: 1_000_000}} {
		s := newStory(t, q, Config{})
		s.want(10*millisecond, 7, Admitted, 0)
		before := s.l.held()
		if a := s.take(15*millisecond, 4); a.Verdict != Refused {
			t.Fatalf("%v: %+v", q.Algorithm, a)
		}
		if after := s.l.held(); after < before {
			t.Errorf("%v: a refusal spent %d", q.Algorithm, before-after)
		}
		s.want(20*millisecond, 3, Admitted, 0)
		s.want(25*millisecond, 1, Refused, s.take(25*millisecond, 1).RetryAfter)
	}
}

// Units of several lots make up one cost; the use is reported with the next ask.
func TestRollingReportsUse(t *testing.T) {
	s := newStory(t, algo.Params{Algorithm: algo.RollingWindow, Count: 100, Per: 1_000_000}, Config{})
	s.want(10*millisecond, 1, Admitted, 0)
	from := int64(line(10*millisecond)) / int64(s.plan.Width)
	s.l.rolling.lots = []algo.Lot{{From: from, Units: 2, Expiry: from + 30}, {From: from, Units: 3, Expiry: from + 20}, {From: from + 40, Units: 50, Expiry: from + 60}}
	if bucket, _, ok := s.l.rolling.take(&s.plan, line(12*millisecond), line(12*millisecond), 6); ok {
		t.Fatalf("six of five usable units in bucket %d", bucket)
	}
	s.l.rolling.settle, s.l.rolling.used = nil, nil
	if _, _, ok := s.l.rolling.take(&s.plan, line(12*millisecond), line(12*millisecond), 4); !ok {
		t.Fatal("four of five usable units are refused")
	}
	if got := s.l.rolling.lots; got[1].Units != 0 || got[0].Units != 1 || got[2].Units != 50 {
		t.Fatalf("taken from %+v, want the first to expire first", got)
	}
	a, send := s.l.Poll(200 * millisecond)
	if !send {
		t.Fatal("a tick with a use to report is silent")
	}
	units := func(list []algo.Amount) (n int64) {
		for _, m := range list {
			n += m.Units
		}
		return n
	}
	// Four used; what is over or usable by now is given back.
	if len(a.Used) != 1 || units(a.Used) != 4 || units(a.Settle) != 4+1+50 {
		t.Errorf("reported: used %v of %v", a.Used, a.Settle)
	}
}

// An idle key costs nothing: after a lone request, one trip in a fixed window, two in a
// rolling one, and then silence.
func TestIdleKeysAreSilent(t *testing.T) {
	for q, trips := range map[algo.Algorithm]int{algo.FixedWindow: 1, algo.RollingWindow: 2} {
		s := newStory(t, algo.Params{Algorithm: q, Count: 500, Per: 1_000_000}, Config{Phase: 50 * millisecond})
		s.want(10*millisecond, 1, Admitted, 0)
		got := 1
		for range 20 {
			at, ok := s.l.Next()
			if !ok {
				break
			}
			if s.round(at) {
				got++
			}
		}
		if _, ok := s.l.Next(); ok || got != trips {
			t.Errorf("%v: %d trips, want %d, still ticking: %v", q, got, trips, ok)
		}
		if !s.l.Idle() {
			t.Errorf("%v: the ledger may not be dropped", q)
		}
	}
}

// Ticks keep their phase, however late they are looked at.
func TestTicksKeepTheirPhase(t *testing.T) {
	s := newStory(t, tenPerSecond, Config{Phase: 70 * millisecond})
	s.want(10*millisecond, 1, Admitted, 0)
	for i, late := range []algo.Mono{0, 5, 150, 399, 1} {
		at, _ := s.l.Next()
		if (at-70*millisecond)%(200*millisecond) != 0 {
			t.Fatalf("tick %d at %d", i, at)
		}
		s.take(at, 1)
		s.round(at + late*millisecond)
	}
}

// A request waits for a round trip at most MaxWait, and the policy for failures decides
// once the store is known not to answer.
func TestStoreAway(t *testing.T) {
	s := newStory(t, tenPerSecond, Config{})
	r := Request{Cost: 1, Since: 10 * millisecond}
	a := s.l.Admit(10*millisecond, &r)
	if a.Verdict != Waiting || a.Until != 30*millisecond {
		t.Fatalf("%+v", a)
	}
	if _, send := s.l.Poll(10 * millisecond); !send {
		t.Fatal("a request waits and nothing is asked")
	}
	if _, send := s.l.Poll(10 * millisecond); send {
		t.Fatal("asked twice")
	}
	if a := s.l.Admit(30*millisecond, &r); a.Verdict != Unavailable {
		t.Fatalf("after the longest wait nothing is known of the limit: %+v", a)
	}
	s.want(30*millisecond, 11, Refused, algo.Never)
	s.l.Failed(60 * millisecond)
	for i, least := range []algo.Mono{75, 150, 300, 600, 750, 750, 750} {
		now := s.l.retryAt + second*algo.Mono(i+1)
		r := Request{Cost: 1, Since: now}
		if a := s.l.Admit(now, &r); a.Verdict != Waiting {
			t.Fatalf("failure %d: %+v", i, a)
		}
		if _, send := s.l.Poll(now); !send {
			t.Fatalf("failure %d: the store is not asked again", i)
		}
		s.l.Failed(now)
		if pause := s.l.retryAt - now; pause < least*millisecond || pause > 2*least*millisecond {
			t.Errorf("failure %d: a pause of %v ms", i, pause/millisecond)
		}
		s.l.Admit(now+20*millisecond, &r)
		r = Request{Cost: 1, Since: now}
		if a := s.l.Admit(now+30*millisecond, &r); a.Verdict != Unavailable {
			t.Fatalf("failure %d, then: %+v", i, a)
		}
	}
	s.want(s.l.retryAt+millisecond, 1, Admitted, 0)
}

// While it is not known which window it is, a unit of both is spent.
func TestBoundary(t *testing.T) {
	var f fixed
	f.reset()
	f.add(100, 2)
	f.add(101, 1)
	const per = 1_000_000
	if w, _, ok := f.take(per, 100*per+1, 101*per-1, 1); !ok || w != 100 {
		t.Fatal("inside a window")
	}
	if w, _, ok := f.take(per, 101*per-300, 101*per+200, 1); !ok || w != 101 || f.held() != 0 {
		t.Fatalf("across a boundary: window %d, %v, %d held", w, ok, f.held())
	}
	if _, wait, ok := f.take(per, 101*per-300, 101*per+200, 1); ok || wait != 301_000 {
		t.Fatalf("nothing held across a boundary: %v, wait %d", ok, wait)
	}
	f.add(99, 5)
	if f.add(101, 1); f.held() != 1 {
		t.Fatalf("%d held, want what is not over", f.held())
	}
}

// A store that moved makes everything worthless that was granted before.
func TestMovedLine(t *testing.T) {
	s := newStory(t, algo.Params{Algorithm: algo.FixedWindow, Count: 500, Per: 10_000_000}, Config{})
	for i := range algo.Mono(100) {
		s.want(10*millisecond+i*millisecond, 1, Admitted, 0)
	}
	s.round(200 * millisecond)
	if s.l.held() == 0 {
		t.Fatal("nothing is held")
	}
	s.take(210*millisecond, 1)
	a, send := s.l.Poll(400 * millisecond)
	if !send {
		t.Fatal("no tick")
	}
	g := s.sync(line(400*millisecond)+1_000_000, &a)
	s.l.Absorb(400*millisecond+rtt, &g)
	if held := s.l.held(); held != g.Units+g.Next {
		t.Errorf("%d are held, %d were granted since", held, g.Units+g.Next)
	}
}

func TestLeaveGivesBack(t *testing.T) {
	for _, q := range []algo.Algorithm{algo.FixedWindow, algo.RollingWindow} {
		s := newStory(t, algo.Params{Algorithm: q, Count: 500, Per: 1_000_000}, Config{})
		for i := range algo.Mono(50) {
			s.want(10*millisecond+i*millisecond, 1, Admitted, 0)
		}
		s.round(200 * millisecond)
		a, send := s.l.Leave(210 * millisecond)
		if !send || s.l.held() != 0 {
			t.Fatalf("%v: sent %v, %d still held", q, send, s.l.held())
		}
		s.sync(line(210*millisecond+rtt), &a)
		charged := s.fixed.Given
		for _, c := range s.ring.Charged {
			charged += c
		}
		if charged != 50 {
			t.Errorf("%v: %d are charged, 50 were used", q, charged)
		}
	}
}

// Admitting from what is held allocates nothing in a fixed window.
func TestAllocations(t *testing.T) {
	s := newStory(t, algo.Params{Algorithm: algo.FixedWindow, Count: 1_000_000, Per: 10_000_000}, Config{})
	s.take(10*millisecond, 1)
	s.l.fixed.add(int64(line(0))/10_000_000, 100_000)
	if n := testing.AllocsPerRun(1000, func() {
		r := Request{Cost: 1, Since: 20 * millisecond}
		if s.l.Admit(20*millisecond, &r).Verdict != Admitted {
			t.Fatal("refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAdmit(b *testing.B) {
	for _, q := range []algo.Algorithm{algo.FixedWindow, algo.RollingWindow} {
		b.Run(q.String(), func(b *testing.B) {
			l := New(Config{Lease: plan(b, algo.Params{Algorithm: q, Count: 1_000_000, Per: 10_000_000}, 200_000)})
			l.line.Observe(0, 1000, base)
			window := int64(base) / 10_000_000
			l.fixed.add(window, 1<<40)
			if w := int64(l.cfg.Lease.Width); w > 0 {
				for i := range int64(4) {
					l.rolling.lots = append(l.rolling.lots, algo.Lot{From: int64(base)/w - i, Units: 1 << 40, Expiry: int64(base)/w + 5 + i})
				}
			}
			for b.Loop() {
				r := Request{Cost: 1, Since: 1000}
				if l.Admit(1_000_000, &r).Verdict != Admitted {
					b.Fatal("refused")
				}
			}
		})
	}
}
