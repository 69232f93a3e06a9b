package redisstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/redistest"
)

// stage puts asks, flushes and exact claims to a server at instants of its own.
type stage struct {
	mixedTwins
	srv *redistest.Server
}

func newStage(t *testing.T) *stage {
	srv := redistest.Start(t, redistest.Options{})
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{srv.Addr()}, DisableCache: true, DisableRetry: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	for _, sc := range []script{lendScript, collectScript, listScript} {
		srv.Must(t, "SCRIPT", "LOAD", sc.text)
	}
	return &stage{mixedTwins{syncTwins: syncTwins{t: t, client: client, now: 1_780_000_020_000_000}}, srv}
}

func (s *stage) run(c *syncCall) *reader {
	s.t.Helper()
	keys, args := c.encode(bounds{lo: s.now, hi: s.now}, time.Hour)
	words, err := s.client.Do(s.t.Context(), s.client.B().Evalsha().Sha1(c.script.sha).Numkeys(1).Key(keys...).Arg(args...).Build()).AsIntSlice()
	if err != nil || words[2] != 1 {
		s.t.Fatalf("%v, %v", words, err)
	}
	return &reader{words: words[3:]}
}

// lend asks for so much, to be used at once or until half a window from now.
func (s *stage) lend(p *escapement.Plan, want int64, more ...algo.Amount) algo.Grant {
	s.t.Helper()
	w := newWire(p)
	c := &syncCall{script: lendScript, more: leaseArgs, keys: []string{"k"}}
	l, _ := p.Lease()
	a := algo.Ask{Epoch: -1, Window: int64(s.now) / int64(l.Per), Want: want, Base: want, Upto: -1, Horizon: l.Buckets / 2, Settle: more}
	if len(more) > 0 {
		a.Return = more[0].Units
	}
	c.body = appendAsk(append(c.body, c.place(w)), w, &a)
	var g algo.Grant
	readGrant(s.run(c), p, &g)
	return g
}

func (s *stage) collect(p *escapement.Plan, number, units int64) algo.Flushed {
	s.t.Helper()
	w := newWire(p)
	c := &syncCall{script: collectScript, more: func(*wire) []string { return nil }, keys: []string{"k"}}
	f := algo.Flush{Instance: 7, Number: number, Interval: 1000, Parts: []algo.Spent{{Window: s.now, Units: units}}}
	c.body = appendFlush(append(c.body, c.place(w)), w, &f)
	return readFlushed(s.run(c))
}

func (s *stage) take(p *escapement.Plan, cost int64) escapement.Decision {
	s.t.Helper()
	return s.decide(&syncPair{key: "k"}, newWire(p), escapement.Claim{Plan: p, Key: "k", Cost: cost})
}

func (s *stage) reset() { s.srv.Must(s.t, "DEL", "k") }

func limit(t *testing.T, a escapement.Algorithm, count int64, per, sync time.Duration) *escapement.Plan {
	t.Helper()
	return plan(t, escapement.Limit{Name: "k", Algorithm: a, Rate: escapement.Rate{Count: count, Per: per}, Sync: sync})
}

// A lease adopts what exact callers have used, of the same window, and they what is lent.
func TestALeaseAdoptsAnExactRecord(t *testing.T) {
	s := newStage(t)
	fixed, sliding, rolling := escapement.FixedWindow, escapement.SlidingWindow, escapement.RollingWindow
	for _, tt := range []struct {
		exact, leased escapement.Algorithm
		count, other  int64
	}{
		{fixed, fixed, 100, 100}, {rolling, rolling, 100, 100}, {rolling, rolling, 40, 40}, {rolling, rolling, 40, 100},
		{rolling, rolling, 100, 40}, {sliding, sliding, 100, 100}, {sliding, rolling, 40, 40}, {fixed, rolling, 100, 100},
	} {
		s.reset()
		s.now += 60_000_000
		exact, leased := limit(t, tt.exact, tt.count, time.Minute, 0), limit(t, tt.leased, tt.other, time.Minute, time.Second)
		if !s.take(exact, 30).Allowed {
			t.Fatalf("%v: 30 of %d refused", tt, tt.count)
		}
		s.now += 1_000_000
		g := s.lend(leased, 200)
		if got := granted(&g); got != tt.other-30 {
			t.Errorf("%v: %d granted beside 30 that are used of %d", tt, got, tt.other)
		}
		if tt.exact == fixed && tt.leased != fixed {
			continue // another kind of window: see below
		}
		if d := s.take(exact, 1); d.Allowed != (tt.count > tt.other) {
			t.Errorf("%v: a claim is admitted: %v", tt, d.Allowed)
		}
		// What is given back is there for exact callers.
		expiry := int64(0)
		if len(g.Lots) > 0 {
			expiry = g.Lots[0].Expiry
		}
		s.lend(leased, 0, algo.Amount{Bucket: expiry, Units: 5})
		if d := s.take(exact, 5); d.Allowed != (tt.count >= tt.other) {
			t.Errorf("%v: what was given back is not there", tt)
		}
	}
}

// A leased record that is given other windows forgets nothing that is lent, and takes
// nothing back that it cannot tell from what others used.
func TestALeaseWithOtherWindows(t *testing.T) {
	s := newStage(t)
	fixed, rolling := escapement.FixedWindow, escapement.RollingWindow
	before := limit(t, rolling, 100, time.Minute, time.Second)
	other := plan(t, escapement.Limit{Name: "k", Algorithm: rolling, Rate: escapement.Rate{Count: 100, Per: time.Minute}, Sync: time.Second, Buckets: 50})
	for _, tt := range []struct {
		from, to *escapement.Plan
		quiet    time.Duration // after which all is free again
	}{
		{before, other, 2 * time.Minute}, {other, before, 2 * time.Minute},
		{limit(t, fixed, 100, time.Minute, time.Second), limit(t, fixed, 100, 30*time.Second, time.Second), time.Minute},
		{limit(t, fixed, 100, time.Minute, time.Second), before, 2 * time.Minute},
		{before, limit(t, fixed, 100, time.Minute, time.Second), 2 * time.Minute},
		{before, limit(t, escapement.TokenBucket, 100, time.Minute, 0), 2 * time.Minute},
		{before, limit(t, rolling, 100, 30*time.Second, 0), 2 * time.Minute},
		{limit(t, fixed, 100, time.Minute, time.Second), limit(t, rolling, 100, time.Minute, 0), 2 * time.Minute},
	} {
		s.reset()
		s.now += 60_000_000
		g := s.lend(tt.from, 70)
		if granted(&g) != 70 {
			t.Fatalf("%d granted of 70", granted(&g))
		}
		rest := func(want int64) int64 {
			if _, ok := tt.to.Lease(); ok {
				expiry := int64(s.now) / max(1, int64(tt.to.Core().Numbers().Width))
				g := s.lend(tt.to, want, algo.Amount{Bucket: expiry, Units: 40})
				return granted(&g)
			}
			for ; want > 0; want-- {
				if s.take(tt.to, want).Allowed {
					break
				}
			}
			return want
		}
		if n := rest(100); n != 30 {
			t.Errorf("%s to %s: %d granted beside 70", newWire(tt.from).text, newWire(tt.to).text, n)
		}
		s.now += algo.Store(tt.quiet / time.Microsecond)
		if n := rest(100); n != 100 {
			t.Errorf("%s to %s: %d granted when all is free", newWire(tt.from).text, newWire(tt.to).text, n)
		}
	}
}

// Where nobody has asked for long, an exact claim leaves a plain record, which the short
// scripts read.
func TestALeaseThatIsOver(t *testing.T) {
	s := newStage(t)
	for _, a := range []escapement.Algorithm{escapement.FixedWindow, escapement.RollingWindow} {
		s.reset()
		leased, exact := limit(t, a, 100, time.Minute, time.Second), limit(t, a, 100, time.Minute, 0)
		s.lend(leased, 10)
		s.take(exact, 1)
		if r := s.srv.Must(t, "GET", "k"); !strings.Contains(r, "\nM") {
			t.Errorf("%v: an exact claim forgets what is lent: %q", a, r)
		}
		s.now += 120_000_000
		s.take(exact, 1)
		if r := s.srv.Must(t, "GET", "k"); strings.Contains(r, "\nM") {
			t.Errorf("%v: two windows later the record is %q", a, r)
		}
		if d := s.take(exact, 1); d.Remaining() != 98 {
			t.Errorf("%v: %d remain, want 98", a, d.Remaining())
		}
	}
	late := plan(t, escapement.Limit{Name: "k", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 100, Per: time.Minute}, Sync: time.Second, SyncMode: escapement.SyncDelayed})
	exact := limit(t, escapement.FixedWindow, 100, time.Minute, 0)
	s.reset()
	s.collect(late, 1, 10)
	s.take(exact, 5)
	if f := s.collect(late, 1, 10); f.Used != 15 {
		t.Errorf("%d used after a repetition, want 15", f.Used)
	}
	s.now += 180_000_000
	s.take(exact, 1)
	if r := s.srv.Must(t, "GET", "k"); strings.Contains(r, "\nD") {
		t.Errorf("three windows later the record is %q", r)
	}
	// A limit that is leased, reported and exact at once loses no count.
	leased := limit(t, escapement.FixedWindow, 100, time.Minute, time.Second)
	g := s.lend(leased, 20)
	f := s.collect(late, 2, 30)
	if d := s.take(exact, 49); granted(&g) != 20 || f.Used != 51 || !d.Allowed || d.Remaining() != 0 {
		t.Errorf("%d granted, %d used, admitted %v and %d remain", granted(&g), f.Used, d.Allowed, d.Remaining())
	}
	if f := s.collect(late, 2, 30); f.Used != 100 {
		t.Errorf("%d used after a repetition, want 100", f.Used)
	}
}

// A sliding_window that some instances lease and others report to has one record, in
// which what was used grows older and reports are told apart, whoever asks in between.
func TestReportsOnALentRollingWindow(t *testing.T) {
	s := newStage(t)
	leased := limit(t, escapement.SlidingWindow, 100, time.Minute, time.Second)
	exact := limit(t, escapement.SlidingWindow, 100, time.Minute, 0)
	late := plan(t, escapement.Limit{Name: "k", Algorithm: escapement.SlidingWindow, Rate: escapement.Rate{Count: 100, Per: time.Minute}, Sync: time.Second, SyncMode: escapement.SyncDelayed})
	for _, first := range []string{"report", "lease"} {
		s.reset()
		s.now += 60_000_000 - s.now%60_000_000
		if first == "report" {
			s.collect(late, 1, 30)
			s.now += 1_000_000
			s.lend(leased, 20)
		} else {
			s.lend(leased, 20)
			s.now += 1_000_000
			s.collect(late, 1, 30)
		}
		if f := s.collect(late, 1, 30); f.Used != 50 || f.Remaining != 50 || f.Window != s.now-s.now%60_000_000 || f.Rest != 59_000_000 {
			t.Errorf("%s first: after a repetition %+v, want 50 used and 50 left", first, f)
		}
		if f := s.collect(late, 2, 30); f.Used != 80 || f.Remaining != 20 {
			t.Errorf("%s first: %+v, want 80 used and 20 left", first, f)
		}
		if d := s.take(exact, 5); !d.Allowed || d.Remaining() != 15 {
			t.Errorf("%s first: beside 80 a claim of 5 is admitted %v and leaves %d", first, d.Allowed, d.Remaining())
		}
		if g := s.lend(leased, 100); granted(&g) != 15 {
			t.Errorf("%s first: %d granted beside 85", first, granted(&g))
		}
		for n := range int64(125) { // what was lent may be used until half a window from then
			s.now += 1_000_000
			s.collect(late, 3+n, 0)
			s.lend(leased, 0)
		}
		if f := s.collect(late, 200, 0); f.Used != 0 || f.Remaining != 100 {
			t.Errorf("%s first: two windows later %+v", first, f)
		}
		if g := s.lend(leased, 100); granted(&g)+g.Available != 100 {
			t.Errorf("%s first: two windows later %d granted and %d available", first, granted(&g), g.Available)
		}
		// Once nobody leases any more, reports leave a record of their own.
		s.now += 300_000_000
		if f := s.collect(late, 201, 10); f.Used != 10 || strings.Contains(s.srv.Must(t, "GET", "k"), " r ") {
			t.Errorf("%s first: the record of reports alone is %q", first, s.srv.Must(t, "GET", "k"))
		}
	}
}

// What was lent of a window before it began counts in it for whoever asks first.
func TestWhatWasLentAheadCounts(t *testing.T) {
	s := newStage(t)
	leased, exact := limit(t, escapement.FixedWindow, 100, time.Minute, time.Second), limit(t, escapement.FixedWindow, 100, time.Minute, 0)
	late := plan(t, escapement.Limit{Name: "k", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 100, Per: time.Minute}, Sync: time.Second, SyncMode: escapement.SyncDelayed})
	w := newWire(leased)
	for name, first := range map[string]func() int64{
		"report": func() int64 { return s.collect(late, 1, 0).Remaining },
		"claim":  func() int64 { d := s.take(exact, 0); return d.Remaining() },
		"take":   func() int64 { d := s.take(exact, 10); return d.Remaining() + 10 },
	} {
		s.reset()
		c := &syncCall{script: lendScript, more: leaseArgs, keys: []string{"k"}}
		a := algo.Ask{Epoch: -1, Window: int64(s.now) / 60_000_000, Want: 50, WantNext: 30}
		c.body = appendAsk(append(c.body, c.place(w)), w, &a)
		s.run(c)
		s.now += 60_000_000
		if n := first(); n != 70 {
			t.Errorf("%s: %d remain beside 30 that were lent ahead", name, n)
		}
		left := int64(70)
		if name == "take" {
			left = 60
		}
		if g := s.lend(leased, 100); granted(&g) != left {
			t.Errorf("%s: %d granted then, want %d", name, granted(&g), left)
		}
		s.now += 60_000_000
	}
}

// Where scripts may not ask for the time, reports are taken and nothing is lent: who holds
// it would never learn where the line is.
func TestSyncsWithoutTheServersTime(t *testing.T) {
	h := newHand(t)
	s := h.open()
	if g := lendAll(s, asks(plan(t, leased("lent", escapement.FixedWindow, 10)), 1, "k"))[0]; g.Outcome != escapement.NotRun || !errors.Is(g.Err, escapement.ErrStoreUnavailable) {
		t.Errorf("a loan: %v, %v", g.Outcome, g.Err)
	}
	at := algo.Store(h.now.Load() / 1000)
	r := collectAll(s, report(plan(t, reported("late", escapement.FixedWindow, 10)), "k", 1, 1, algo.Spent{Window: at, Units: 4}))[0]
	if r.Outcome != escapement.Decided || r.Flushed.At != at || r.Flushed.Remaining != 6 {
		t.Errorf("a report: %+v", r)
	}
}
