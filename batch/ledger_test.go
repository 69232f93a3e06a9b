package batch

import (
	"testing"

	"github.com/escapement-io/escapement/algo"
)

const (
	second = 1000 * millisecond
	rtt    = 400_000
	base   = 1_728_000_000_000_000
)

func line(m algo.Mono) algo.Store { return base + algo.Store(m/1000) }

// fleet is several instances that share one record.
type fleet struct {
	*testing.T
	plan   algo.Plan
	record algo.Delayed
	l      []*Ledger
}

func newFleet(t *testing.T, n int, q algo.Params) *fleet {
	t.Helper()
	f := &fleet{T: t}
	var err error
	if f.plan, err = algo.Compile(q); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		f.l = append(f.l, f.instance(int64(i)+1))
	}
	return f
}

func (f *fleet) instance(id int64) *Ledger {
	return New(Config{Plan: &f.plan, Interval: 200_000, Instance: id})
}

// flush sends what is due and absorbs the answer.
func (f *fleet) flush(i int, now algo.Mono) bool {
	m, send := f.l[i].Poll(now)
	if send {
		g := f.plan.Flush(&f.record, line(now+rtt/2), &m)
		f.l[i].Absorb(now+rtt, &g)
	}
	return send
}

func (f *fleet) take(i int, now algo.Mono, cost int64) Answer {
	f.Helper()
	r := Request{Cost: cost, Since: now}
	a := f.l[i].Admit(now, &r)
	if a.Verdict == Waiting {
		if !f.flush(i, now) {
			f.Fatalf("at %d a request waits for nothing", now)
		}
		a = f.l[i].Admit(now+rtt, &r)
	}
	return a
}

// admitted is how many of n requests pass.
func (f *fleet) admitted(i int, now algo.Mono, n int) (passed int) {
	f.Helper()
	for range n {
		if f.take(i, now, 1).Verdict == Admitted {
			passed++
		}
	}
	return passed
}

func (f *fleet) wants(what string, got, want int64) {
	f.Helper()
	if got != want {
		f.Errorf("%s: %d, want %d", what, got, want)
	}
}

// Two requests are two, here and at the store, however they lie around a report.
func TestNothingCountsTwice(t *testing.T) {
	f := newFleet(t, 2, algo.Params{Algorithm: algo.FixedWindow, Count: 10, Per: 60_000_000})
	f.admitted(0, 10*millisecond, 1)
	f.wants("remaining after one", f.l[0].Remaining(), 9)
	f.flush(0, 200*millisecond)
	f.admitted(0, 300*millisecond, 1)
	f.wants("remaining after two", f.l[0].Remaining(), 8)
	f.flush(0, 400*millisecond)
	f.admitted(1, 500*millisecond, 0)
	f.wants("remaining", f.l[0].Remaining(), 8)
	f.wants("counted", f.record.Used, 2)
}

// A report whose fate is unknown is repeated, unchanged, and counts once: whether it was
// cut before the store or after it.
func TestReportsAreRepeated(t *testing.T) {
	for _, arrived := range []bool{false, true} {
		f := newFleet(t, 2, algo.Params{Algorithm: algo.FixedWindow, Count: 100, Per: 60_000_000})
		f.wants("admitted", int64(f.admitted(0, 10*millisecond, 5)), 5)
		m, send := f.l[0].Poll(200 * millisecond)
		if !send {
			t.Fatal("nothing is reported")
		}
		if arrived {
			f.plan.Flush(&f.record, line(201*millisecond), &m)
		}
		f.l[0].Failed(250 * millisecond)
		f.wants("admitted while it is not known", int64(f.admitted(0, 300*millisecond, 3)), 3)
		f.flush(0, 400*millisecond)
		f.wants("counted of the first report", f.record.Used, 5)
		f.flush(0, 600*millisecond)
		f.wants("counted", f.record.Used, 8)
		f.take(1, 700*millisecond, 1)
		f.wants("remaining elsewhere", f.l[1].Remaining(), 91)
	}
}

// A process that ends in order leaves nothing behind: the next one starts from what was used.
func TestRestartKeepsTheCount(t *testing.T) {
	f := newFleet(t, 2, algo.Params{Algorithm: algo.FixedWindow, Count: 10, Per: 3_600_000_000, FirstUse: true})
	for i := range f.l {
		f.wants("admitted", int64(f.admitted(i, 10*millisecond+algo.Mono(i)*millisecond, 2)), 2)
	}
	for i, l := range f.l {
		m, send := l.Leave()
		if !send {
			t.Fatal("nothing is reported at the end")
		}
		g := f.plan.Flush(&f.record, line(second), &m)
		l.Absorb(second+rtt, &g)
		if _, again := l.Leave(); again || len(l.pending) > 0 {
			t.Fatal("not all was reported")
		}
		f.l[i] = f.instance(int64(i) + 11)
	}
	f.wants("admitted after the restart", int64(f.admitted(0, 2*second, 10)), 6)
}

// Ten means ten on every path, and the refusal says when the window ends.
func TestLastUnit(t *testing.T) {
	f := newFleet(t, 1, algo.Params{Algorithm: algo.FixedWindow, Count: 10, Per: 60_000_000})
	f.wants("admitted", int64(f.admitted(0, 10*millisecond, 9)), 9)
	f.flush(0, 200*millisecond)
	f.wants("the last", int64(f.admitted(0, 300*millisecond, 2)), 1)
	f.flush(0, 400*millisecond)
	// The window ends 59.6 s later at the store, and a reply's way home later here.
	if a := f.take(0, 500*millisecond, 1); a.Verdict != Refused || a.RetryAfter < 59_500_000 || a.RetryAfter > 59_501_000 {
		t.Errorf("%+v", a)
	}
	if a := f.take(0, 500*millisecond, 11); a.RetryAfter != algo.Never {
		t.Errorf("more than the limit: %+v", a)
	}
}

// Until the first report each instance may pass the limit; after it all refuse, and a
// window that refuses goes on reporting, so that it learns when there is room.
func TestBothRefuseAfterAReport(t *testing.T) {
	f := newFleet(t, 2, algo.Params{Algorithm: algo.FixedWindow, Count: 1, Per: 30_000_000, FirstUse: true})
	total := f.admitted(0, 0, 1) + f.admitted(1, 10*millisecond, 1)
	for i := range f.l {
		f.flush(i, 200*millisecond)
	}
	for tick := algo.Mono(2); tick < 10; tick++ {
		for i := range f.l {
			total += f.admitted(i, tick*200*millisecond-50*millisecond, 1)
			if !f.flush(i, tick*200*millisecond) {
				t.Fatalf("instance %d falls silent while it refuses", i)
			}
		}
	}
	if total < 1 || total > 2 {
		t.Errorf("%d were admitted of a limit of 1 by two instances", total)
	}
	f.wants("counted", f.record.Used, int64(total))
	f.wants("in the next window", int64(f.admitted(0, 31*second, 3)), 1)
}

// A sliding window goes on without asking at its boundary, knowing that all of the window
// before weighs then; one opened by first use asks.
func TestBoundaries(t *testing.T) {
	f := newFleet(t, 1, algo.Params{Algorithm: algo.SlidingWindow, Count: 100, Per: 1_000_000})
	f.wants("admitted", int64(f.admitted(0, 750*millisecond, 60)), 60)
	f.flush(0, 800*millisecond)
	f.wants("right after the boundary", int64(f.admitted(0, 1002*millisecond, 100)), 40)
	f.flush(0, 1200*millisecond)
	f.wants("of the window before four fifths weigh", f.l[0].Remaining(), 100-40-48)

	g := newFleet(t, 1, algo.Params{Algorithm: algo.FixedWindow, Count: 5, Per: 1_000_000, FirstUse: true})
	g.wants("admitted", int64(g.admitted(0, 700*millisecond, 9)), 5)
	g.flush(0, 800*millisecond)
	g.wants("before it ends", int64(g.admitted(0, 1690*millisecond, 1)), 0)
	g.wants("after it", int64(g.admitted(0, 1702*millisecond, 9)), 5)
}

// What was admitted before an outage counts where it happened; on time, where it arrives.
func TestAfterAnOutage(t *testing.T) {
	f := newFleet(t, 1, algo.Params{Algorithm: algo.SlidingWindow, Count: 100, Per: 1_000_000})
	f.wants("admitted", int64(f.admitted(0, 500*millisecond, 30)), 30)
	for _, at := range []algo.Mono{600, 800} {
		if _, send := f.l[0].Poll(at * millisecond); !send {
			t.Fatal("nothing is sent")
		}
		f.l[0].Failed((at + 10) * millisecond)
	}
	if a := f.take(0, 820*millisecond, 1); a.Verdict != Admitted {
		t.Errorf("what was told is not spent yet: %+v", a)
	}
	r := Request{Cost: 1, Since: 1010 * millisecond}
	if a := f.l[0].Admit(r.Since, &r); a.Verdict != Waiting {
		t.Errorf("the window is over: %+v", a)
	}
	if _, send := f.l[0].Poll(r.Since); !send {
		t.Fatal("nothing is sent")
	}
	f.l[0].Failed(1060 * millisecond)
	if a := f.l[0].Admit(1060*millisecond, &r); a.Verdict != Unavailable {
		t.Errorf("the window is over and the store away: %+v", a)
	}
	f.flush(0, 1400*millisecond)
	f.wants("in the window before", f.record.Before, 30)
	f.wants("in this one", f.record.Used, 0)
	f.flush(0, 1600*millisecond)
	f.wants("in the window before, then", f.record.Before, 31)
}

// An instance never admits more than the limit in a window, whatever the store forgets.
func TestAForgetfulStore(t *testing.T) {
	f := newFleet(t, 1, algo.Params{Algorithm: algo.FixedWindow, Count: 10, Per: 60_000_000})
	total := 0
	for tick := range algo.Mono(20) {
		total += f.admitted(0, tick*200*millisecond+100*millisecond, 3)
		f.flush(0, tick*200*millisecond+200*millisecond)
		f.record = algo.Delayed{}
	}
	f.wants("admitted", int64(total), 10)
}

// A store whose clock went back does not open a window a second time for anybody.
func TestAStoreThatGoesBack(t *testing.T) {
	f := newFleet(t, 0, algo.Params{Algorithm: algo.FixedWindow, Count: 10, Per: 1_000_000})
	l := New(Config{Plan: &f.plan, Interval: 900_000, Instance: 1})
	total := map[algo.Store]int{}
	for now := algo.Mono(100); now < 5400; now += 50 {
		at := now * millisecond
		if now < 3900 || now > 4600 {
			r := Request{Cost: 1, Since: at}
			if a := l.Admit(at, &r); a.Verdict == Admitted {
				total[a.Window]++
			}
		}
		if m, send := l.Poll(at); send {
			// The store stands still from 2.9 s on, and answers when the window is over here.
			g := f.plan.Flush(&f.record, min(line(at), line(2900*millisecond)), &m)
			l.Absorb(at+rtt, &g)
		}
	}
	for window, n := range total {
		if n > 10 {
			t.Errorf("window %d: %d were admitted", window, n)
		}
	}
	if len(total) < 4 {
		t.Errorf("only %d windows saw an admission", len(total))
	}
}

// A key of which the store has said nothing yet is refused by nobody but the policy for failures.
func TestASlowStore(t *testing.T) {
	f := newFleet(t, 1, algo.Params{Algorithm: algo.SlidingWindow, Count: 10, Per: 1_000_000})
	r := Request{Cost: 1, Since: 10 * millisecond}
	if a := f.l[0].Admit(10*millisecond, &r); a.Verdict != Waiting || a.Until != 30*millisecond {
		t.Fatalf("%+v", a)
	}
	if a := f.l[0].Admit(30*millisecond, &r); a.Verdict != Unavailable {
		t.Errorf("after the longest wait: %+v", a)
	}
	if a := f.l[0].Admit(30*millisecond, &Request{Cost: 11, Since: 30 * millisecond}); a.Verdict != Refused || a.RetryAfter != algo.Never {
		t.Errorf("more than the limit: %+v", a)
	}
}

func TestIdleKeysAreSilent(t *testing.T) {
	f := newFleet(t, 1, algo.Params{Algorithm: algo.FixedWindow, Count: 10, Per: 1_000_000})
	f.admitted(0, 10*millisecond, 1)
	sent := 0
	for {
		at, ok := f.l[0].Next()
		if !ok {
			break
		}
		if f.flush(0, at) {
			sent++
		}
	}
	if sent != 1 || !f.l[0].Idle() {
		t.Errorf("%d reports of one request, idle %v", sent, f.l[0].Idle())
	}
}

func BenchmarkAdmit(b *testing.B) {
	p, err := algo.Compile(algo.Params{Algorithm: algo.FixedWindow, Count: 1 << 50, Per: 60_000_000})
	if err != nil {
		b.Fatal(err)
	}
	l := New(Config{Plan: &p, Interval: 200_000, Instance: 1})
	l.Absorb(0, &algo.Flushed{At: base, Window: base, Rest: 60_000_000, Remaining: 1 << 50})
	for b.Loop() {
		r := Request{Cost: 1, Since: 1000}
		if l.Admit(1000, &r).Verdict != Admitted {
			b.Fatal("refused")
		}
	}
}

// What is charged is bounded, however much it is, so that it can be reported.
func TestChargesAreBounded(t *testing.T) {
	f := newFleet(t, 1, algo.Params{Algorithm: algo.FixedWindow, Count: 10, Per: 60_000_000})
	f.take(0, 0, 1)
	for range 2000 {
		f.l[0].Charge(rtt, algo.MaxInt, 0)
	}
	if a := f.take(0, rtt, 1); a.Verdict == Admitted || f.l[0].Remaining() != 0 {
		t.Errorf("%v is left after that much was spent: %+v", f.l[0].Remaining(), a)
	}
	m, send := f.l[0].Poll(200 * millisecond)
	total := int64(0)
	for _, p := range m.Parts {
		total += p.Units
	}
	if !send || total != algo.MaxInt {
		t.Errorf("reported %d units, %v", total, send)
	}
}
