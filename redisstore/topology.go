package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// topology is which primary serves which slot. It is replaced, never changed.
type topology struct {
	shards map[string]*shard // by address; not in a cluster: the only one
	order  []*shard          // by their lowest slot
	slots  *[16384]*shard    // nil unless a cluster
}

func (t *topology) shard(key string) *shard {
	if t.slots != nil {
		if s := t.slots[slot(key)]; s != nil {
			return s
		}
	}
	return t.order[0]
}

// connect opens a client. For a node of a cluster it is a client of that node alone: who
// follows a moved slot is this package, which has to know which clock it hears.
func (s *Store) connect(addrs []string) (rueidis.Client, error) {
	alive := max(250*time.Millisecond, 5*s.cfg.Deadline)
	o := rueidis.ClientOption{
		InitAddress: addrs, Username: s.cfg.Username, Password: s.cfg.Password, SelectDB: s.cfg.DB, TLSConfig: s.cfg.TLS,
		ClientName: "escapement", DisableRetry: true, DisableCache: true, AlwaysPipelining: true,
		Dialer: net.Dialer{Timeout: time.Second, KeepAlive: alive}, ConnWriteTimeout: alive, PipelineMultiplex: multiplex(s.cfg.Connections),
	}
	if s.cfg.Mode == Sentinel {
		o.Sentinel = rueidis.SentinelOption{
			MasterSet: s.cfg.Primary, Username: s.cfg.SentinelUsername, Password: s.cfg.SentinelPassword,
			Dialer: o.Dialer, TLSConfig: s.cfg.TLS, TopologyRefreshInterval: 5 * time.Second,
		}
	} else {
		o.ForceSingleClient = true
	}
	if s.cfg.Dial != nil {
		o.DialCtxFn = dialWith(s.cfg)
	}
	return rueidis.NewClient(o)
}

// multiplex is the exponent that rueidis wants: 2^n connections, below zero one.
func multiplex(connections int) int {
	n := -1
	for c := 1; c < connections; c *= 2 {
		n = max(n+1, 1)
	}
	return n
}

func (s *Store) newShard(name string, client rueidis.Client) *shard {
	return &shard{store: s, name: name, client: client}
}

func (s *shard) close() {
	s.mu.Lock()
	s.closed = true
	left := append([]*ticket(nil), s.queue[s.head:]...)
	s.queue, s.head = nil, 0
	s.mu.Unlock()
	for _, t := range left {
		if t.stage.CompareAndSwap(waiting, sent) {
			t.err = errClosed
			t.done <- struct{}{}
		}
	}
	s.client.Close()
}

// join reaches the deployment for the first time.
func (s *Store) join() error {
	if s.cfg.Mode != Cluster {
		client, err := s.connect(s.cfg.Addrs)
		if err != nil {
			return err
		}
		sh := s.newShard(string(s.cfg.Mode), client)
		if s.cfg.Mode == Single {
			sh.name = s.cfg.Addrs[0]
		}
		sh.lineKey = lineKey(s.cfg.Prefix, nil)
		s.topology.Store(&topology{shards: map[string]*shard{sh.name: sh}, order: []*shard{sh}})
		return nil
	}
	var errs []error
	for _, a := range s.cfg.Addrs {
		client, err := s.connect([]string{a})
		if err == nil {
			err = s.refresh(client, a)
			client.Close()
		}
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", a, err))
	}
	return errors.Join(errs...)
}

// refresh asks a node which primary serves which slots, and keeps the shards it knows.
func (s *Store) refresh(client rueidis.Client, asked string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	rows, err := client.Do(ctx, client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return err
	}
	s.links.Lock()
	defer s.links.Unlock()
	old := s.topology.Load()
	t := &topology{shards: map[string]*shard{}, slots: new([16384]*shard)}
	var errs []error
	for _, r := range rows {
		from, to, addr, err := slotRange(r, asked)
		if err != nil {
			return err
		}
		sh, err := s.link(old, t, addr)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for i := from; i <= to; i++ {
			t.slots[i] = sh
		}
	}
	for _, sh := range t.slots {
		if sh != nil && (len(t.order) == 0 || !contains(t.order, sh)) {
			t.order = append(t.order, sh)
		}
	}
	if len(t.order) == 0 {
		return errors.Join(append(errs, errors.New("no primary serves any slot; create the cluster first"))...)
	}
	for _, sh := range t.order {
		k := lineKey(s.cfg.Prefix, func(sl uint16) bool { return t.slots[sl] == sh })
		sh.mu.Lock()
		sh.lineKey = k
		sh.mu.Unlock()
	}
	if old != nil {
		retire(old, t)
	}
	s.topology.Store(t)
	return nil
}

// retire closes the shards that serve no slot any more, unless they were used since the
// last look: a slot may be on its way there.
func retire(old, t *topology) {
	for addr, sh := range old.shards {
		if t.shards[addr] != nil {
			continue
		}
		if n := sh.used.Load(); n != sh.seen {
			sh.seen = n
			t.shards[addr] = sh
			continue
		}
		sh.close()
	}
}

func contains(all []*shard, s *shard) bool {
	for _, o := range all {
		if o == s {
			return true
		}
	}
	return false
}

// link is the shard of an address: the one known, or a new one.
func (s *Store) link(old, t *topology, addr string) (*shard, error) {
	if sh := t.shards[addr]; sh != nil {
		return sh, nil
	}
	if old != nil && old.shards[addr] != nil {
		t.shards[addr] = old.shards[addr]
		return t.shards[addr], nil
	}
	client, err := s.connect([]string{addr})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	t.shards[addr] = s.newShard(addr, client)
	return t.shards[addr], nil
}

// slotRange reads one row of CLUSTER SLOTS: from, to, the primary, its replicas.
func slotRange(row rueidis.RedisMessage, asked string) (from, to int64, addr string, err error) {
	f, err := row.ToArray()
	if err != nil || len(f) < 3 {
		return 0, 0, "", fmt.Errorf("redisstore: CLUSTER SLOTS answered a row of %d fields", len(f))
	}
	if from, err = f[0].AsInt64(); err == nil {
		to, err = f[1].AsInt64()
	}
	if err != nil || from < 0 || to < from || to > 16383 {
		return 0, 0, "", fmt.Errorf("redisstore: CLUSTER SLOTS answered slots %d to %d", from, to)
	}
	n, err := f[2].ToArray()
	if err != nil || len(n) < 2 {
		return 0, 0, "", errors.New("redisstore: CLUSTER SLOTS answered a row without a primary")
	}
	host, err := n[0].ToString()
	if err != nil || host == "" {
		// An empty name stands for the node that was asked.
		if host, _, err = net.SplitHostPort(asked); err != nil {
			return 0, 0, "", err
		}
	}
	port, err := n[1].AsInt64()
	return from, to, net.JoinHostPort(host, strconv.FormatInt(port, 10)), err
}

// redirect is where a call goes that a node of a cluster did not run, or the error that
// it ends with.
func (s *Store) redirect(from *shard, re *rueidis.RedisError, err error) (to *shard, asking bool, failed error) {
	addr, moved := re.IsMoved()
	if !moved {
		addr, asking = re.IsAsk()
	}
	switch {
	case moved || asking:
		s.look()
		if to = s.reach(addr); to != nil {
			return to, asking, nil
		}
		return from, false, err
	case re.IsTryAgain():
		// Half of a slot has moved; the other half follows within moments.
		select {
		case <-time.After(2 * time.Millisecond):
			return from, false, nil
		case <-s.stop:
			return from, false, err
		}
	case re.IsClusterDown():
		s.look()
	}
	return from, false, err
}

// reach is the shard of an address, known or not; nil if it cannot be reached.
func (s *Store) reach(addr string) *shard {
	if sh := s.topology.Load().shards[addr]; sh != nil {
		return sh
	}
	s.links.Lock()
	defer s.links.Unlock()
	old := s.topology.Load()
	t := &topology{shards: map[string]*shard{}, order: old.order, slots: old.slots}
	for a, sh := range old.shards {
		t.shards[a] = sh
	}
	sh, err := s.link(nil, t, addr)
	if err != nil {
		return nil
	}
	s.topology.Store(t)
	return sh
}

// look asks for a new look at the topology, soon.
func (s *Store) look() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}
