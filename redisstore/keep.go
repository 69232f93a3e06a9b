package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/escapement-io/escapement/clock"
)

var lineScript = newScript("line")

const (
	tick          = 25 * time.Millisecond
	stampEvery    = int64(stampGap)
	topologyEvery = 5 * time.Second
	probeWait     = 250 * time.Millisecond
)

// keep stamps the record of every shard once a second, which also samples its clock,
// probes servers that failed, and follows the topology of a cluster.
func (s *Store) keep() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var stamped, looked, last int64
	var slept int64
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
		s.line.Sync()
		now := int64(s.line.Now())
		if gap := now - last; last != 0 && gap > 1_000_000 {
			slept = now
		}
		last = now
		if s.cfg.Mode == Cluster {
			looked = s.follow(now, looked)
		}
		due := now-stamped >= stampEvery
		if due {
			stamped = now
		}
		s.round(due, now-slept > 3_000_000)
	}
}

// round stamps and probes every shard, each on its own: one that is silent holds up no
// other.
func (s *Store) round(due, mayVote bool) {
	for _, sh := range s.topology.Load().shards {
		sh.mu.Lock()
		probe := sh.breaker.probe(clock.Mono())
		busy := sh.stamping
		run := !busy && sh.lineKey != "" && (probe || due && !sh.breaker.open)
		sh.stamping = busy || run
		sh.mu.Unlock()
		if !run {
			continue
		}
		s.done.Go(func() {
			s.tend(sh, mayVote)
			sh.mu.Lock()
			sh.stamping = false
			sh.mu.Unlock()
		})
	}
}

// tend stamps the record of a shard, and keeps its breaker by the answer.
func (s *Store) tend(sh *shard, mayVote bool) {
	var err error
	lost := false
	switch {
	case s.unasked:
		err = s.ping(sh)
	case !s.settled():
		lost = true
	default:
		sh.mayVote.Store(mayVote)
		lost, err = s.stamp(sh)
	}
	if err != nil {
		if faulty(err) {
			sh.fault(err)
		}
		return
	}
	sh.healthy()
	if lost && s.settling.CompareAndSwap(false, true) {
		defer s.settling.Store(false)
		s.cfg.Logger.Warn("this instance lost time: other callers are ahead of it; it takes their line")
		s.mu.Lock()
		s.witness.known = false
		s.mu.Unlock()
		if err := s.settle(); err != nil {
			s.cfg.Logger.Warn("the line could not be taken", "error", err)
		}
	}
}

func (s *Store) settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.witness.known
}

func (s *Store) ping(sh *shard) error {
	ctx, cancel := context.WithTimeout(context.Background(), probeWait)
	defer cancel()
	return sh.client.Do(ctx, sh.client.B().Ping().Build()).Error()
}

// stamp dates the record of a shard by this caller's line and takes in what it says. It
// reports whether others are ahead.
func (s *Store) stamp(sh *shard) (lost bool, err error) {
	send := int64(s.line.Now())
	s.mu.Lock()
	b, ok := s.witness.bounds(sh.name, send)
	vote, stepped := s.witness.vote(sh.name)
	epoch := s.witness.node(sh.name).epoch
	steps := s.witness.tally.Steps
	s.mu.Unlock()
	if !ok {
		return false, errNoLine
	}
	dev := ""
	if stepped && sh.mayVote.Load() {
		dev = strconv.FormatInt(vote, 10)
	}
	args := b.args(0)
	st, err := s.ask(sh, "stamp", args[0], args[1], args[2], strconv.FormatInt(epoch, 10), s.caller, s.machine, dev)
	if err != nil {
		return false, err
	}
	receive := int64(s.line.Now())
	if sh == s.topology.Load().order[0] {
		s.instances.Store(int64(st.callers))
	}
	s.mu.Lock()
	ok = s.witness.recorded(sh.name, send, receive, st)
	moved, by := s.witness.tally.Steps != steps, s.witness.tally.LastStep
	s.mu.Unlock()
	if moved {
		s.stepped(sh.name, by)
	}
	return !ok, nil
}

// ask runs the script of the line's record. It may be repeated: it charges nothing.
func (s *Store) ask(sh *shard, args ...string) (stamp, error) {
	ctx, cancel := context.WithTimeout(context.Background(), probeWait)
	defer cancel()
	sh.mu.Lock()
	key := sh.lineKey
	sh.mu.Unlock()
	resp := sh.client.Do(ctx, sh.client.B().Evalsha().Sha1(lineScript.sha).Numkeys(2).Key(key, key+callersKey).Arg(args...).Build())
	if re, ok := rueidis.IsRedisErr(resp.Error()); ok && re.IsNoScript() {
		resp = sh.client.Do(ctx, sh.client.B().Eval().Script(lineScript.text).Numkeys(2).Key(key, key+callersKey).Arg(args...).Build())
	}
	w, err := resp.AsIntSlice()
	if err != nil {
		return stamp{}, err
	}
	if len(w) != 7 {
		return stamp{}, fmt.Errorf("redisstore: the line's script answered %d words", len(w))
	}
	return stamp{raw: w[0], epoch: w[1], adj: w[2], line: w[3], at: w[4], other: w[5] == 1, callers: int(w[6])}, nil
}

// callersKey ends the key of who stamped lately.
const callersKey = "callers"

// Instances is how many stores share this deployment, as last heard of: those that have
// stamped the line within five seconds. Known is false before the first stamp, and where
// scripts may not ask for the time.
func (s *Store) Instances() (n int, known bool) {
	n = int(s.instances.Load())
	return n, n > 0
}

// leave takes this caller out of the count, if the store answers.
func (s *Store) leave() {
	sh := s.topology.Load().order[0]
	sh.mu.Lock()
	away := sh.breaker.open
	sh.mu.Unlock()
	if !away && !s.unasked {
		// It goes by itself in five seconds otherwise.
		_, _ = s.ask(sh, "leave", "", "", "", "", s.caller)
	}
}

// follow looks at the topology of a cluster when it is due or somebody asked, by any node
// that answers.
func (s *Store) follow(now, looked int64) int64 {
	due := now-looked >= topologyEvery.Microseconds()
	select {
	case <-s.kick:
		due = due || now-looked >= 100_000
	default:
	}
	if !due || !s.looking.CompareAndSwap(false, true) {
		return looked
	}
	s.done.Go(func() {
		defer s.looking.Store(false)
		for _, sh := range s.topology.Load().shards {
			sh.mu.Lock()
			open := sh.breaker.open
			sh.mu.Unlock()
			if !open && s.refresh(sh.client, sh.name) == nil {
				return
			}
		}
		for _, a := range s.cfg.Addrs {
			if client, err := s.connect([]string{a}); err == nil {
				err = s.refresh(client, a)
				client.Close()
				if err == nil {
					return
				}
			}
		}
		s.look()
	})
	return now
}
