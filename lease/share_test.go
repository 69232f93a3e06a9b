package lease

import (
	"testing"
	"time"

	"testing/synctest"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

var hundredPerSecond = algo.Params{Algorithm: algo.FixedWindow, Count: 100, Per: 1_000_000}

// shared is a story in which another holder has half of the demand, told at 400 ms of the
// window that begins at the story's zero.
func shared(t *testing.T, q algo.Params) *story {
	s := newStory(t, q, Config{Share: true})
	s.sync(line(100*millisecond), &algo.Ask{Rate: 50, Epoch: -1, Window: 0, Upto: -1})
	for now := 110 * millisecond; now <= 400*millisecond; now += 20 * millisecond {
		s.want(now, 1, Admitted, 0)
		s.round(now)
	}
	// The other one's demand is as large as this one's, and what is held goes back.
	s.l.share.part = 500_000
	return s
}

// fail has the asks of an outage fail until one is due no more.
func (s *story) fail(now algo.Mono) {
	for range 3 {
		r := Request{Cost: 101, Since: now}
		s.l.Admit(now, &r)
		s.l.urgent = true
		if _, send := s.l.Poll(now); send {
			s.l.Failed(now)
		}
	}
	if s.l.failures < 2 || s.l.retryAt <= now {
		s.Fatalf("%d failures, to be asked again at %d", s.l.failures, s.l.retryAt)
	}
}

// alone admits single requests at now until one is refused, and returns how many were
// admitted by the part.
func (s *story) alone(now algo.Mono) (n int64) {
	s.Helper()
	for {
		r := Request{Cost: 1, Since: now - 20*millisecond}
		switch a := s.l.Admit(now, &r); {
		case a.Verdict == Refused && a.Fallback:
			return n
		case a.Verdict == Admitted && a.Fallback:
			n++
		case a.Verdict != Admitted:
			s.Fatalf("%+v", a)
		}
	}
}

func TestShareOfAFixedWindow(t *testing.T) {
	s := shared(t, hundredPerSecond)
	granted := s.l.fixed.of(base / 1_000_000).granted
	s.fail(420 * millisecond)
	if n := s.alone(450 * millisecond); n != 50-granted || granted == 0 {
		t.Fatalf("%d were granted and %d admitted alone, of a part of 50", granted, n)
	}
	s.fail(1_400 * millisecond)
	if n := s.alone(1_450 * millisecond); n != 50 {
		t.Fatalf("%d were admitted alone in a window of which nothing was granted", n)
	}
	if left := s.l.Remaining(); left != 0 {
		t.Fatalf("%d are said to remain", left)
	}
	if s.l.Idle() || s.l.share.owed == nil {
		t.Fatal("what was used is forgotten")
	}
	// The first ask that is answered reports nothing, since it may be lost; the next one does,
	// once, and neither asks for more than the part.
	for i, want := range []int64{0, 50, 0} {
		now := s.l.retryAt + 100*millisecond*algo.Mono(i+1)
		if now = max(now, 1_500*millisecond+algo.Mono(i)*100*millisecond); now >= 2*second {
			t.Fatal("the window is over")
		}
		r := Request{Cost: 1, Since: now}
		s.l.Admit(now, &r)
		s.l.urgent = true
		a, send := s.l.Poll(now)
		if !send || a.Spent != want || a.Have != 50 || a.Want != 0 {
			t.Fatalf("ask %d, sent %t: spent %d have %d want %d, want %d spent, 50 had, none wanted", i, send, a.Spent, a.Have, a.Want, want)
		}
		g := s.sync(line(now), &a)
		s.l.Absorb(now+rtt, &g)
	}
	if s.fixed.Given != 50 {
		t.Errorf("%d are charged, 50 were used", s.fixed.Given)
	}
}

func TestShareOfARollingWindow(t *testing.T) {
	s := shared(t, algo.Params{Algorithm: algo.RollingWindow, Count: 100, Per: 1_000_000})
	s.fail(420 * millisecond)
	first := s.alone(450 * millisecond)
	had := s.l.got(int64(line(450*millisecond)) / int64(s.plan.Width))
	if had != 50 || first == 0 || first == 50 {
		t.Fatalf("%d were admitted alone, %d in all, of a part of 50", first, had)
	}
	s.fail(1_200 * millisecond)
	if n := s.alone(1_250 * millisecond); n == 0 || n+first > 50 {
		t.Fatalf("%d were admitted alone when what was lent is free again, %d before", n, first)
	}
	s.fail(2_400 * millisecond)
	if n := s.alone(2_450 * millisecond); n != 50 {
		t.Fatalf("%d were admitted alone, with nothing in the window before", n)
	}
	for i, want := range []int64{0, 50, 0} {
		now := 2_460*millisecond + algo.Mono(i)*20*millisecond
		s.l.retryAt = 0
		s.l.urgent = true
		a, send := s.l.Poll(now)
		used := int64(0)
		for _, u := range a.Used {
			used += u.Units
		}
		if !send || used != want || a.Want != 0 || a.Have != 50 {
			t.Fatalf("ask %d, sent %t: %+v, want %d used", i, send, a, want)
		}
		g := s.sync(line(now), &a)
		s.l.Absorb(now+rtt, &g)
	}
	if s.ring.Sum != 50 {
		t.Errorf("%d are charged, 50 were used", s.ring.Sum)
	}
}

// A report that is lost is not repeated: it may have arrived.
func TestLostReport(t *testing.T) {
	s := shared(t, hundredPerSecond)
	s.fail(1_100 * millisecond)
	s.alone(1_150 * millisecond)
	now := 1_300 * millisecond
	s.l.retryAt, s.l.urgent = 0, true
	a, _ := s.l.Poll(now)
	g := s.sync(line(now), &a)
	s.l.Absorb(now+rtt, &g)
	for i, want := range []int64{50, 0, 0} {
		now += 50 * millisecond
		s.l.retryAt, s.l.urgent = 0, true
		a, send := s.l.Poll(now)
		if !send || a.Spent != want {
			t.Fatalf("ask %d, sent %t: %d spent, want %d", i, send, a.Spent, want)
		}
		if g := s.sync(line(now), &a); i == 0 {
			s.l.Failed(now + rtt)
		} else {
			s.l.Absorb(now+rtt, &g)
		}
	}
	if s.fixed.Given != 50 {
		t.Errorf("%d are charged, 50 were used", s.fixed.Given)
	}
}

// Without a demand that the store knows there is no part, and the policy decides.
func TestNoPart(t *testing.T) {
	s := newStory(t, hundredPerSecond, Config{Share: true})
	now := 10 * millisecond
	for range 3 {
		r := Request{Cost: 1, Since: now}
		s.l.Admit(now, &r)
		s.l.retryAt, s.l.urgent = 0, true
		s.l.Poll(now)
		s.l.Failed(now)
	}
	r := Request{Cost: 1, Since: now - 20*millisecond}
	if a := s.l.Admit(now, &r); a.Verdict != Unavailable || s.l.Part() != 0 {
		t.Errorf("%+v within %d units", a, s.l.Part())
	}
}

// Decisions by the part say that they are a fallback, can be given back, and reach the
// store when it is there again; a charge counts above the part.
func TestStoreGoesOnByItsPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank(1)
		s := open(t, b, Options{})
		l := fixedLimit(100, 10*time.Second, 200*time.Millisecond)
		l.OnFailure = escapement.LocalShare
		p := compile(t, l)
		take := func() escapement.Decision {
			t.Helper()
			d, err := s.TakeOne(t.Context(), p, "k", 1)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		for range 20 {
			if d := take(); !d.Allowed || d.Basis() != escapement.Leased {
				t.Fatalf("allowed %v on the basis %v", d.Allowed, d.Basis())
			}
			time.Sleep(50 * time.Millisecond)
		}
		b.set(true)
		alone := int64(0)
		var last escapement.Decision
		for range 120 {
			if d := take(); d.Basis() == escapement.Fallback {
				if last = d; !d.Allowed {
					break
				}
				alone++
			}
			time.Sleep(10 * time.Millisecond)
		}
		if last.Allowed || alone < 40 || alone > 80 || last.Remaining() != 0 {
			t.Fatalf("%d were admitted alone, the last allowed %v, %d remain", alone, last.Allowed, last.Remaining())
		}
		charge := func(units int64) escapement.Decision {
			t.Helper()
			d, err := s.DecideOne(t.Context(), escapement.Claim{Plan: p, Key: "k", Cost: units, Mode: escapement.Charge})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		if d := charge(7); d.Units() != 7 {
			t.Errorf("%d of 7 are charged", d.Units())
		}
		if d, err := s.DecideOne(t.Context(), escapement.Claim{Plan: p, Key: "k", Mode: escapement.Refund, Receipt: algo.Receipt{At: last.At(), Units: 9}}); err != nil || d.Units() != 9 {
			t.Errorf("%d of 9 are given back: %v", d.Units(), err)
		}
		if d := take(); !d.Allowed || d.Basis() != escapement.Fallback {
			t.Errorf("after 9 were given back and 7 charged: allowed %v on the basis %v", d.Allowed, d.Basis())
		}
		b.set(false)
		before := b.fixed["fixed/k"].Given
		for range 8 {
			time.Sleep(250 * time.Millisecond)
			take()
		}
		if got := b.fixed["fixed/k"].Given - before; got < alone-2 || got > alone {
			t.Errorf("%d reached the store, %d were admitted alone, 7 charged, 9 given back, and 1 more", got, alone)
		}
	})
}
