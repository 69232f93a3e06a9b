package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/redistest"
)

func leased(name string, a escapement.Algorithm, n int64) escapement.Limit {
	return escapement.Limit{Name: name, Algorithm: a, Rate: escapement.Rate{Count: n, Per: 24 * time.Hour}, Sync: time.Hour}
}

func reported(name string, a escapement.Algorithm, n int64) escapement.Limit {
	l := leased(name, a, n)
	l.SyncMode = escapement.SyncDelayed
	return l
}

// asks is a loan of so much for each key.
func asks(p *escapement.Plan, want int64, keys ...string) (all []escapement.Loan) {
	for _, k := range keys {
		all = append(all, escapement.Loan{Plan: p, Key: k, Ask: algo.Ask{Epoch: -1, Window: -1, Want: want, Base: want, Upto: -1}})
	}
	return all
}

func lendAll(s escapement.Lender, loans []escapement.Loan) []escapement.Granted {
	answers := make([]escapement.Granted, len(loans))
	s.Lend(context.Background(), loans, answers)
	return answers
}

func collectAll(s escapement.Collector, reports ...escapement.Report) []escapement.Reported {
	answers := make([]escapement.Reported, len(reports))
	s.Collect(context.Background(), reports, answers)
	return answers
}

func granted(g *algo.Grant) int64 {
	n := g.Units
	for _, l := range g.Lots {
		n += l.Units
	}
	return n
}

func report(p *escapement.Plan, key string, instance, number int64, parts ...algo.Spent) escapement.Report {
	return escapement.Report{Plan: p, Key: key, Flush: algo.Flush{Instance: instance, Number: number, Interval: 1_000_000, Parts: parts}}
}

// names are n keys, of which every tenth comes twice.
func names(n int) (all []string) {
	for i := range n {
		if i%10 == 9 {
			i--
		}
		all = append(all, fmt.Sprint("user", i))
	}
	return all
}

func TestManyKeysOnASingleServer(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	testManyKeys(t, open(t, Config{Addrs: []string{srv.Addr()}}))
	calls := 0
	for _, line := range strings.Split(srv.Must(t, "INFO", "commandstats"), "\n") {
		if strings.HasPrefix(line, "cmdstat_eval") {
			n := 0
			_, rest, _ := strings.Cut(line, "calls=")
			fmt.Sscan(rest, &n)
			calls += n
		}
	}
	if calls == 0 || calls > 60 {
		t.Errorf("%d script calls for 1200 keys", calls)
	}
}

func TestManyKeysOnACluster(t *testing.T) {
	c := redistest.StartCluster(t, 3, func(int) redistest.Options { return redistest.Options{} })
	testManyKeys(t, open(t, Config{Mode: Cluster, Addrs: c.Addrs()[:1]}))
}

// testManyKeys lends and collects on 300 keys at once; what one key is granted in all is
// its count, however often it stands in a list.
func testManyKeys(t *testing.T, s *Store) {
	keys := names(300)
	for _, a := range []escapement.Algorithm{escapement.FixedWindow, escapement.RollingWindow} {
		p := plan(t, leased(fmt.Sprintf("lent-%d", a), a, 10))
		sums := map[string]int64{}
		for range 2 {
			for i, g := range lendAll(s, asks(p, 4, keys...)) {
				if g.Outcome != escapement.Decided || g.Err != nil || g.Grant.At <= 0 {
					t.Fatalf("%v: %s: %+v", a, keys[i], g)
				}
				sums[keys[i]] += granted(&g.Grant)
			}
		}
		for i, k := range keys {
			want := int64(8)
			if i%10 >= 8 {
				want = 10
			}
			if sums[k] != want {
				t.Errorf("%v: %s was granted %d, want %d", a, k, sums[k], want)
			}
		}
	}
	p := plan(t, reported("late", escapement.FixedWindow, 10))
	var reports []escapement.Report
	for i, k := range keys {
		reports = append(reports, report(p, k, int64(1+i), 1, algo.Spent{Window: algo.MaxInstant, Units: 3}))
	}
	for range 2 { // the second time all are repetitions
		for i, r := range collectAll(s, reports...) {
			if r.Outcome != escapement.Decided || r.Err != nil || r.Flushed.Used%3 != 0 || r.Flushed.Used == 0 {
				t.Fatalf("%s: %+v", keys[i], r)
			}
		}
	}
	for i, r := range collectAll(s, reports...) {
		want := int64(3)
		if i%10 >= 8 {
			want = 6
		}
		if r.Flushed.Used != want {
			t.Errorf("%s: %d used, want %d", keys[i], r.Flushed.Used, want)
		}
	}
}

// What is no record, or one of another release, is named and left alone, and those beside
// it are answered.
func TestRecordsThatCannotBeLent(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	s := open(t, Config{Addrs: []string{srv.Addr()}})
	fixed, rolling, late := plan(t, leased("fixed", escapement.FixedWindow, 10)), plan(t, leased("rolling", escapement.RollingWindow, 100)), plan(t, reported("late", escapement.FixedWindow, 10))
	lendAll(s, append(asks(fixed, 1, "torn", "fine"), asks(rolling, 1, "torn", "fine")...))
	collectAll(s, report(late, "torn", 1, 1))
	bad := map[string]string{"newer": "2 whatever", "text": "hello", "empty": "", "torn": ""}
	for _, p := range []*escapement.Plan{fixed, rolling, late} {
		name := p.Limit().Name
		for k, v := range bad {
			if k == "torn" {
				v = srv.Must(t, "GET", key("esc:", name, k))
				if v = v[:len(v)-1]; name == "late" {
					v = v[:strings.LastIndex(v, " ")]
				}
			}
			srv.Must(t, "SET", key("esc:", name, k), v)
		}
		srv.Must(t, "LPUSH", key("esc:", name, "list"), "x")
	}
	keys := []string{"newer", "text", "empty", "torn", "list", "fine"}
	check := func(name, k string, o escapement.Outcome, err error) {
		t.Helper()
		if k == "fine" {
			if o != escapement.Decided || err != nil {
				t.Errorf("%s %s: %v, %v", name, k, o, err)
			}
			return
		}
		if o != escapement.NotRun || !errors.Is(err, ErrRecord) || !strings.Contains(err.Error(), key("esc:", name, k)) {
			t.Errorf("%s %s: %v, %v; want not run, and the record named", name, k, o, err)
		}
		if k == "newer" && (!strings.Contains(err.Error(), `'2'`) && !strings.Contains(err.Error(), `"2"`) || srv.Must(t, "GET", key("esc:", name, k)) != bad[k]) {
			t.Errorf("%s %s: %v", name, k, err)
		}
	}
	for _, p := range []*escapement.Plan{fixed, rolling} {
		for i, g := range lendAll(s, asks(p, 1, keys...)) {
			check(p.Limit().Name, keys[i], g.Outcome, g.Err)
		}
	}
	for i, k := range keys {
		r := collectAll(s, report(late, k, 1, int64(2+i)))[0]
		check("late", k, r.Outcome, r.Err)
	}
}

func TestLoansThatAreNotSent(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	s := open(t, Config{Addrs: []string{srv.Addr()}})
	p, late := plan(t, leased("lent", escapement.FixedWindow, 10)), plan(t, reported("late", escapement.FixedWindow, 10))
	l := *p.Limit()
	l.Rate.Per = 12 * time.Hour
	huge := asks(p, 1, "k")[0]
	huge.Ask.Rate = algo.MaxInt + 1
	long := asks(p, 1, "k")[0]
	long.Ask.Settle = make([]algo.Amount, maxAmounts+1)
	loans := append(asks(plan(t, perHour("exact", 1)), 1, "k"), escapement.Loan{Key: "k"}, huge, long)
	loans = append(loans, asks(late, 1, "k")...)
	for i, g := range lendAll(s, loans) {
		if g.Outcome != escapement.NotRun || !errors.Is(g.Err, escapement.ErrRequest) && !errors.Is(g.Err, escapement.ErrCost) {
			t.Errorf("loan %d: %v, %v", i, g.Outcome, g.Err)
		}
	}
	reports := []escapement.Report{report(p, "k", 1, 1), report(late, "k", 0, 1), report(late, "k", 1, 0), report(late, "k", 1, 1, algo.Spent{Units: algo.MaxInt}, algo.Spent{Units: 1})}
	for i, r := range collectAll(s, reports...) {
		if r.Outcome != escapement.NotRun || r.Err == nil {
			t.Errorf("report %d: %v, %v", i, r.Outcome, r.Err)
		}
	}
	s.Adopt(plan(t, l))
	if g := lendAll(s, asks(p, 1, "k"))[0]; g.Outcome != escapement.NotRun || !errors.Is(g.Err, escapement.ErrRequest) {
		t.Errorf("a loan for windows that are replaced: %v, %v", g.Outcome, g.Err)
	}
	if n := srv.Must(t, "DBSIZE"); n != "2" { // the line's
		t.Errorf("%s keys, want those of the line", n)
	}
}

// A server that falls silent: within the deadline it is said what is not known, later what
// is not sent; a report is repeated, and counts once.
func TestASilentServerAndSyncs(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	s := open(t, Config{Addrs: []string{srv.Addr()}, Deadline: 300 * time.Millisecond})
	p, late := plan(t, leased("lent", escapement.FixedWindow, 1000)), plan(t, reported("late", escapement.FixedWindow, 1000))
	var keys []string
	for i := range 400 {
		keys = append(keys, fmt.Sprint(i))
	}
	loans := asks(p, 1, keys...)
	lendAll(s, loans)
	collectAll(s, report(late, "k", 7, 1, algo.Spent{Window: algo.MaxInstant, Units: 5}))
	srv.Stop()
	again := report(late, "k", 7, 2, algo.Spent{Window: algo.MaxInstant, Units: 6})
	got := map[escapement.Outcome]int{}
	for _, g := range lendAll(s, loans) {
		got[g.Outcome]++
		if !errors.Is(g.Err, escapement.ErrStoreUnavailable) {
			t.Fatalf("%v, %v", g.Outcome, g.Err)
		}
	}
	if got[escapement.Unknown] != 2*maxSync || got[escapement.NotRun] != 400-2*maxSync {
		t.Errorf("outcomes %v, want %d unknown and the rest not run", got, 2*maxSync)
	}
	if r := collectAll(s, again)[0]; r.Outcome == escapement.Decided {
		t.Errorf("a silent server answered %+v", r)
	}
	srv.Continue()
	redistest.Eventually(t, "the report is taken", func() bool {
		r := collectAll(s, again)[0]
		return r.Outcome == escapement.Decided && r.Flushed.Used == 11
	})
	if r := collectAll(s, again)[0]; r.Flushed.Used != 11 {
		t.Errorf("%d used after a repetition, want 11", r.Flushed.Used)
	}
}

// While lists of many keys are lent, exact claims are answered between their calls.
func TestExactCallsBesideManySyncs(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	s := open(t, Config{Addrs: []string{srv.Addr()}})
	p, exact := plan(t, leased("lent", escapement.FixedWindow, 1000)), plan(t, perHour("exact", 1_000_000))
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		defer done.Store(true)
		for _, g := range lendAll(s, asks(p, 1, names(10_000)...)) {
			if g.Outcome != escapement.Decided {
				t.Errorf("%v, %v", g.Outcome, g.Err)
				return
			}
		}
	})
	n := 0
	for ; !done.Load(); n++ {
		take(t, s, exact, "k", 1)
	}
	wg.Wait()
	if n < 3 {
		t.Errorf("%d exact claims were answered beside 157 calls", n)
	}
}

// A failover to a replica: what was replicated holds, loans and reports go on, and a
// report of unknown fate is repeated and counts once.
func TestSyncsAcrossAFailover(t *testing.T) {
	r := redistest.StartReplicated(t, redistest.Options{}, redistest.Options{})
	s := open(t, Config{Mode: Sentinel, Addrs: []string{r.Sentinel.Addr()}, Primary: redistest.Name, Deadline: time.Second})
	fixed, rolling := plan(t, leased("fixed", escapement.FixedWindow, 100)), plan(t, leased("rolling", escapement.RollingWindow, 100))
	late := plan(t, reported("late", escapement.FixedWindow, 100))
	held := int64(0)
	for _, g := range lendAll(s, append(asks(fixed, 60, "k"), asks(rolling, 60, "k")...)) {
		held += granted(&g.Grant)
	}
	collectAll(s, report(late, "k", 7, 1, algo.Spent{Window: algo.MaxInstant, Units: 60}))
	r.Primary.Must(t, "WAIT", "1", "5000")
	r.Failover(t)
	again := report(late, "k", 7, 2, algo.Spent{Window: algo.MaxInstant, Units: 6})
	redistest.Eventually(t, "the report is taken", func() bool {
		a := collectAll(s, again)[0]
		return a.Outcome == escapement.Decided && a.Flushed.Used == 66
	})
	for _, g := range lendAll(s, append(asks(fixed, 60, "k"), asks(rolling, 60, "k")...)) {
		if g.Outcome != escapement.Decided {
			t.Errorf("%v, %v", g.Outcome, g.Err)
		}
		held += granted(&g.Grant)
	}
	if held != 200 {
		t.Errorf("%d units are held of two hundred", held)
	}
}

// The store's clock steps under lending: what is answered is held by the bounds, and what
// a holder believes about the line neither moves nor jumps.
func TestASteppedStoreLendsOnOneLine(t *testing.T) {
	w := newWall(t)
	srv := redistest.Start(t, redistest.Options{Wrap: w.under})
	s := open(t, Config{Addrs: []string{srv.Addr()}})
	p := plan(t, escapement.Limit{Name: "lent", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 1000, Per: time.Hour}, Sync: time.Second})
	var m algo.Mapping
	read := func() (at algo.Store, held bool) {
		sent := clock.Mono()
		g := lendAll(s, asks(p, 1, "k"))[0]
		if g.Outcome != escapement.Decided {
			t.Fatalf("%v, %v", g.Outcome, g.Err)
		}
		received := clock.Mono()
		lo, _, ok := m.Bounds(sent)
		if _, hi, _ := m.Bounds(received); ok && (g.Grant.At < lo-100_000 || g.Grant.At > hi+100_000) {
			t.Errorf("the answer is of %d, the line between %d and %d", g.Grant.At, lo, hi)
		}
		if !g.Grant.Held && m.Observe(sent, received, g.Grant.At) {
			t.Error("the line moved")
		}
		return g.Grant.At, g.Grant.Held
	}
	last, _ := read()
	for _, by := range []time.Duration{45 * time.Second, -105 * time.Second, 60 * time.Second} {
		steps := s.Snapshot().Steps
		w.step(t, by)
		clamped := 0
		for i := 0; i < 2000 && (i < 20 || s.Snapshot().Steps == steps); i++ {
			at, held := read()
			if at < last {
				t.Errorf("the line went back by %d", last-at)
			}
			if held {
				clamped++
			}
			last = at
			time.Sleep(2 * time.Millisecond)
		}
		if clamped == 0 || s.Snapshot().Steps == steps {
			t.Errorf("step %v: %d answers were held by the bounds, %d steps seen", by, clamped, s.Snapshot().Steps-steps)
		}
	}
}
