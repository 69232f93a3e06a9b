package bench

import (
	"context"
	"fmt"
	"strings"

	"github.com/escapement-io/escapement/internal/redisserver"
)

// Primary is what the sentinel of Replicated calls it.
const Primary = "drill"

// Replicated is a primary, its replica and a sentinel that promotes it.
type Replicated struct {
	First, Second, Sentinel *redisserver.Server
}

// Replicated starts the three, the servers under clocks of their own, and waits until the
// replica follows and the sentinel knows it.
func (b *Bench) Replicated(ctx context.Context, first, second *Clock) (*Replicated, error) {
	r := &Replicated{}
	var err error
	if r.First, err = b.Redis(ctx, redisserver.Options{Args: []string{"--repl-diskless-sync-delay", "0"}}, first); err != nil {
		return nil, err
	}
	if r.Second, err = b.Redis(ctx, redisserver.Options{Args: []string{"--replicaof", "127.0.0.1 " + r.First.Port()}}, second); err != nil {
		return nil, err
	}
	if err = Await(ctx, "the replica follows", func() bool {
		info, err := r.Second.Do(ctx, "INFO", "replication")
		return err == nil && strings.Contains(info[0], "master_link_status:up")
	}); err != nil {
		return nil, err
	}
	conf := fmt.Sprintf("sentinel monitor %[1]s 127.0.0.1 %[2]s 1\nsentinel down-after-milliseconds %[1]s 500\nsentinel failover-timeout %[1]s 3000\n", Primary, r.First.Port())
	if r.Sentinel, err = b.Redis(ctx, redisserver.Options{Config: conf, Args: []string{"--sentinel"}}, nil); err != nil {
		return nil, err
	}
	return r, Await(ctx, "the sentinel knows the replica", func() bool {
		info, err := r.Sentinel.Do(ctx, "INFO", "sentinel")
		return err == nil && strings.Contains(info[0], "slaves=1")
	})
}
