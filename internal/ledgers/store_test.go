package ledgers_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/batch"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/lease"
	"github.com/escapement-io/escapement/memstore"
)

// backend is a lender and a collector in this process that counts what it is asked.
type backend struct {
	mu      sync.Mutex
	offset  time.Duration
	fixed   map[string]*algo.FixedLease
	delayed map[string]*algo.Delayed
	calls   int
	keys    int
	largest int
	refuses error                   // what every call is told
	sent    map[string][]algo.Store // by key
}

func newBackend() *backend {
	return &backend{offset: 20_000*24*time.Hour - time.Duration(clock.Mono()), fixed: map[string]*algo.FixedLease{}, delayed: map[string]*algo.Delayed{}}
}

func (b *backend) now() algo.Store {
	return algo.Store((time.Duration(clock.Mono()) + b.offset) / time.Microsecond)
}

func (b *backend) note(n int) {
	b.calls++
	b.keys += n
	b.largest = max(b.largest, n)
}

func (b *backend) Lend(_ context.Context, loans []escapement.Loan, answers []escapement.Granted) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note(len(loans))
	for i := range loans {
		if b.refuses != nil {
			answers[i] = escapement.Granted{Err: b.refuses}
			continue
		}
		l, _ := loans[i].Plan.Lease()
		name := loans[i].Plan.Limit().Name + "/" + loans[i].Key
		r := b.fixed[name]
		if r == nil {
			r = &algo.FixedLease{}
			b.fixed[name] = r
		}
		if b.sent != nil {
			b.sent[loans[i].Key] = append(b.sent[loans[i].Key], b.now())
		}
		answers[i] = escapement.Granted{Outcome: escapement.Decided, Grant: l.SyncFixed(r, b.now(), &loans[i].Ask)}
	}
}

func (b *backend) Collect(_ context.Context, reports []escapement.Report, answers []escapement.Reported) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note(len(reports))
	for i := range reports {
		if b.refuses != nil {
			answers[i] = escapement.Reported{Err: b.refuses}
			continue
		}
		name := reports[i].Plan.Limit().Name + "/" + reports[i].Key
		r := b.delayed[name]
		if r == nil {
			r = &algo.Delayed{}
			b.delayed[name] = r
		}
		answers[i] = escapement.Reported{Outcome: escapement.Decided, Flushed: reports[i].Plan.Core().Flush(r, b.now(), &reports[i].Flush)}
	}
}

// counts are the calls and keys since the last time.
func (b *backend) counts() (calls, keys int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	calls, keys = b.calls, b.keys
	b.calls, b.keys = 0, 0
	return calls, keys
}

func compile(t testing.TB, l escapement.Limit) *escapement.Plan {
	t.Helper()
	p, err := l.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// store is what both packages make.
type store interface {
	escapement.Taker
	Snapshot() lease.Snapshot
	Close(ctx context.Context) error
}

// both opens a store of either kind, with a limit for it.
func both(t *testing.T, l escapement.Limit, o lease.Options, f func(t *testing.T, b *backend, s store, p *escapement.Plan)) {
	for _, mode := range []escapement.SyncMode{escapement.SyncLease, escapement.SyncDelayed} {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := memstore.New()
				defer m.Close()
				b := newBackend()
				l.SyncMode = mode
				p := compile(t, l)
				var s store
				if mode == escapement.SyncLease {
					s = lease.NewStore(b, m, o)
				} else {
					s = batch.NewStore(b, m, o)
				}
				f(t, b, s, p)
				if err := s.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Many keys stretch the interval, and their ticks fill calls.
func TestManyKeys(t *testing.T) {
	const keys = 10_000
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	// At 5 µs a key a tenth of a core syncs 20,000 keys a second.
	l := escapement.Limit{Name: "many", Algorithm: escapement.FixedWindow, Rate: escapement.PerMinute(1000), Sync: 200 * time.Millisecond}
	both(t, l, lease.Options{}, func(t *testing.T, b *backend, s store, p *escapement.Plan) {
		round := func() {
			for _, k := range names {
				// In a bubble no time passes meanwhile.
				if _, err := s.TakeOne(t.Context(), p, k, 1); err != nil {
					t.Fatal(err)
				}
			}
		}
		var interval time.Duration
		for range 20 {
			round()
			time.Sleep(150 * time.Millisecond)
		}
		interval = s.Snapshot().Limits[0].Interval
		if interval < time.Second/2 || interval > time.Second {
			t.Fatalf("%d keys sync every %v, want half a second and a little", keys, interval)
		}
		b.counts()
		for range 16 {
			round()
			time.Sleep(interval / 4)
		}
		calls, synced := b.counts()
		most := 4 * (keys/64 + 1)
		if calls > most+8 || synced < 3*keys || synced > 5*keys {
			t.Errorf("%d calls for %d keys in four intervals, want at most %d for %d", calls, synced, most, 4*keys)
		}
		b.mu.Lock()
		largest := b.largest
		b.mu.Unlock()
		if largest > 64 {
			t.Errorf("a call of %d keys", largest)
		}
		t.Logf("%d calls for %d keys in four intervals of %v", calls, synced, interval)
		// Silent keys cost nothing, and are forgotten.
		time.Sleep(30 * time.Second)
		b.counts()
		time.Sleep(30 * time.Second)
		if calls, _ := b.counts(); calls > 0 {
			t.Errorf("%d calls for silent keys", calls)
		}
		if v := s.Snapshot(); v.Keys > 0 || v.Syncing > 0 {
			t.Errorf("%d keys are kept, %d of them sync", v.Keys, v.Syncing)
		}
	})
}

// A phase that is given lies on the store's line, whenever the process began.
func TestGivenPhase(t *testing.T) {
	phase := 70 * time.Millisecond
	l := escapement.Limit{Name: "phase", Algorithm: escapement.FixedWindow, Rate: escapement.PerMinute(10_000), Sync: 200 * time.Millisecond}
	both(t, l, lease.Options{Phase: &phase}, func(t *testing.T, b *backend, s store, p *escapement.Plan) {
		time.Sleep(13_579 * time.Microsecond)
		b.mu.Lock()
		b.sent = map[string][]algo.Store{}
		b.mu.Unlock()
		for range 200 {
			if _, err := s.TakeOne(t.Context(), p, "k", 1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		b.mu.Lock()
		late := b.sent["k"]
		b.mu.Unlock()
		for _, at := range late[len(late)/2:] {
			if off := (int64(at) - 70_000) % 200_000; off < 0 || off > 3000 {
				t.Errorf("a tick at %d µs of its interval, want 70,000", int64(at)%200_000)
			}
		}
	})
}

// At the cap a new key is not decided; silent ones make room.
func TestCapOfKeys(t *testing.T) {
	l := escapement.Limit{Name: "cap", Algorithm: escapement.FixedWindow, Rate: escapement.PerMinute(10), Sync: 200 * time.Millisecond}
	both(t, l, lease.Options{MaxKeys: 100}, func(t *testing.T, _ *backend, s store, p *escapement.Plan) {
		refused := 0
		for i := range 150 {
			if _, err := s.TakeOne(t.Context(), p, fmt.Sprint(i), 1); errors.Is(err, escapement.ErrFull) {
				refused++
			}
		}
		if v := s.Snapshot(); refused != 50 || v.Full != 50 || v.Keys != 100 {
			t.Errorf("%d of 150 keys found no room, %d counted, %d kept", refused, v.Full, v.Keys)
		}
		time.Sleep(20 * time.Second)
		for i := range 100 {
			if _, err := s.TakeOne(t.Context(), p, fmt.Sprint("new", i), 1); err != nil {
				t.Fatalf("key %d after a silence: %v", i, err)
			}
		}
	})
}

// BenchmarkManyKeys keeps a hundred thousand keys active in real time, and reports what
// their syncs cost once the interval has stretched.
func BenchmarkManyKeys(b *testing.B) {
	const keys = 100_000
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprint("key", i)
	}
	p := compile(b, escapement.Limit{Name: "many", Algorithm: escapement.FixedWindow, Rate: escapement.PerMinute(1000), Sync: 200 * time.Millisecond})
	m := memstore.New()
	defer m.Close()
	back := newBackend()
	s := lease.NewStore(back, m, lease.Options{MaxWait: time.Second})
	defer s.Close(context.Background())
	at := 0
	load := func(lasts time.Duration) {
		until := clock.Deadline(lasts)
		for clock.Until(until) > 0 {
			for range 1500 {
				s.TakeOne(context.Background(), p, names[at%keys], 1)
				at++
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	for b.Loop() {
		load(12 * time.Second)
		before, began := s.Snapshot(), clock.Mono()
		load(10 * time.Second)
		after, took := s.Snapshot(), clock.Since(began)
		interval := after.Limits[0].Interval
		b.ReportMetric(interval.Seconds(), "interval-s")
		b.ReportMetric(float64(after.Syncing), "keys")
		b.ReportMetric(100*float64(after.Busy-before.Busy)/float64(took), "busy-%-of-a-core")
		perInterval := float64(after.Calls-before.Calls) * interval.Seconds() / took.Seconds()
		b.ReportMetric(perInterval, "calls/interval")
		b.ReportMetric(float64(after.Syncs-before.Syncs)/float64(after.Calls-before.Calls), "keys/call")
	}
}
