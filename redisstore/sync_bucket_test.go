package redisstore

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/redistest"
)

// bucketTwins puts exact claims between asks of leased buckets.
type bucketTwins struct {
	mixedTwins
}

// TestExactOnALeasedBucket puts exact claims between random asks, on one record, to the
// list script and to the lease of package algo.
func TestExactOnALeasedBucket(t *testing.T) {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	n := *syncs / 6
	t.Logf("replay: go test ./redisstore -run TestExactOnALeasedBucket -syncs %d -seed %d", *syncs, s)
	srv := redistest.Start(t, redistest.Options{})
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{srv.Addr()}, DisableCache: true, PipelineMultiplex: -1, DisableRetry: true, AlwaysPipelining: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, sc := range []script{lendScript, listScript} {
		srv.Must(t, "SCRIPT", "LOAD", sc.text)
	}
	b := &bucketTwins{mixedTwins{syncTwins: syncTwins{t: t, r: rand.New(rand.NewPCG(s, 7)), client: client, kind: 3, now: 1_780_000_000_000_000, width: 8,
		spans: []int64{0, 10, 10_000, 20_000, 50_000, 100_000, 1_000_000, 60_000_000}}}}
	for i := range 60 {
		b.pairs = append(b.pairs, b.pair(i))
	}
	for b.claims < n {
		b.calls(1)
		for range 20 {
			b.tick()
			p := b.pairs[b.r.IntN(len(b.pairs))]
			if p.bucket.At > 0 && int64(b.now)/int64(2*p.lease.Interval) < p.bucket.Demand.Epoch+2 {
				b.claimLevel(p)
				b.claims++
			}
		}
	}
	t.Logf("%d claims between %d asks, %d admitted, seed %d", b.claims, b.done, b.admitted, s)
	if b.admitted < b.claims/25 || b.admitted > b.claims*95/100 {
		t.Errorf("the histories are one-sided: %d of %d", b.admitted, b.claims)
	}
}

// claimLevel makes one claim and compares it with an exact ask.
func (b *bucketTwins) claimLevel(p *syncPair) {
	count, r := p.lease.Count, p.bucket
	r.Charged, r.From = slices.Clone(r.Charged), slices.Clone(r.From)
	cost := []int64{0, 1, 1, 2, count / 3, count, count + 1, 1 + b.r.Int64N(count)}[b.r.IntN(8)]
	c := escapement.Claim{Plan: p.wire.plan, Key: p.key, Cost: cost}
	c.Mode = []escapement.Mode{escapement.Take, escapement.Take, escapement.Peek, escapement.TakeUpTo, escapement.Charge}[b.r.IntN(5)]
	spare := p.lease.SyncBucket(&r, b.now, &algo.Ask{Exact: beyond}).Available
	want, units := cost <= spare || cost == 0, int64(0)
	switch c.Mode {
	case escapement.TakeUpTo:
		want, units = true, min(spare, cost)
	case escapement.Charge:
		want, units = true, min(cost, (algo.MaxInt-r.State.A)/p.lease.P/2)
		c.Cost = units
	case escapement.Take:
		if want {
			units = cost
			b.admitted++
		}
	case escapement.Peek, escapement.Refund:
	}
	d := b.decide(p, p.wire, c)
	if d.Allowed != want || c.Mode == escapement.TakeUpTo && d.Units() != units {
		b.t.Fatalf("%s at %d, mode %d, cost %d: admitted %v %d units, want %v %d of %d", p.wire.text, b.now, c.Mode, cost, d.Allowed, d.Units(), want, units, spare)
	}
	if r.State.A += units * p.lease.P; units > 0 {
		p.bucket = r
	}
	if left := p.lease.SyncBucket(&r, b.now, &algo.Ask{Exact: beyond}).Available; d.Remaining() != left {
		b.t.Fatalf("%s at %d, mode %d, cost %d: %d remain, want %d", p.wire.text, b.now, c.Mode, cost, d.Remaining(), left)
	}
}

// bucketLimit is the limit that these tests lease.
func bucketLimit(count, burst int64, per, sync time.Duration) escapement.Limit {
	return escapement.Limit{Name: "lent", Rate: escapement.Rate{Count: count, Per: per}, Burst: burst, Sync: sync}
}

// lentUnits asks for units of a bucket.
func lentUnits(t *testing.T, s *Store, p *escapement.Plan, a algo.Ask) algo.Grant {
	t.Helper()
	answers := make([]escapement.Granted, 1)
	s.Lend(context.Background(), []escapement.Loan{{Plan: p, Key: "k", Ask: a}}, answers)
	if answers[0].Outcome != escapement.Decided {
		t.Fatal(answers[0].Err)
	}
	return answers[0].Grant
}

// What is out takes up room, whatever is given back or becomes of the definition.
func TestLeasedBucketKeepsWhatIsOut(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	s := open(t, Config{Addrs: []string{srv.Addr()}})
	lent := plan(t, bucketLimit(1, 1000, time.Hour, time.Hour))
	l := bucketLimit(1, 1000, time.Hour, 0)
	exact := plan(t, l)
	s.Adopt(lent)
	g := lentUnits(t, s, lent, algo.Ask{Epoch: -1, Rate: 1, Base: 600, Want: 600, Horizon: 20})
	if len(g.Lots) != 1 || g.Lots[0].Units != 600 || g.Available != 400 {
		t.Fatalf("%+v", g)
	}
	s.Adopt(exact)
	d := take(t, s, exact, "k", 300)
	if !d.Allowed || d.Remaining() != 100 {
		t.Fatalf("300 of 400: %v, %d remain", d.Allowed, d.Remaining())
	}
	if over := take(t, s, exact, "k", 101); over.Allowed {
		t.Fatal("101 of 100 are admitted")
	}
	for _, left := range []int64{400, 400} { // the second refund has nothing to take back but what is out
		if _, err := s.DecideOne(context.Background(), escapement.Claim{Plan: exact, Key: "k", Mode: escapement.Refund, Receipt: d.Receipt()}); err != nil {
			t.Fatal(err)
		}
		if d := take(t, s, exact, "k", 0); d.Remaining() != left {
			t.Errorf("%d remain after a refund, want %d", d.Remaining(), left)
		}
	}
	// A larger burst: what is out stays out.
	l.Burst = 2000
	wider := plan(t, l)
	s.Adopt(wider)
	if d := take(t, s, wider, "k", 200); !d.Allowed || d.Remaining() != 200 {
		t.Fatalf("200 of 400 after a larger burst: %v, %d remain", d.Allowed, d.Remaining())
	}
	if text := srv.Must(t, "GET", key(s.cfg.Prefix, "lent", "k")); !strings.Contains(text, "\nM") {
		t.Errorf("the record is not lent any more: %q", text)
	}
	l.Sync = 30 * time.Minute
	again := plan(t, l)
	s.Adopt(again)
	if g := lentUnits(t, s, again, algo.Ask{Epoch: -1, Rate: 1, Base: 2000, Want: 2000, Horizon: 20}); g.Available != 0 || len(g.Lots) != 1 || g.Lots[0].Units != 200 {
		t.Errorf("of 200 that are there: %+v", g)
	}
}

// Leased and exact callers of a bucket share its record, whatever they make of it: never
// is more admitted in a span than the burst and what comes back.
func TestLeasedAndExactShareABucket(t *testing.T) {
	sd := *seed
	if sd == 0 {
		sd = rand.Uint64()
	}
	t.Logf("replay: go test ./redisstore -run TestLeasedAndExactShareABucket -seed %d", sd)
	srv := redistest.Start(t, redistest.Options{})
	const burst, perSecond = 60, 400
	var c usage
	var stop atomic.Bool
	var wg sync.WaitGroup
	limit := bucketLimit(perSecond, burst, time.Second, 50*time.Millisecond)
	var width int64
	for k := range uint64(4) {
		s := open(t, Config{Addrs: []string{srv.Addr()}})
		r := rand.New(rand.NewPCG(sd, k))
		p := plan(t, limit)
		l, _ := p.Lease()
		width = int64(l.Width)
		if k >= 2 {
			wg.Go(func() {
				exactly(t, s, exactPlan(t, limit), r, &c, 2, func(now algo.Store) int64 { return int64(now) / width }, &stop)
			})
			continue
		}
		h := newHolder(t, s, p, r, 20)
		h.ask(1)
		wg.Go(func() { h.run(&c, 3, &stop) })
	}
	time.Sleep(*shared)
	stop.Store(true)
	wg.Wait()
	// Beyond what came back between the beginnings of the first and of the last bucket.
	buckets := make([]int64, 0, len(c.at))
	for k := range c.at {
		buckets = append(buckets, k)
	}
	slices.Sort(buckets)
	over, most, last, sum := int64(0), int64(0), int64(0), int64(0)
	for _, k := range buckets {
		over = max(0, over-(k-last)*width*perSecond) + c.at[k]*1_000_000
		most, last, sum = max(most, over), k, sum+c.at[k]
	}
	t.Logf("%d units admitted, at most %d millionths of them beyond what came back; seed %d", sum, most, sd)
	if allowed := burst*1_000_000 + width*perSecond; most > allowed || sum < 4*burst {
		t.Errorf("%d millionths beyond what came back, at most %d are allowed; %d units in all", most, allowed, sum)
	}
}

func exactPlan(t *testing.T, l escapement.Limit) *escapement.Plan {
	l.Sync = 0
	return plan(t, l)
}
