package clock

import (
	"sync"
	"testing"
	"time"

	"github.com/escapement-io/escapement/algo"
	"pgregory.net/rapid"
)

func TestStretchIsMonotoneAndExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m0 := algo.Mono(rapid.Int64Range(0, 1<<60).Draw(t, "m0"))
		err := rapid.Int64Range(-100*secondNS, 100*secondNS).Draw(t, "err")
		ppb := rapid.SampledFrom([]int64{slewMin, 533_333, slewMax, -slewHalf}).Draw(t, "ppb")
		if err < 0 {
			ppb = -ppb
		}
		s := slewing(m0, epoch, err, ppb)
		m := m0 + algo.Mono(rapid.Int64Range(0, 400*int64(time.Hour)).Draw(t, "m"))
		step := algo.Mono(rapid.Int64Range(1, 1000).Draw(t, "step"))
		if a, b := s.at(m), s.at(m+step); b < a {
			t.Fatalf("goes back by %d ns over %d ns", a-b, step)
		}
		if s.rest(m)+s.at(m)-epoch-int64(m-m0) != s.full {
			t.Fatalf("what is done and what is left do not add up to %d", s.full)
		}
		if off := abs(s.full - err); off > 1+abs(err)/1e6 {
			t.Fatalf("an error of %d is taken in as %d", err, s.full)
		}
		if end := s.at(s.end) - epoch - int64(s.end-m0); end != s.full {
			t.Fatalf("at its end the stretch has taken in %d, want %d", end, s.full)
		}
	})
}

func TestSlewRateStaysWithinItsBounds(t *testing.T) {
	for _, c := range []struct {
		err  time.Duration
		want int64
	}{
		{0, slewMin}, {time.Millisecond, slewMin}, {320 * time.Millisecond, 533_333}, {-320 * time.Millisecond, -533_333},
		{-time.Nanosecond, -slewMin}, {time.Second, 1_666_666}, {time.Hour, slewMax}, {-1 << 62, -slewMax},
	} {
		if got := slewRate(int64(c.err)); got != c.want {
			t.Errorf("an error of %v is slewed at %d, want %d parts per 10^9", c.err, got, c.want)
		}
	}
}

// Replacing a stretch by a slower one that starts where the writer looked, as is natural,
// lets a reader go back: it read on the old stretch while the writer was delayed.
func TestNaivePublicationGoesBack(t *testing.T) {
	fast := slewing(0, epoch, secondNS, slewMax)
	looked := algo.Mono(time.Second)
	slow := slewing(looked, fast.at(looked), -secondNS, -slewMax)

	delayed := looked + algo.Mono(time.Millisecond)
	first := fast.at(delayed)      // the reader still has the old stretch
	second := slow.at(delayed + 1) // by now the new one is published
	if second >= first {
		t.Fatal("the naive form did not go back: this test shows nothing")
	}

	p := &pace{now: fast, next: slow}
	if got := p.at(delayed); got != first {
		t.Fatalf("a reader that comes before the offer is taken must stay on the old stretch: %d, want %d", got, first)
	}
	if p.take() {
		t.Fatal("the offer was taken although a reader had gone past it")
	}
	if got := p.at(delayed + 1); got < first {
		t.Fatalf("guarded time went back by %d ns", first-got)
	}
}

func TestOfferTakenInTimeIsInForce(t *testing.T) {
	a := slewing(0, epoch, 0, 0)
	b := slewing(1000, epoch+1000+500, 0, 0)
	p := &pace{now: a, next: b}
	if got := p.at(999); got != epoch+999 {
		t.Fatalf("before the offer: %d", got-epoch)
	}
	if !p.take() {
		t.Fatal("nobody was there before, and yet the offer was void")
	}
	if got := p.at(1000); got != epoch+1500 {
		t.Fatalf("from the offer on: %d, want 1500", got-epoch)
	}
}

// Readers race a writer that changes between the fastest and the slowest pace all the time.
func TestGuardedTimeNeverGoesBackUnderRaces(t *testing.T) {
	g, err := NewGuard(Config{})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var writer, readers sync.WaitGroup
	changes := 0
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			now, m := g.read()
			off := int64(now) - int64(m)
			g.mu.Lock()
			var ok bool
			switch i % 3 {
			case 0:
				_, ok = g.offer(slew, off+slewable)
			case 1:
				_, ok = g.offer(rebase, off-secondNS)
			case 2:
				_, ok = g.offer(slew, off-slewable)
			}
			g.mu.Unlock()
			if ok {
				changes++
			}
		}
	})
	for range 3 {
		readers.Go(func() {
			last := g.Now()
			for range 300_000 {
				now := g.Now()
				if now < last {
					t.Errorf("guarded time went back by %v", time.Duration(last-now))
					return
				}
				last = now
			}
		})
	}
	readers.Wait()
	close(stop)
	writer.Wait()
	t.Logf("%d changes of pace", changes)
	if changes == 0 {
		t.Error("the pace was never changed: this test shows nothing")
	}
}
