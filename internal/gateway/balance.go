package gateway

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/escapement-io/escapement/internal/config"
)

// node is one server of an upstream.
type node struct {
	addr   string
	weight int
	seed   uint64       // hash of addr, for chash
	active atomic.Int64 // requests in flight, for least_conn
}

// tried are the nodes a request has already failed on.
type tried []*node

func (t tried) has(n *node) bool {
	for _, m := range t {
		if m == n {
			return true
		}
	}
	return false
}

// balancer chooses among the nodes that were not tried yet; nil if there is none left.
type balancer interface {
	next(key string, not tried) *node
}

func newBalancer(c *config.Upstream) (balancer, error) {
	nodes := make([]*node, 0, len(c.Nodes))
	for _, n := range c.Nodes {
		if n.Weight < 0 {
			return nil, fmt.Errorf("node %s: weight %d is negative; use 0 to send it nothing", n.Addr, n.Weight)
		}
		if n.Weight > 0 {
			nodes = append(nodes, &node{addr: n.Addr, weight: n.Weight, seed: hash(n.Addr)})
		}
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("no node with a weight above 0; add one")
	}
	switch c.Balance {
	case "", "roundrobin":
		return &roundRobin{nodes: nodes, current: make([]int, len(nodes))}, nil
	case "least_conn":
		return &leastConn{nodes: nodes}, nil
	case "chash":
		return consistent(nodes), nil
	}
	return nil, fmt.Errorf("balance %q is not known; use roundrobin, least_conn or chash", c.Balance)
}

// roundRobin spreads each node's turns evenly over a round (smooth weighted).
type roundRobin struct {
	nodes []*node

	mu      sync.Mutex
	current []int
}

func (b *roundRobin) next(_ string, not tried) *node {
	if len(b.nodes) == 1 {
		if not.has(b.nodes[0]) {
			return nil
		}
		return b.nodes[0]
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	best, total := -1, 0
	for i, n := range b.nodes {
		if not.has(n) {
			continue
		}
		b.current[i] += n.weight
		total += n.weight
		if best < 0 || b.current[i] > b.current[best] {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	b.current[best] -= total
	return b.nodes[best]
}

// leastConn picks the node with the fewest requests in flight for its weight; equal ones
// take turns.
type leastConn struct {
	nodes []*node
	turn  atomic.Uint32
}

func (b *leastConn) next(_ string, not tried) *node {
	start := int(b.turn.Add(1)) % len(b.nodes)
	var best *node
	var load int64
	for i := range b.nodes {
		n := b.nodes[(start+i)%len(b.nodes)]
		if not.has(n) {
			continue
		}
		if a := n.active.Load() + 1; best == nil || a*int64(best.weight) < load*int64(n.weight) {
			best, load = n, a
		}
	}
	return best
}

// consistent sends equal keys to the same node (weighted rendezvous hashing): when a node
// comes or goes, only the keys that it gains or had move, and a weight is the node's share
// of the keys. It holds no state, so all gateways with the same nodes agree.
type consistent []*node

func (b consistent) next(key string, not tried) *node {
	k := hash(key)
	var best *node
	var most float64
	for _, n := range b {
		if not.has(n) {
			continue
		}
		// u is uniform in (0, 1); -weight/ln(u) is largest with a chance of the weight's share.
		u := (float64(mix(k^n.seed)>>11) + 0.5) / (1 << 53)
		if score := -float64(n.weight) / math.Log(u); best == nil || score > most {
			best, most = n, score
		}
	}
	return best
}

// hash is FNV-1a, mixed.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return mix(h)
}

// mix spreads every bit over the word (the finaliser of MurmurHash3).
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
