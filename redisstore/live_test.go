package redisstore

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/redistest"
)

// patiently tries up to three times: on a machine that is busy elsewhere calls time out,
// and what timed out is not admitted.
func patiently(t *testing.T, try func() (problem string)) {
	t.Helper()
	var problem string
	for range 3 {
		if problem = try(); problem == "" {
			return
		}
		t.Log(problem)
	}
	t.Error(problem)
}

// admissions are when somebody was admitted at 10 a second and a burst of 10.
type admissions struct {
	mu           sync.Mutex
	at           []algo.Mono
	began, ended algo.Mono
}

func (a *admissions) add() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = append(a.at, clock.Mono())
}

// extra is how many more there are than is right.
func (a *admissions) extra() int64 {
	return int64(len(a.at)) - 10 - int64(time.Duration(a.ended-a.began)/(100*time.Millisecond))
}

// gap is the longest time without one.
func (a *admissions) gap() time.Duration {
	longest, last := algo.Mono(0), a.began
	for _, at := range a.at {
		longest, last = max(longest, at-last), at
	}
	return time.Duration(max(longest, a.ended-last))
}

// load asks every store in turn, at 200 a second, while during runs.
func load(t *testing.T, stores []*Store, p *escapement.Plan, key string, during func()) (extra int64, gap time.Duration) {
	t.Helper()
	var failed atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	a := admissions{began: clock.Mono()}
	for i, s := range stores {
		wg.Go(func() {
			every := time.NewTicker(5 * time.Millisecond * time.Duration(len(stores)))
			defer every.Stop()
			for {
				select {
				case <-stop:
					return
				case <-every.C:
				}
				d, err := s.DecideOne(context.Background(), escapement.Claim{Plan: p, Key: key, Cost: 1})
				if err != nil {
					failed.Add(1)
					t.Logf("store %d: %v", i, err)
				} else if d.Allowed {
					a.add()
				}
			}
		})
	}
	during()
	close(stop)
	wg.Wait()
	if failed.Load() > 0 {
		t.Errorf("%d decisions failed", failed.Load())
	}
	a.ended = clock.Mono()
	return a.extra(), a.gap()
}

// A slot moves twice under load, to a node whose clock is ahead and to one whose clock is
// behind: one line for all of them, so that nothing is minted and nobody is locked out.
func TestASlotMovesUnderLoad(t *testing.T) {
	clocks := []wall{newWall(t), newWall(t)}
	c := redistest.StartCluster(t, 3, func(i int) redistest.Options {
		if i == 0 {
			return redistest.Options{}
		}
		return redistest.Options{Wrap: clocks[i-1].under}
	})
	clocks[0].step(t, 45*time.Second)
	clocks[1].step(t, -45*time.Second)
	cfg := Config{Mode: Cluster, Addrs: c.Addrs()}
	stores := []*Store{open(t, cfg), open(t, cfg)}
	p := plan(t, escapement.Limit{Name: "moved", Rate: escapement.PerSecond(10)})
	n := 0
	patiently(t, func() string {
		name := ""
		for ; name == ""; n++ {
			if k := fmt.Sprint("user", n); c.Owner(int(slot(key("esc:", "moved", k)))) == 0 {
				name = k
			}
		}
		at := int(slot(key("esc:", "moved", name)))
		extra, gap := load(t, stores, p, name, func() {
			time.Sleep(time.Second)
			for from := range 2 {
				c.Begin(t, at, from, from+1)
				time.Sleep(200 * time.Millisecond)
				c.Migrate(t, at, from, from+1)
				time.Sleep(200 * time.Millisecond)
				c.End(t, at, from+1)
				time.Sleep(time.Second)
			}
		})
		t.Logf("%+d beyond right, longest gap %v", extra, gap)
		if extra > 3 {
			t.Errorf("%+d admitted beyond right, want +3 at most", extra)
		}
		if extra < -3 || gap > 300*time.Millisecond {
			return fmt.Sprintf("%+d admitted beyond right and a gap of %v; want -3 at least and 300ms at most", extra, gap)
		}
		return ""
	})
}

// instanceOf is the environment variable that makes a process of this test an instance.
const instanceOf = "ESCAPEMENT_TEST_INSTANCE_OF"

// runInstance asks a store 100 times a second until its input ends, and says what came of it.
func runInstance(addr string) {
	s, err := Open(Config{Addrs: []string{addr}, Deadline: patient})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := escapement.Limit{Name: "host", Rate: escapement.PerSecond(10)}.Compile()
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan struct{})
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // nothing comes but the end
		close(done)
	}()
	every := time.NewTicker(10 * time.Millisecond)
	for {
		select {
		case <-done:
			_ = s.Close()
			return
		case <-every.C:
		}
		d, err := s.DecideOne(context.Background(), escapement.Claim{Plan: p, Key: "k", Cost: 1})
		switch {
		case err != nil:
			fmt.Println(err)
		case d.Allowed:
			fmt.Println("admitted")
		}
	}
}
