package redistest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Cluster is a cluster of primaries.
type Cluster struct {
	Nodes []*Server
	ids   []string
}

// slots of a cluster.
const slots = 16384

// StartCluster runs a cluster of n primaries until the test ends; opts gives the options
// of each.
func StartCluster(tb testing.TB, n int, opts func(i int) Options) *Cluster {
	tb.Helper()
	c := &Cluster{}
	for i := range n {
		o := opts(i)
		o.Args = append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no"}, o.Args...)
		s := Start(tb, o)
		c.Nodes = append(c.Nodes, s)
		c.ids = append(c.ids, s.Must(tb, "CLUSTER", "MYID"))
		from, to := i*slots/n, (i+1)*slots/n-1
		args := []string{"CLUSTER", "ADDSLOTS"}
		for k := from; k <= to; k++ {
			args = append(args, strconv.Itoa(k))
		}
		s.Must(tb, args...)
		s.Must(tb, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
	}
	for _, s := range c.Nodes[1:] {
		c.Nodes[0].Must(tb, "CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(s.Port))
	}
	for _, s := range c.Nodes {
		Eventually(tb, "the cluster is complete", func() bool {
			info, err := s.Do("CLUSTER", "INFO")
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:"+strconv.Itoa(n)) &&
				strings.Contains(info, "cluster_slots_assigned:16384")
		})
	}
	return c
}

// AddReplica runs a replica of a node until the test ends, and waits until it follows.
func (c *Cluster) AddReplica(tb testing.TB, of int, o Options) *Server {
	tb.Helper()
	o.Args = append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no"}, o.Args...)
	s := Start(tb, o)
	c.Nodes[of].Must(tb, "CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(s.Port))
	Eventually(tb, "the replica knows its primary", func() bool {
		_, err := s.Do("CLUSTER", "REPLICATE", c.ids[of])
		return err == nil
	})
	Eventually(tb, "the replica follows", func() bool {
		info, err := s.Do("INFO", "replication")
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
	Eventually(tb, "every node knows the replica", func() bool {
		for _, n := range c.Nodes {
			if nodes, err := n.Do("CLUSTER", "NODES"); err != nil || strings.Count(nodes, "slave") != 1 {
				return false
			}
		}
		return true
	})
	return s
}

// Addrs are the nodes' addresses.
func (c *Cluster) Addrs() (all []string) {
	for _, s := range c.Nodes {
		all = append(all, s.Addr())
	}
	return all
}

// Owner is the node that serves a slot, by the first node's view.
func (c *Cluster) Owner(slot int) int { return slot * len(c.Nodes) / slots }

// Begin opens the move of a slot from one node to another: from then on keys that are not
// there any more are asked for elsewhere.
func (c *Cluster) Begin(tb testing.TB, slot, from, to int) {
	tb.Helper()
	c.Nodes[to].Must(tb, "CLUSTER", "SETSLOT", strconv.Itoa(slot), "IMPORTING", c.ids[from])
	c.Nodes[from].Must(tb, "CLUSTER", "SETSLOT", strconv.Itoa(slot), "MIGRATING", c.ids[to])
}

// Migrate moves the keys of a slot whose move is open.
func (c *Cluster) Migrate(tb testing.TB, slot, from, to int) {
	tb.Helper()
	keys := c.Nodes[from].Must(tb, "CLUSTER", "GETKEYSINSLOT", strconv.Itoa(slot), "1000")
	if keys == "" {
		return
	}
	args := []string{"MIGRATE", "127.0.0.1", strconv.Itoa(c.Nodes[to].Port), "", "0", "5000", "KEYS"}
	c.Nodes[from].Must(tb, append(args, strings.Split(keys, "\n")...)...)
}

// End closes the move of a slot.
func (c *Cluster) End(tb testing.TB, slot, to int) {
	tb.Helper()
	for _, i := range append([]int{to}, others(len(c.Nodes), to)...) {
		c.Nodes[i].Must(tb, "CLUSTER", "SETSLOT", strconv.Itoa(slot), "NODE", c.ids[to])
	}
}

func others(n, but int) (all []int) {
	for i := range n {
		if i != but {
			all = append(all, i)
		}
	}
	return all
}

// Replicated is a primary with a replica, watched by a sentinel.
type Replicated struct {
	Primary, Replica, Sentinel *Server
}

// Name is what the sentinel calls the primary.
const Name = "main"

// StartReplicated runs a primary, a replica and a sentinel until the test ends.
func StartReplicated(tb testing.TB, primary, replica Options) *Replicated {
	tb.Helper()
	r := &Replicated{Primary: Start(tb, primary)}
	replica.Args = append([]string{"--replicaof", "127.0.0.1", strconv.Itoa(r.Primary.Port), "--repl-diskless-sync-delay", "0"}, replica.Args...)
	r.Replica = Start(tb, replica)
	r.Primary.Must(tb, "CONFIG", "SET", "repl-diskless-sync-delay", "0")
	Eventually(tb, "the replica follows", func() bool {
		info, err := r.Replica.Do("INFO", "replication")
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
	conf := fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 1\nsentinel down-after-milliseconds %s 500\nsentinel failover-timeout %s 3000\n",
		Name, r.Primary.Port, Name, Name)
	r.Sentinel = Start(tb, Options{Config: conf, Args: []string{"--sentinel"}})
	Eventually(tb, "the sentinel knows the replica", func() bool {
		info, err := r.Sentinel.Do("INFO", "sentinel")
		return err == nil && strings.Contains(info, "slaves=1")
	})
	return r
}

// Failover makes the sentinel promote the replica, and waits until it has.
func (r *Replicated) Failover(tb testing.TB) {
	tb.Helper()
	want := "127.0.0.1\n" + strconv.Itoa(r.Replica.Port)
	Eventually(tb, "the failover begins", func() bool {
		_, err := r.Sentinel.Do("SENTINEL", "FAILOVER", Name)
		return err == nil || strings.Contains(err.Error(), "INPROG")
	})
	Eventually(tb, "the replica is promoted", func() bool {
		got, err := r.Sentinel.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", Name)
		return err == nil && got == want
	})
}

// Eventually waits for a condition, at most half a minute.
func Eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for range 600 {
		if holds() {
			return
		}
		<-again.C
	}
	tb.Fatalf("redistest: in vain: %s", what)
}
