package retry

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement-io/escapement/algo"
)

// A million requests that are all refused, each retried as often as it is let.
func TestBudgetInAMillionRequests(t *testing.T) {
	seed := seeded(t)
	const requests = 1_000_000
	for _, tt := range []struct {
		perSecond int64
		budget    Budget
		want      int64 // retries without the burst, per 1,000 requests
	}{
		{5000, Budget{Percent: 10, Floor: time.Second, Burst: 10}, 100},
		{500, Budget{Percent: 20, Floor: time.Second, Burst: 100}, 200},
		{5000, Budget{Percent: 1, Floor: time.Second, Burst: 10}, 10},
		{50, Budget{Percent: 10, Floor: -1, Burst: 10}, 100},
		{50, Budget{Percent: -1, Floor: time.Second, Burst: 10}, 20},
		{5000, Budget{Percent: 100, Floor: time.Second, Burst: 10}, 1000},
	} {
		rnd := rand.New(rand.NewPCG(seed, uint64(tt.perSecond)))
		b, now, retries := tt.budget, int64(0), int64(0)
		acc := b.Open(0)
		for range requests {
			now += int64(rnd.ExpFloat64() * 1e9 / float64(tt.perSecond))
			acc = b.Request(acc, algo.Mono(now))
			for range 3 {
				var ok bool
				if acc, ok = b.Withdraw(acc, algo.Mono(now)); ok {
					retries++
				}
			}
		}
		most := int64(b.Burst) + requests/100*int64(max(b.Percent, 0))
		if b.Floor > 0 {
			most += now / int64(b.Floor)
		}
		if retries > most {
			t.Errorf("%+v: %d retries, above the bound of %d", b, retries, most)
		}
		want := requests / 1000 * tt.want
		if got := retries - int64(b.Burst); got < want*99/100 || got > want*101/100 {
			t.Errorf("%+v at %d/s: %d retries beyond the burst, want %d within 1 %%", b, tt.perSecond, got, want)
		}
	}
}

// No order of requests and retries gets more than what the parts of the budget add up to.
func TestBudgetBound(t *testing.T) {
	seed := seeded(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		b := Budget{Percent: rnd.IntN(102) - 1, Floor: time.Duration(1 + rnd.Int64N(int64(time.Hour))), Burst: 1 + rnd.IntN(10_000)}
		if rnd.IntN(4) == 0 {
			b.Floor = -1
		}
		acc, now, requests, retries := b.Open(0), int64(0), int64(0), int64(0)
		for range 1000 {
			switch rnd.IntN(5) {
			case 0:
				acc = b.Request(acc, algo.Mono(now))
				requests++
			case 1:
				now += rnd.Int64N(int64(24*time.Hour)) >> rnd.IntN(50)
			case 2: // read before the lock by somebody who got it late
				acc = b.Request(acc, algo.Mono(max(0, now-rnd.Int64N(1000))))
				requests++
			default:
				var ok bool
				if acc, ok = b.Withdraw(acc, algo.Mono(now)); ok {
					retries++
				}
			}
			earned := requests * int64(max(b.Percent, 0)) * b.floor()
			if b.Floor > 0 {
				earned += 100 * now
			}
			if retries*b.retry() > b.most()+earned {
				t.Fatalf("seed %d: %+v: %d retries after %d requests in %d ns", seed, b, retries, requests, now)
			}
			if acc.saved < 0 || acc.saved > b.most() {
				t.Fatalf("seed %d: %+v holds %+v", seed, b, acc)
			}
		}
	}
}

// A host that nobody asked for 290 years has a full account, and not more.
func TestBudgetAfterAges(t *testing.T) {
	for _, b := range []Budget{{10, time.Second, 10}, {100, time.Hour, 10_000}, {1, 1, 1}} {
		acc, _ := b.Withdraw(b.Open(0), 0)
		if b.Full(acc, 0) || !b.Full(acc, math.MaxInt64) {
			t.Errorf("%+v: %+v", b, b.earn(acc, math.MaxInt64, 0))
		}
		if acc = b.Request(acc, math.MaxInt64); acc.saved != b.most() {
			t.Errorf("%+v holds %d of %d", b, acc.saved, b.most())
		}
	}
}

func TestTableForgetsOnlyTheFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := complete(t, Rules{MaxHosts: 3, Budget: Budget{Burst: 2, Floor: time.Second, Percent: -1}})
		tab := NewTable(r, func() uint64 { return 0 })
		a := Attempt{Number: 1, Idempotent: true, Repeatable: true, Left: Forever}
		spend := func(host string) string {
			n := 0
			for tab.Decide(host, a, told(1)).Retry {
				n++
			}
			return fmt.Sprint(host, n)
		}
		check := func(got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		check(spend("a"), "a2")
		check(spend("b"), "b2")
		tab.Request("c")
		check(spend("d"), "d2") // takes the place of c, which is as new
		check(spend("e"), "e2") // no place: the shared account
		check(spend("f"), "f0")
		check(spend("c"), "c0")
		check(spend("a"), "a0") // not forgotten
		time.Sleep(time.Second)
		check(spend("a"), "a1")
		check(spend("f"), "f1")
		time.Sleep(time.Second)
		check(spend("f"), "f2") // b and d are full by now and make room
		check(spend("a"), "a1")
		check(spend("g"), "g2")
		if len(tab.hosts) > 3 {
			t.Errorf("%d hosts", len(tab.hosts))
		}
	})
}
