package redisstore

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/redistest"
)

var syncs = flag.Int("syncs", 30_000, "random asks and flushes of TestSyncTwins, of each kind")

// TestSyncTwins puts the same random asks and flushes to package algo and to the scripts
// on a real server, which is told the time by bounds that leave it no choice, and compares
// every field of every answer.
func TestSyncTwins(t *testing.T) {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("replay: go test ./redisstore -run TestSyncTwins -syncs %d -seed %d", *syncs, s)
	srv := redistest.Start(t, redistest.Options{})
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{srv.Addr()}, DisableCache: true, PipelineMultiplex: -1, DisableRetry: true, AlwaysPipelining: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, sc := range []script{lendScript, collectScript} {
		srv.Must(t, "SCRIPT", "LOAD", sc.text)
	}
	for kind, name := range []string{"fixed", "rolling", "delayed", "bucket"} {
		t.Run(name, func(t *testing.T) {
			srv.Must(t, "FLUSHALL")
			tw := &syncTwins{t: t, r: rand.New(rand.NewPCG(s, uint64(kind))), client: client, kind: kind, now: 1_780_000_000_000_000, width: maxSync,
				spans: []int64{0, 10, 10_000, 100_000, 1_000_000, 60_000_000, 7_200_000_000}}
			for i := range 100 {
				tw.pairs = append(tw.pairs, tw.pair(i))
			}
			for tw.done < *syncs {
				tw.calls(50)
			}
			t.Logf("%d answers, %d with units or counts, seed %d", tw.done, tw.granted, s)
			if kind != 2 && tw.lost < tw.done/1000 {
				t.Errorf("of %d answers %d say that writes are lost", tw.done, tw.lost)
			}
			if tw.granted < tw.done/10 {
				t.Errorf("the histories are one-sided: %d of %d", tw.granted, tw.done)
			}
		})
	}
}

type syncTwins struct {
	t       *testing.T
	r       *rand.Rand
	client  rueidis.Client
	kind    int
	pairs   []*syncPair
	width   int // keys in a call, at most
	spans   []int64
	now     algo.Store
	done    int
	granted int
	lost    int
}

// syncPair is one key: its plan, the record that package algo has of it, and who holds
// quota of it.
type syncPair struct {
	wire    *wire
	key     string
	lease   algo.Lease
	fixed   algo.FixedLease
	rolling algo.RollingLease
	bucket  algo.BucketLease
	delayed algo.Delayed
	holders [3]syncHolder
}

type syncHolder struct {
	lots             []algo.Lot
	epoch, rate      int64
	upto, carry      int64
	ver              int64
	granted, ahead   int64
	window           int64
	number, instance int64
	flush            algo.Flush
}

// pair draws a plan that compiles.
func (tw *syncTwins) pair(i int) *syncPair {
	r := tw.r
	p := &syncPair{key: fmt.Sprintf("key%d", i)}
	for h := range p.holders {
		p.holders[h].epoch, p.holders[h].upto, p.holders[h].instance = -1, -1, 1+r.Int64N(algo.MaxInt)
	}
	for {
		l := escapement.Limit{Name: "lent", Algorithm: escapement.FixedWindow}
		l.Rate.Count = []int64{1, 2, 10, 60, 64, 65, 500, 1000, 999_983, algo.MaxLease - 1, algo.MaxLease, 1 + r.Int64N(1_000_000)}[r.IntN(12)]
		l.Rate.Per = []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second, 13 * time.Second, time.Minute, time.Hour, 24 * time.Hour}[r.IntN(7)]
		l.Sync = max(20*time.Millisecond, l.Rate.Per/time.Duration(2+r.IntN(100))).Truncate(time.Microsecond)
		l.Fence = tw.kind != 2 && r.IntN(2) == 0
		switch tw.kind {
		case 1:
			l.Algorithm = []escapement.Algorithm{escapement.SlidingWindow, escapement.RollingWindow}[r.IntN(2)]
			if l.Algorithm == escapement.RollingWindow && l.Rate.Count > algo.LogMax && r.IntN(2) == 0 {
				l.Buckets = []int{algo.MinBuckets, 100, algo.MaxBuckets}[r.IntN(3)]
			}
		case 3:
			l.Algorithm = []escapement.Algorithm{escapement.TokenBucket, escapement.GCRA}[r.IntN(2)]
			if back := l.Rate.Count/int64(l.Rate.Per/l.Sync) + 2; r.IntN(2) == 0 {
				l.Burst = back * []int64{1, 2, 10}[r.IntN(3)]
			}
		case 2:
			l.SyncMode = escapement.SyncDelayed
			if r.IntN(8) == 0 {
				l.Rate.Count = []int64{algo.MaxInt, algo.MaxInt / 2, 1 << 40}[r.IntN(3)]
			}
			switch r.IntN(4) {
			case 0:
				l.Align = escapement.FirstUse
			case 1:
				l.Align, l.Rate.Per = escapement.Day+escapement.Align(r.IntN(3)), 0
				l.Zone, _ = time.LoadLocation([]string{"UTC", "Europe/Berlin", "America/New_York"}[r.IntN(3)])
			case 2:
				l.Algorithm = escapement.SlidingWindow
			}
		}
		plan, err := l.Compile()
		if err != nil {
			continue
		}
		p.wire = newWire(plan)
		p.lease, _ = plan.Lease()
		return p
	}
}

// calls makes n calls of up to 64 keys each in one pipeline and compares what they answer.
func (tw *syncTwins) calls(n int) {
	var sent []*syncCall
	var wants [][]any
	var pairs [][]*syncPair
	var cmds []rueidis.Completed
	for range n {
		tw.tick()
		c := &syncCall{script: lendScript, more: leaseArgs}
		if tw.kind == 2 {
			c.script, c.more = collectScript, func(*wire) []string { return nil }
		}
		var want []any
		var of []*syncPair
		for i, k := range tw.r.Perm(len(tw.pairs))[:1+tw.r.IntN(tw.width)] {
			p := tw.pairs[k]
			c.keys, c.places = append(c.keys, p.key), append(c.places, i)
			c.body = append(c.body, c.place(p.wire))
			if tw.kind == 2 {
				f := tw.flush(p)
				c.body = appendFlush(c.body, p.wire, &f)
				want = append(want, p.wire.plan.Core().Flush(&p.delayed, tw.now, &f))
			} else {
				want = append(want, tw.lend(p, c))
			}
			of = append(of, p)
		}
		keys, args := c.encode(bounds{lo: tw.now, hi: tw.now}, time.Hour)
		cmds = append(cmds, tw.client.B().Evalsha().Sha1(c.script.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
		sent, wants, pairs = append(sent, c), append(wants, want), append(pairs, of)
	}
	for i, resp := range tw.client.DoMulti(context.Background(), cmds...) {
		c := sent[i]
		c.words, c.err = resp.AsIntSlice()
		c.each(func(k int, r *reader) {
			var got any
			if tw.kind == 2 {
				f := readFlushed(r)
				got = f
				if f.Used > 0 {
					tw.granted++
				}
			} else {
				var g algo.Grant
				readGrant(r, pairs[i][k].wire.plan, &g)
				g.Ver, g.Lost = r.next(), r.next()
				if g.Lost > 0 {
					tw.lost++
				}
				got = g
				if g.Units > 0 || g.Next > 0 || len(g.Lots) > 0 || g.Admitted {
					tw.granted++
				}
			}
			if !reflect.DeepEqual(got, wants[i][k]) {
				tw.t.Fatalf("key %s of %s %v: -algo +script\n%s", c.keys[k], pairs[i][k].wire.text, pairs[i][k].lease, cmp.Diff(wants[i][k], got))
			}
			tw.done++
		}, func(k int, _ escapement.Outcome, err error) { tw.t.Fatalf("%s: %v", c.keys[k], err) })
	}
}

// tick moves the time: mostly a little forward, at times back.
func (tw *syncTwins) tick() {
	span := tw.spans[tw.r.IntN(len(tw.spans))]
	d := algo.Store(tw.r.Int64N(span + 1))
	if tw.r.IntN(12) == 0 {
		d = -d
	}
	tw.now += d
}

// lend appends an ask to a call and returns what package algo grants.
func (tw *syncTwins) lend(p *syncPair, c *syncCall) algo.Grant {
	r, h := tw.r, &p.holders[tw.r.IntN(3)]
	a := algo.Ask{Epoch: h.epoch, LastRate: h.rate, Window: -1}
	a.Rate = []int64{0, 1, p.lease.Count, 10 * p.lease.Count, 20 * p.lease.Count, r.Int64N(2*p.lease.Count + 1)}[r.IntN(6)]
	a.Want = []int64{0, 1, 5, p.lease.Count / 3, p.lease.Count, 2 * p.lease.Count, r.Int64N(p.lease.Count + 1)}[r.IntN(7)]
	if a.Ver = []int64{h.ver, h.ver, 0, r.Int64N(10)}[r.IntN(4)]; r.IntN(20) == 0 {
		a.Ver = min(algo.MaxInt, max(h.ver, r.Int64N(2)*(p.fixed.Ver+p.rolling.Ver+p.bucket.Ver))+r.Int64N(100))
		if r.IntN(500) == 0 { // from then on the record has lost nothing
			a.Ver = algo.MaxInt
		}
	}
	a.WantNext = []int64{0, 1, p.lease.Count, r.Int64N(p.lease.Count + 1)}[r.IntN(4)]
	if r.IntN(8) == 0 {
		a.Exact = []int64{1, 2, p.lease.Count, p.lease.Count + 1, 1 + r.Int64N(p.lease.Count)}[r.IntN(5)]
	}
	var g algo.Grant
	if p.lease.Width == 0 {
		a.Window = int64(tw.now)/int64(p.lease.Per) - []int64{0, 0, 0, 1, 2, -1}[r.IntN(6)]
		a.Have, a.HaveNext = h.granted, h.ahead
		a.Return = r.Int64N(h.granted + 2)
		a.Spent = []int64{0, 0, 1, r.Int64N(p.lease.Count + 1)}[r.IntN(4)]
		g = p.lease.SyncFixed(&p.fixed, tw.now, &a)
		if h.window != g.Window {
			h.granted, h.ahead, h.window = 0, 0, g.Window
		}
		h.granted, h.ahead = h.granted+g.Units, h.ahead+g.Next
	} else {
		tw.settle(p, h, &a)
		if p.lease.IsBucket() {
			g = p.lease.SyncBucket(&p.bucket, tw.now, &a)
		} else {
			g = p.lease.SyncRolling(&p.rolling, tw.now, &a)
		}
		h.lots = append(h.lots, g.Lots...)
		if a.Exact == 0 {
			h.upto, h.carry = g.Upto, g.Carry
		}
	}
	if a.Exact == 0 {
		h.epoch, h.rate, h.ver = g.Epoch, a.Rate, g.Ver
	}
	c.body = appendAsk(c.body, p.wire, &a)
	return g
}

// settle says of some of the holder's lots that they are used or not wanted any more, and
// at times, unless the numbers are large, something made up.
func (tw *syncTwins) settle(p *syncPair, h *syncHolder, a *algo.Ask) {
	r := tw.r
	J := int64(tw.now) / int64(p.lease.Width)
	a.Past = tw.now - algo.Store(r.Int64N(10_000)) + algo.Store(r.Int64N(2)*r.Int64N(10_000))
	a.Base = r.Int64N(2*p.lease.Count+1) - p.lease.Count
	a.Horizon = []int64{0, 1, 5, 12, 20, r.Int64N(p.lease.Buckets + 2)}[r.IntN(6)]
	a.Have, a.Upto, a.Carry = r.Int64N(p.lease.Count+1), h.upto, h.carry
	var kept []algo.Lot
	for _, l := range h.lots {
		n := r.Int64N(l.Units + 1)
		if r.IntN(3) == 0 {
			n = l.Units
		}
		if r.IntN(3) == 0 || p.lease.Count >= 1<<20 && l.From > int64(a.Past)/int64(p.lease.Width) {
			kept = append(kept, l)
			continue
		}
		a.Settle = append(a.Settle, algo.Amount{Bucket: l.Expiry, Units: n})
		if j := min(J, l.Expiry); j >= l.From {
			a.Used = append(a.Used, algo.Amount{Bucket: j - r.Int64N(min(j-l.From, 3)+1), Units: r.Int64N(n + 1)})
		}
		if l.Units -= n; l.Units > 0 {
			kept = append(kept, l)
		}
	}
	if h.lots = kept; len(kept) > 200 {
		h.lots = kept[100:]
	}
	if p.lease.Count < 1<<20 && r.IntN(5) == 0 {
		a.Settle = append(a.Settle, algo.Amount{Bucket: J + r.Int64N(3*p.lease.Buckets) - 3*p.lease.Buckets/2, Units: r.Int64N(1000) - 10})
		a.Used = append(a.Used, algo.Amount{Bucket: J + r.Int64N(3*p.lease.Buckets) - 3*p.lease.Buckets/2, Units: r.Int64N(1000) - 10})
	}
}

// flush is a new report, or the last one again.
func (tw *syncTwins) flush(p *syncPair) algo.Flush {
	r, h := tw.r, &p.holders[tw.r.IntN(3)]
	if h.number > 0 && r.IntN(5) == 0 {
		return h.flush
	}
	if r.IntN(50) == 0 { // a new process
		h.number, h.instance = 0, 1+r.Int64N(algo.MaxInt)
	}
	h.number++
	f := algo.Flush{Instance: h.instance, Number: h.number, Interval: algo.Span(p.wire.plan.Limit().Sync / time.Microsecond)}
	for range r.IntN(3) {
		window := p.delayed.Start
		if w := p.wire; w.calendar != nil {
			window, _ = w.calendar.Around(tw.now - algo.Store(r.IntN(2))*86_400_000_000)
		} else if r.IntN(2) == 0 && window != 0 {
			window += algo.Store(w.plan.Core().Numbers().Per) * algo.Store(r.IntN(4)-2)
		}
		units := []int64{0, 1, 10, min(p.wire.plan.Core().Capacity(), algo.MaxInt/4), r.Int64N(1_000_000), r.Int64N(algo.MaxInt / 4)}[r.IntN(6)]
		f.Parts = append(f.Parts, algo.Spent{Window: window, Units: units})
	}
	h.flush = f
	return f
}
