package memstore

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

// scripted is a machine whose clocks a test moves.
type scripted struct{ mono atomic.Int64 }

func (c *scripted) Mono() algo.Mono { return algo.Mono(c.mono.Load()) }

func (c *scripted) Read() clock.Reading {
	m := c.Mono()
	return clock.Reading{M0: m, Wall: 1_800_000_000_000_000_000 + int64(m), M1: m, M2: m}
}

// plain hides a line, so that a Single takes the mutex.
type plain struct{ line *clock.Line }

func (p plain) Now() algo.Store { return p.line.Now() }

// A Single must answer as the algorithm does, whether it keeps a word or a state.
func TestSingle(t *testing.T) {
	r := source(t)
	limits := []escapement.Limit{
		{Name: "coarse", Rate: escapement.Rate{Count: 999_983, Per: 365 * 24 * time.Hour}, Burst: 100_000},
		{Name: "fast", Rate: escapement.PerSecond(10_000_000), Burst: 1000},
	}
	for range 60 {
		limits = append(limits, randomLimit(r, "single"))
	}
	words := 0
	for _, l := range limits {
		p := compile(t, l)
		src := new(scripted)
		line := clock.NewLineFrom(src)
		word, state := NewSingle(p, WithClock(line)), NewSingle(p, WithClock(plain{line}))
		if word.cell.used {
			words++
		}
		if state.cell.used {
			t.Fatal("a clock that is no line may go back, and needs the mutex")
		}
		model := algo.State{Ring: make([]uint32, p.Core().Slots())}
		var receipts []algo.Receipt
		for step := range 300 {
			c := singleClaim(r, p, receipts)
			v := c.Ask(p.Core(), &model, line.Now())
			want := escapement.Decide(p, v, escapement.Exact)
			for name, s := range map[string]*Single{"word": word, "state": state} {
				d, err := s.DecideOne(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				if d.Allowed != want.Allowed || d.Remaining() != want.Remaining() || d.RetryAfter() != want.RetryAfter() ||
					d.ResetAfter() != want.ResetAfter() || d.Delay() != want.Delay() || d.Units() != want.Units() || d.Receipt() != want.Receipt() {
					t.Fatalf("%+v, %s, step %d, %+v:\n got %+v\nwant %+v", l, name, step, c, d, want)
				}
			}
			if want.Allowed {
				receipts = append(receipts, want.Receipt())
			}
			if r.IntN(2) == 0 {
				src.mono.Add(r.Int64N(int64(2 * time.Second)))
			}
		}
	}
	if words < 10 {
		t.Errorf("only %d of %d limits were words", words, len(limits))
	}
}

func singleClaim(r *rand.Rand, p *escapement.Plan, receipts []algo.Receipt) escapement.Claim {
	c := escapement.Claim{Plan: p, Cost: r.Int64N(p.Core().Capacity() + 2)}
	switch r.IntN(8) {
	case 0:
		c.Mode = escapement.TakeUpTo
	case 1:
		c.Mode = escapement.Charge
	case 2:
		c.Mode = escapement.Peek
	case 3:
		c.Patience = time.Duration(1 + r.Int64N(int64(5*time.Second)))
	case 4:
		if len(receipts) > 0 {
			c.Mode, c.Receipt = escapement.Refund, receipts[r.IntN(len(receipts))]
		}
	}
	return c
}

func TestSingleGroups(t *testing.T) {
	for name, clock := range map[string]Clock{"word": clock.NewLineFrom(still{}), "state": newManual()} {
		p := compile(t, escapement.Limit{Name: "pair", Rate: escapement.PerHour(10)})
		s := NewSingle(p, WithClock(clock))
		for i, want := range []bool{true, true, false} {
			var a [1]escapement.Answer
			s.Decide(t.Context(), []escapement.Request{{Claims: []escapement.Claim{claim(p, "a", 2), claim(p, "b", 2)}}}, a[:])
			if a[0].Outcome != escapement.Decided || a[0].Admitted != want || len(a[0].Parts) != 2 {
				t.Fatalf("%s, request %d: %+v", name, i, a[0])
			}
		}
		d := mustTake(t, s, p, "", 2)
		if !d.Allowed || d.Remaining() != 0 {
			t.Errorf("%s: %d left after 8 of 10 and 2 more", name, d.Remaining())
		}
		var a [1]escapement.Answer
		s.Decide(t.Context(), []escapement.Request{{Claims: []escapement.Claim{{Plan: p, Mode: escapement.Charge, Cost: 5}}}}, a[:])
		if !a[0].Admitted || a[0].Parts[0].Units() != 5 {
			t.Errorf("%s: a charge alone: %+v", name, a[0])
		}
		other := compile(t, escapement.Limit{Name: "other", Rate: escapement.PerHour(10)})
		if _, err := s.DecideOne(t.Context(), claim(other, "", 1)); !errors.Is(err, escapement.ErrRequest) {
			t.Errorf("%s: another limit's claim: %v", name, err)
		}
		if _, err := s.DecideOne(t.Context(), claim(p, "", -1)); !errors.Is(err, escapement.ErrCost) {
			t.Errorf("%s: a negative cost: %v", name, err)
		}
	}
}

// The word is written by every processor that asks; what is only read stays out of its line.
func TestSingleLayout(t *testing.T) {
	const line = 64
	var s Single
	from, to := unsafe.Offsetof(s.word), unsafe.Offsetof(s.mu)
	if from%line != 0 || to-from < line {
		t.Errorf("the word stands at %d and its neighbour at %d; want a line of %d bytes of its own", from, to, line)
	}
}
