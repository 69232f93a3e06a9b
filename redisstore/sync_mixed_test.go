package redisstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/redistest"
)

// TestExactOnALeasedRecord puts exact claims of every mode between random asks, on one
// record, to the list script and to the lease of package algo.
func TestExactOnALeasedRecord(t *testing.T) {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	n := *syncs / 6
	t.Logf("replay: go test ./redisstore -run TestExactOnALeasedRecord -syncs %d -seed %d", *syncs, s)
	srv := redistest.Start(t, redistest.Options{})
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{srv.Addr()}, DisableCache: true, PipelineMultiplex: -1, DisableRetry: true, AlwaysPipelining: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, sc := range []script{lendScript, listScript} {
		srv.Must(t, "SCRIPT", "LOAD", sc.text)
	}
	for kind, name := range []string{"fixed", "rolling"} {
		t.Run(name, func(t *testing.T) {
			srv.Must(t, "FLUSHALL")
			m := &mixedTwins{syncTwins: syncTwins{t: t, r: rand.New(rand.NewPCG(s, uint64(kind))), client: client, kind: kind, now: 1_780_000_000_000_000, width: 8,
				spans: []int64{0, 10, 10_000, 20_000, 50_000, 100_000, 1_000_000, 60_000_000}}}
			for i := range 60 {
				p := m.pair(i)
				m.pairs = append(m.pairs, p)
				m.exact = append(m.exact, m.others(p))
			}
			for m.claims < n {
				m.step()
			}
			t.Logf("%d claims between %d asks, %d admitted, seed %d", m.claims, m.done, m.admitted, s)
			if m.admitted < m.claims/25 || m.admitted > m.claims*95/100 {
				t.Errorf("the histories are one-sided: %d of %d", m.admitted, m.claims)
			}
		})
	}
}

type mixedTwins struct {
	syncTwins
	exact            [][]*wire // the plans of exact callers of a pair's limit
	claims, admitted int
}

// others are plans that exact callers of a leased limit may have: its own, and without
// sync, as another count or as the sliding window that it promises more than.
func (m *mixedTwins) others(p *syncPair) (all []*wire) {
	own := *p.wire.plan.Limit()
	all = append(all, p.wire)
	l := own
	l.Sync = 0
	for _, a := range []escapement.Algorithm{own.Algorithm, escapement.RollingWindow, escapement.SlidingWindow} {
		if m.kind == 0 {
			a = escapement.FixedWindow
		}
		l.Algorithm = a
		for _, count := range []int64{own.Rate.Count, min(own.Rate.Count, 50), 500} {
			l.Rate.Count = count
			if l.Buckets = own.Buckets; a != escapement.RollingWindow || count <= algo.LogMax {
				l.Buckets = 0
			}
			if plan, err := l.Compile(); err == nil {
				all = append(all, newWire(plan))
			}
		}
	}
	return all
}

// step makes a few asks, then claims one after the other.
func (m *mixedTwins) step() {
	m.calls(1)
	for range 20 {
		m.tick()
		i := m.r.IntN(len(m.pairs))
		p := m.pairs[i]
		if (m.kind == 0 && p.fixed.At == 0) || (m.kind == 1 && p.rolling.At == 0) || m.stale(p) {
			continue // not lent, or left alone for long enough to be a plain record again
		}
		m.claim(p, m.exact[i][m.r.IntN(len(m.exact[i]))])
		m.claims++
	}
}

// stale reports whether nothing of a record is lent and nobody asked lately.
func (m *mixedTwins) stale(p *syncPair) bool {
	epoch := max(p.fixed.Demand.Epoch, p.rolling.Demand.Epoch)
	return int64(m.now)/int64(2*p.lease.Interval) >= epoch+2
}

// after is the lease's record at an instant, and what an exact ask of so much is answered.
func (m *mixedTwins) after(p *syncPair, count int64, now algo.Store, cost int64) (algo.FixedLease, algo.RollingLease, algo.Grant) {
	l := p.lease
	l.Count = count
	f, r := p.fixed, p.rolling
	r.Charged, r.From = slices.Clone(r.Charged), slices.Clone(r.From)
	a := algo.Ask{Exact: cost}
	if l.Width == 0 {
		g := l.SyncFixed(&f, now, &a)
		return f, r, g
	}
	g := l.SyncRolling(&r, now, &a)
	return f, r, g
}

// beyond is an exact ask that nothing admits: it brings the record to an instant.
const beyond = algo.MaxInt / 2

func (m *mixedTwins) claim(p *syncPair, w *wire) {
	count := w.plan.Core().Numbers().Count
	c := escapement.Claim{Plan: w.plan, Key: p.key, Cost: []int64{0, 1, 1, 2, count / 3, count, count + 1, 1 + m.r.Int64N(count)}[m.r.IntN(8)]}
	c.Mode = []escapement.Mode{escapement.Take, escapement.Take, escapement.Take, escapement.Peek, escapement.TakeUpTo, escapement.Charge, escapement.Refund}[m.r.IntN(7)]
	fixed, rolling, none := m.after(p, count, m.now, beyond)
	spare := max(0, none.Available)
	want, units := true, int64(0) // admitted, and what moves
	switch c.Mode {
	case escapement.Take, escapement.Peek:
		if want = c.Cost <= spare || c.Cost == 0; want && c.Mode == escapement.Take {
			units = c.Cost
		}
	case escapement.TakeUpTo:
		units = min(spare, c.Cost)
	case escapement.Charge:
		units = c.Cost
	case escapement.Refund:
		c.Receipt = algo.Receipt{At: none.At, Units: min(c.Cost, 1<<31)}
		units = -c.Receipt.Units
	}
	d := m.decide(p, w, c)
	at := fmt.Sprintf("%s on %s at %d, mode %d, cost %d", w.text, p.wire.text, m.now, c.Mode, c.Cost)
	if d.Allowed != want {
		m.t.Fatalf("%s: admitted %v, want %v of %d", at, d.Allowed, want, spare)
	}
	if c.Mode == escapement.TakeUpTo && d.Units() != units {
		m.t.Fatalf("%s: %d units, want %d", at, d.Units(), units)
	}
	if want && c.Mode == escapement.Take {
		m.admitted++
	}
	if !want && c.Cost <= count && c.Mode == escapement.Take {
		m.retry(p, w, c.Cost, d, at)
	}
	m.move(p, fixed, rolling, units)
	_, _, left := m.after(p, count, m.now, beyond)
	if got := d.Remaining(); got != max(0, left.Available) {
		m.t.Fatalf("%s: %d remain, want %d", at, got, max(0, left.Available))
	}
}

// move charges units to the record, or takes them back. Nothing moves if there are none.
func (m *mixedTwins) move(p *syncPair, f algo.FixedLease, r algo.RollingLease, units int64) {
	if units == 0 {
		return
	}
	if m.kind == 0 {
		if f.Given+units < 0 {
			units = -f.Given
		}
		if f.Given += units; units != 0 {
			p.fixed = f
		}
		return
	}
	size := 2*p.lease.Buckets + 1
	i := int64(r.At) / int64(p.lease.Width) % size
	units = max(-r.Charged[i], min(units, algo.MaxLease-r.Charged[i]))
	r.Charged[i] += units
	if r.Sum += units; units != 0 {
		p.rolling = r
	}
}

// retry checks that a refused claim is admitted after RetryAfter and not before.
func (m *mixedTwins) retry(p *syncPair, w *wire, cost int64, d escapement.Decision, at string) {
	if m.kind == 1 && w.kind == 's' {
		return // a sliding window that is judged as a rolling one estimates
	}
	then := d.At() + algo.Store(d.RetryAfter()/time.Microsecond)
	count := w.plan.Core().Numbers().Count
	if _, _, g := m.after(p, count, then-1, cost); g.Admitted {
		m.t.Fatalf("%s: retry after %v, but it is admitted before", at, d.RetryAfter())
	}
	if _, _, g := m.after(p, count, then, cost); !g.Admitted && (m.kind == 1 || p.fixed.Next == 0) {
		m.t.Fatalf("%s: retry after %v, and it is refused then", at, d.RetryAfter())
	}
}

// decide puts a claim to the list script.
func (m *mixedTwins) decide(p *syncPair, w *wire, c escapement.Claim) escapement.Decision {
	it := &item{claims: []escapement.Claim{c}, wires: []*wire{w}, keys: []string{p.key}}
	it.sum()
	keys, args := encodeList([]*item{it}, bounds{lo: m.now, hi: m.now}, time.Hour)
	words, err := m.client.Do(m.t.Context(), m.client.B().Evalsha().Sha1(listScript.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()).AsIntSlice()
	if err != nil {
		m.t.Fatal(err)
	}
	var a escapement.Answer
	if _, err := decode(it, algo.Store(words[1]), words[2:], &a); err != nil {
		m.t.Fatal(err)
	}
	return a.Parts[0]
}
