package redisstore

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/redistest"
	"github.com/escapement-io/escapement/storetest"
)

// mover lets time pass on the line of a store without anybody waiting for it.
type mover struct{ store *Store }

func (m mover) Advance(d time.Duration) {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	m.store.witness.offset += d.Microseconds()
	for _, n := range m.store.witness.nodes {
		n.adj += d.Microseconds()
	}
}

var prefixes atomic.Int64

func contract(t *testing.T, cfg Config) {
	storetest.Run(t, func(t *testing.T) (escapement.Store, storetest.Clock) {
		cfg.Prefix = fmt.Sprintf("t%d:", prefixes.Add(1))
		s := open(t, cfg)
		return s, mover{s}
	})
}

func TestContractSingle(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	contract(t, Config{Addrs: []string{srv.Addr()}})
}

func TestContractCluster(t *testing.T) {
	c := redistest.StartCluster(t, 3, func(int) redistest.Options { return redistest.Options{} })
	contract(t, Config{Mode: Cluster, Addrs: c.Addrs()[:1]})
}

func TestContractSentinel(t *testing.T) {
	r := redistest.StartReplicated(t, redistest.Options{}, redistest.Options{})
	contract(t, Config{Mode: Sentinel, Addrs: []string{r.Sentinel.Addr()}, Primary: redistest.Name})
}

// The contract holds while the server's clock is stepped again and again.
func TestContractWhileTheClockSteps(t *testing.T) {
	w := newWall(t)
	srv := redistest.Start(t, redistest.Options{Wrap: w.under})
	stop := make(chan struct{})
	var stepping sync.WaitGroup
	stepping.Go(func() {
		every := time.NewTicker(300 * time.Millisecond)
		defer every.Stop()
		for i := 1; ; i++ {
			select {
			case <-stop:
				return
			case <-every.C:
			}
			// Forward and back, by seconds to minutes, well within the expiry margin.
			if err := w.move(t.Context(), time.Duration(i*7919%60_000-30_000)*time.Millisecond); err != nil {
				t.Error(err)
				return
			}
		}
	})
	contract(t, Config{Addrs: []string{srv.Addr()}})
	close(stop)
	stepping.Wait()
}
