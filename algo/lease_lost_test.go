package algo

import "testing"

// lossStory puts asks to a record that loses writes.
type lossStory struct {
	*testing.T
	lease   Lease
	fixed   FixedLease
	rolling RollingLease
}

func (s *lossStory) sync(at Store, a Ask) Grant {
	s.Helper()
	if s.lease.Width > 0 {
		return s.lease.SyncRolling(&s.rolling, at, &a)
	}
	return s.lease.SyncFixed(&s.fixed, at, &a)
}

func (s *lossStory) want(got, want int64, what string) {
	s.Helper()
	if got != want {
		s.Fatalf("%s is %d, want %d", what, got, want)
	}
}

func (g *Grant) sum() int64 {
	n := g.Units + g.Next
	for _, l := range g.Lots {
		n += l.Units
	}
	return n
}

// A version counts syncs and the units that they hand out, so that one who saw more than
// the record has knows how much may have been promised since.
func TestLostWritesAreNoticed(t *testing.T) {
	for name, l := range map[string]Lease{"fixed": fixedLease(t, 500), "rolling": {Count: 500, Per: 1_000_000, Interval: 200_000, Width: 100_000, Buckets: 10}} {
		t.Run(name, func(t *testing.T) {
			s := &lossStory{T: t, lease: l}
			ask := func(at Store, ver, want int64) Grant {
				return s.sync(at, Ask{Rate: 500, Epoch: -1, Window: int64(at) / 1_000_000, Want: want, Base: want, Horizon: 2, Upto: -1, Ver: ver})
			}
			g := ask(10_000, 0, 40)
			s.want(g.Ver, 41, "the version after 40 units")
			old, ring := s.fixed, s.rolling
			ring.Charged, ring.From = append([]int64(nil), ring.Charged...), append([]int64(nil), ring.From...)
			g = ask(20_000, g.Ver, 30)
			s.want(g.Lost, 0, "the loss without one")
			s.want(g.Ver, 72, "the version after 70 units")
			s.fixed, s.rolling = old, ring
			g = ask(30_000, g.Ver, 10)
			s.want(g.Lost, 31, "the loss of a sync of 30 units")
			s.want(g.sum(), 10, "what is lent without a fence")
			s.want(g.Ver, 83, "the version after the loss")
			s.sync(40_000, Ask{Exact: 5}) // promises nothing
			s.want(ask(45_000, g.Ver, 0).Ver, 84, "the version after an exact request")
			g = ask(50_000, 80, 0)
			s.want(g.Lost, 0, "the loss that somebody who saw less knows of")
			// A record without a version is older than versions, unless it is fresh.
			s.fixed.Ver, s.rolling.Ver = 0, 0
			s.want(ask(60_000, 1000, 0).Lost, 0, "the loss of a record without a version")
			s.fixed, s.rolling = FixedLease{}, RollingLease{}
			s.want(ask(70_000, 1000, 0).Lost, 1000, "the loss of a whole record")
		})
	}
}

// Behind a fence nothing is lent while what was forgotten may be in use.
func TestFence(t *testing.T) {
	l := fixedLease(t, 500)
	l.Fence = true
	s := &lossStory{T: t, lease: l, fixed: FixedLease{At: 1, Ver: 5}}
	g := s.sync(100_000, Ask{Rate: 500, Epoch: -1, Window: 0, Want: 10, WantNext: 10, Ver: 6})
	s.want(g.Lost, 1, "the loss")
	s.want(g.Units, 0, "what is lent of the window")
	s.want(g.Next, 10, "what is lent of the next one, long before it")
	s.fixed = FixedLease{At: 1, Ver: 5}
	g = s.sync(700_000, Ask{Rate: 500, Epoch: -1, Window: 0, WantNext: 10, Ver: 6})
	s.want(g.Next, 0, "what is lent of the next one, shortly before it")
	g = s.sync(1_700_000, Ask{Rate: 500, Epoch: -1, Window: 1, Want: 10, WantNext: 10, Ver: 20})
	s.want(g.Units, 0, "what is lent of the window that was next")
	s.want(g.Next, 0, "what is lent of the one after a second loss")
	g = s.sync(3_000_000, Ask{Rate: 500, Epoch: -1, Window: 3, Want: 10, Ver: g.Ver})
	s.want(g.Units, 10, "what is lent when all that was lost is over")

	s = &lossStory{T: t, lease: Lease{Count: 500, Per: 1_000_000, Interval: 200_000, Width: 100_000, Buckets: 10, Fence: true}, rolling: RollingLease{At: 1, Ver: 5}}
	for at := Store(100_000); at < 1_400_000; at += 100_000 {
		g = s.sync(at, Ask{Rate: 500, Epoch: -1, Want: 10, Base: 10, Horizon: 2, Upto: 1000, Ver: 6})
		s.want(g.sum(), 0, "what is lent within a window and the horizon")
	}
	g = s.sync(1_400_000, Ask{Rate: 500, Epoch: -1, Want: 10, Base: 10, Horizon: 2, Upto: 1000, Ver: 6})
	s.want(g.sum(), 10, "what is lent after that")
}

// What was used without having been granted counts, above the limit too.
func TestSpentCounts(t *testing.T) {
	l := fixedLease(t, 500)
	s := &lossStory{T: t, lease: l}
	g := s.sync(100_000, Ask{Rate: 500, Epoch: -1, Window: 0, Spent: 450, Want: 100})
	s.want(g.Units, 50, "what is lent beside 450")
	g = s.sync(200_000, Ask{Rate: 500, Epoch: -1, Window: 0, Spent: 30, Want: 100})
	s.want(g.Units, 0, "what is lent beside 530")
	s.want(g.Available, 0, "what is there")
	g = s.sync(1_100_000, Ask{Rate: 500, Epoch: -1, Window: 0, Spent: 500, Want: 7, WantNext: 100})
	s.want(g.Units, 100, "what is lent of a new window, whatever the last one held")
}
