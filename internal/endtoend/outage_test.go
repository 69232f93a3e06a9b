package endtoend

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/fallback"
	"github.com/escapement-io/escapement/internal/redistest"
	"github.com/escapement-io/escapement/memstore"
	"github.com/escapement-io/escapement/redisstore"
)

const (
	awayFor    = 5 * time.Second
	backWithin = 2 * time.Second
	deadline   = 50 * time.Millisecond
	lateBy     = 5 * time.Millisecond
	perSecond  = 60 // the limit, its burst, and what each instance is asked
	heapSlack  = 4 << 20
)

// absence is a way in which a Redis is away.
type absence struct {
	name string
	srv  *redistest.Server
	gone func()
	back func()

	instances  [2]*instance
	from, till algo.Mono
}

// instance is one program that uses the library.
type instance struct {
	store    *redisstore.Store
	local    *memstore.Store
	limiters map[escapement.OnFailure]*escapement.Limiter
}

// asked is one decision, and how long it took.
type asked struct {
	of             *instance
	policy         escapement.OnFailure
	sent, answered algo.Mono
	allowed        bool
	basis          escapement.Basis
}

func newInstance(t *testing.T, addr string) *instance {
	t.Helper()
	s, err := redisstore.Open(redisstore.Config{Addrs: []string{addr}, Deadline: deadline})
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{store: s, local: memstore.New(), limiters: map[escapement.OnFailure]*escapement.Limiter{}}
	shared := fallback.New(s, fallback.NewPolicy(i.local, func() int { n, _ := s.Instances(); return n }))
	for p, name := range map[escapement.OnFailure]string{escapement.Deny: "deny", escapement.Allow: "allow", escapement.LocalShare: "share"} {
		l := escapement.Limit{Name: name, Rate: escapement.PerSecond(perSecond), OnFailure: p}
		if i.limiters[p], err = escapement.New(shared, l); err != nil {
			t.Fatal(err)
		}
	}
	return i
}

func (i *instance) close(t *testing.T) {
	if err := i.store.Close(); err != nil {
		t.Error(err)
	}
	if err := i.local.Close(); err != nil {
		t.Error(err)
	}
}

// load asks every limit of every instance at a fixed rate, whether or not answers come.
type load struct {
	mu   sync.Mutex
	all  []asked
	most int // goroutines at any time
	stop chan struct{}
	wg   sync.WaitGroup
}

func (l *load) on(t *testing.T, i *instance) {
	for policy, limiter := range i.limiters {
		l.wg.Go(func() {
			every := time.NewTicker(time.Second / perSecond)
			defer every.Stop()
			for {
				select {
				case <-l.stop:
					return
				case <-every.C:
				}
				l.wg.Go(func() { l.ask(t, asked{of: i, policy: policy}, limiter) })
			}
		})
	}
}

func (l *load) ask(t *testing.T, a asked, limiter *escapement.Limiter) {
	a.sent = clock.Mono()
	d, err := limiter.Take(context.Background(), "k", 1)
	a.answered, a.allowed, a.basis = clock.Mono(), d.Allowed, d.Basis()
	if err != nil {
		t.Errorf("a limit with a policy answered: %v", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, a)
	l.most = max(l.most, runtime.NumGoroutine())
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A Redis that is killed, and one that falls silent, for five seconds under load: each
// limit passes what its policy says, decisions keep their deadline, the store decides
// again by itself, and nothing has grown.
func TestRedisAwayUnderLoad(t *testing.T) {
	patiently(t, func() string { return away(t) })
}

func away(t *testing.T) (problem string) {
	var absences [2]*absence
	for k := range absences {
		srv := redistest.Start(t, redistest.Options{})
		absences[k] = &absence{name: "killed", srv: srv, gone: srv.Kill, back: func() { srv.Restart(t) }}
		for i := range absences[k].instances {
			absences[k].instances[i] = newInstance(t, srv.Addr())
		}
	}
	silent := absences[1]
	silent.name, silent.gone, silent.back = "silent", silent.srv.Stop, silent.srv.Continue
	for _, a := range absences {
		for _, i := range a.instances {
			redistest.Eventually(t, "the instances know each other", func() bool { n, _ := i.store.Instances(); return n == 2 })
		}
	}
	l := &load{stop: make(chan struct{}), all: make([]asked, 0, 12*perSecond*20)}
	idle, before := runtime.NumGoroutine(), heap()
	for _, a := range absences {
		for _, i := range a.instances {
			l.on(t, i)
		}
	}
	time.Sleep(time.Second)
	for _, a := range absences {
		a.from = clock.Mono()
		a.gone()
	}
	time.Sleep(awayFor)
	for _, a := range absences {
		a.back()
		a.till = clock.Mono()
	}
	time.Sleep(backWithin + time.Second)
	close(l.stop)
	l.wg.Wait()
	redistest.Eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= idle+2 })
	grown := heap() - before
	t.Logf("goroutines: %d idle, %d at most; heap %+d KiB", idle, l.most, grown>>10)
	if grown > heapSlack {
		t.Errorf("the heap grew by %d KiB", grown>>10)
	}
	// Twelve streams of 60 a second, each decision under way for the deadline at most.
	if over := l.most - idle; over > 200 {
		problem = fmt.Sprintf("%d goroutines more than idle", over)
	}
	for _, a := range absences {
		problem = strings.TrimPrefix(problem+"; "+a.judge(t, l.all), "; ")
		for _, i := range a.instances {
			i.close(t)
		}
	}
	return strings.Trim(problem, "; ")
}

// judge says what a busy machine may be the reason of; what it cannot be fails the test.
func (a *absence) judge(t *testing.T, all []asked) (problem string) {
	n, late, unrecovered := 0, 0, 0
	passed := map[escapement.OnFailure]int{}
	fallen := map[escapement.OnFailure]int{}
	first, last := map[*instance]algo.Mono{}, map[*instance]algo.Mono{}
	for _, d := range all {
		if d.of != a.instances[0] && d.of != a.instances[1] {
			continue
		}
		if d.sent >= a.from && d.sent < a.till {
			n++
			if time.Duration(d.answered-d.sent) > deadline+lateBy {
				late++
			}
		}
		if d.basis != escapement.Fallback {
			continue
		}
		if d.sent > a.till+algo.Mono(backWithin) {
			unrecovered++
		}
		fallen[d.policy]++
		if d.allowed {
			passed[d.policy]++
		}
		if d.policy == escapement.LocalShare {
			if first[d.of] == 0 || d.answered < first[d.of] {
				first[d.of] = d.answered
			}
			last[d.of] = max(last[d.of], d.answered)
		}
	}
	right := 0.0
	for i, from := range first {
		right += perSecond/2 + perSecond/2*time.Duration(last[i]-from).Seconds()
	}
	share := float64(passed[escapement.LocalShare])
	t.Logf("%s: %d decisions, %d above the deadline by over %v, %d without the store after %v; without it passed %v of %v; the shares are %.0f",
		a.name, n, late, lateBy, unrecovered, backWithin, passed, fallen, right)
	if passed[escapement.Deny] != 0 || passed[escapement.Allow] != fallen[escapement.Allow] || fallen[escapement.Deny] == 0 || fallen[escapement.Allow] == 0 {
		t.Errorf("%s: passed %v of %v", a.name, passed, fallen)
	}
	if share > right*1.05+2 {
		t.Errorf("%s: local_share passed %.0f of %.0f", a.name, share, right)
	}
	switch {
	case share < right*0.95-2:
		return fmt.Sprintf("%s: local_share passed %.0f of %.0f", a.name, share, right)
	case late*100 > n:
		return fmt.Sprintf("%s: %d of %d decisions took over %v", a.name, late, n, deadline+lateBy)
	case unrecovered > 0:
		return fmt.Sprintf("%s: %d decisions were made without the store more than %v after it was back", a.name, unrecovered, backWithin)
	}
	return ""
}
