package redisstore

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/redistest"
)

// hand is a clock moved by hand that dates decisions on a real server.
type hand struct {
	t   *testing.T
	srv *redistest.Server
	now atomic.Int64 // ns
}

func newHand(t *testing.T) *hand {
	h := &hand{t: t, srv: redistest.Start(t, redistest.Options{})}
	h.srv.Must(t, "ACL", "SETUSER", "limited", "on", ">secret", "~*", "+@all", "-time")
	h.now.Store(1_780_000_020_000_000_000) // a full minute
	return h
}

func (h *hand) open() *Store {
	return open(h.t, Config{Addrs: []string{h.srv.Addr()}, Username: "limited", Password: "secret", Bound: func() clock.Interval {
		at := algo.Wall(h.now.Load())
		return clock.Interval{Earliest: at, Latest: at, State: clock.Synchronised}
	}})
}

func (h *hand) sleep(d time.Duration) { h.now.Add(int64(d)) }

// admits asks n times and returns how often the answer was yes.
func (h *hand) admits(s *Store, p *escapement.Plan, n int) (yes int) {
	h.t.Helper()
	for range n {
		if take(h.t, s, p, "k", 1).Allowed {
			yes++
		}
	}
	return yes
}

func window(name string, a escapement.Algorithm, n int64, per time.Duration) escapement.Limit {
	return escapement.Limit{Name: name, Algorithm: a, Rate: escapement.Rate{Count: n, Per: per}}
}

// What was used before a change counts at the instant of the change, however long after
// it somebody asks.
func TestAChangeCountsFromItsInstant(t *testing.T) {
	for _, a := range []escapement.Algorithm{escapement.TokenBucket, escapement.FixedWindow, escapement.SlidingWindow, escapement.RollingWindow} {
		h := newHand(t)
		s := h.open()
		old, next := plan(t, window("w", a, 100, 2*time.Minute)), plan(t, window("w", a, 100, 2*time.Second))
		if n := h.admits(s, old, 101); n != 100 {
			t.Fatalf("%v: %d of 100 admitted", a, n)
		}
		h.sleep(time.Second)
		s.Adopt(next)
		if n := h.admits(s, next, 1); n != 0 {
			t.Errorf("%v: what was used is forgotten at the change", a)
		}
		h.sleep(4 * time.Second)
		if n := h.admits(s, next, 101); n != 100 {
			t.Errorf("%v: %d admitted two periods after the change, want 100", a, n)
		}
	}
}

// While two versions run side by side, what the older one charges is not dated back to
// when the newer one began.
func TestTwoVersionsSideBySide(t *testing.T) {
	for _, a := range []escapement.Algorithm{escapement.TokenBucket, escapement.FixedWindow, escapement.SlidingWindow, escapement.RollingWindow} {
		h := newHand(t)
		before, after := h.open(), h.open()
		old, next := plan(t, window("w", a, 100, time.Minute)), plan(t, window("w", a, 100, 10*time.Second))
		before.Adopt(old)
		after.Adopt(next)
		// The larger of the two admits 100 every 10 s, and 200 in any of them across an edge.
		total := 0
		for range 60 {
			h.sleep(500 * time.Millisecond)
			total += h.admits(before, old, 30) + h.admits(after, next, 30)
		}
		most := 400
		t.Logf("%v: %d admitted in 30 s", a, total)
		if total > most || total < 100 {
			t.Errorf("%v: %d admitted in 30 s, want 100 to %d", a, total, most)
		}
		// Right after the older one has used all, nothing is left for the newer one.
		h.sleep(time.Hour)
		if n := h.admits(before, old, 101); n != 100 {
			t.Errorf("%v: %d of 100 admitted by the older", a, n)
		}
		if n := h.admits(after, next, 1); n != 0 {
			t.Errorf("%v: the newer one admits what the older has used", a)
		}
		h.sleep(30 * time.Second)
		if n := h.admits(after, next, 101); n != 100 {
			t.Errorf("%v: %d admitted three periods after the last use, want 100", a, n)
		}
	}
}

// A record that does not say when it was written is converted as of the call.
func TestARecordWithoutItsWriting(t *testing.T) {
	h := newHand(t)
	s := h.open()
	p := plan(t, window("w", escapement.FixedWindow, 100, time.Hour))
	h.srv.Must(t, "SET", key("esc:", "w", "k"), "1 1779998400000000 0000000000000099 f 3600000000")
	if n := h.admits(s, p, 2); n != 1 {
		t.Errorf("%d admitted of the one that is left", n)
	}
	h.srv.Must(t, "SET", key("esc:", "w", "k"), "1 1779998400000000 0000000000000099 f 3600000000")
	next := plan(t, window("w", escapement.FixedWindow, 100, 2*time.Second))
	s.Adopt(next)
	h.sleep(10 * time.Second)
	if n := h.admits(s, next, 2); n != 1 {
		t.Errorf("%d admitted of the one that is left", n)
	}
}
