package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/escapement-io/escapement/clock"
)

// Open reaches the servers, checks that they can be used, and finds the time line of the
// deployment, which takes up to two seconds if callers were here before and none is now.
// The error names what is missing; a server that is away is one too, so a program that has to
// start without it opens the store later. Findings says what works and should be changed.
func Open(cfg Config) (*Store, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, line: clock.NewLine(), witness: newWitness(), caller: rand.Text(), machine: machine(),
		calls: maxCalls, stop: make(chan struct{}), kick: make(chan struct{}, 1)}
	if cfg.Mode == Cluster {
		// Calls of different slots cannot ride together.
		s.calls = 64
	}
	if err := s.join(); err != nil {
		return nil, fmt.Errorf("redisstore: reach %s: %w", strings.Join(cfg.Addrs, ", "), err)
	}
	err := s.prepare()
	if err == nil && !s.unasked {
		err = s.settle()
	}
	if err != nil {
		for _, sh := range s.topology.Load().shards {
			sh.close()
		}
		return nil, err
	}
	s.done.Go(s.keep)
	return s, nil
}

// machine names this machine for as long as it runs, or this process if it has no name.
func machine() string {
	if b, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		return strings.TrimSpace(string(b))
	}
	return rand.Text()
}

// oldest is the first release whose scripts may write after asking for the time.
const oldest = 5

// prepare checks every primary.
func (s *Store) prepare() error {
	var errs []error
	for _, sh := range s.topology.Load().order {
		info, err := s.info(sh)
		if err != nil {
			errs = append(errs, fmt.Errorf("redisstore: %s: INFO: %w", sh.name, err))
			continue
		}
		version := info["redis_version"]
		if major, err := strconv.Atoi(strings.SplitN(version, ".", 2)[0]); err != nil || major < oldest {
			errs = append(errs, fmt.Errorf("redisstore: %s runs version %q: its scripts may not write after asking for the time; use Redis %d or later, or Valkey", sh.name, version, oldest))
			continue
		}
		if bits := info["arch_bits"]; bits == "32" {
			errs = append(errs, fmt.Errorf("redisstore: %s is a 32-bit server, whose scripts cannot print 53 bits; use a 64-bit one", sh.name))
		}
		if p := info["maxmemory_policy"]; p != "" && p != "noeviction" {
			s.findings = append(s.findings, fmt.Sprintf("%s: maxmemory-policy is %s: under memory pressure the server forgets limits, which are then as new; set noeviction", sh.name, p))
		}
		if err := s.mayAsk(sh); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *Store) info(sh *shard) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	text, err := sh.client.Do(ctx, sh.client.B().Info().Build()).ToString()
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[k] = v
		}
	}
	return fields, nil
}

// mayAsk finds out whether scripts may ask the server for the time.
func (s *Store) mayAsk(sh *shard) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := sh.client.Do(ctx, sh.client.B().Eval().Script("redis.call('TIME') return 1").Numkeys(0).Build()).Error()
	if err == nil {
		return nil
	}
	if _, ok := rueidis.IsRedisErr(err); !ok {
		return fmt.Errorf("redisstore: %s: %w", sh.name, err)
	}
	if err2 := sh.client.Do(ctx, sh.client.B().Eval().Script("return 1").Numkeys(0).Build()).Error(); err2 != nil {
		return fmt.Errorf("redisstore: %s: scripts cannot run: %w; allow EVAL and EVALSHA", sh.name, err2)
	}
	s.unasked = true
	s.findings = append(s.findings, fmt.Sprintf("%s: scripts may not call TIME (%v): decisions are dated by this instance's own clock, and not run where that is not known to a tenth of the emission interval; allow TIME", sh.name, err))
	return nil
}

// Findings are what works and should be changed, such as a maxmemory-policy that evicts.
func (s *Store) Findings() []string { return append([]string(nil), s.findings...) }

// settle finds the line by the record of the first shard, as a newcomer.
func (s *Store) settle() error {
	sh := s.topology.Load().order[0]
	var c newcomer
	var failed error
	for tries := 0; tries < 100; tries++ {
		send := int64(s.line.Now())
		st, err := s.ask(sh, "read")
		receive := int64(s.line.Now())
		if failed = err; err == nil {
			s.mu.Lock()
			settled := c.look(s.witness, sh.name, send, receive, st)
			s.mu.Unlock()
			if settled {
				_, _ = s.stamp(sh) // so that others see it at once; the keeper stamps again
				return nil
			}
		} else if tries >= 3 && !c.began {
			break
		}
		select {
		case <-s.stop:
			return errClosed
		case <-time.After(lookEvery):
		}
	}
	return fmt.Errorf("redisstore: %s: read the line's record: %w", sh.name, failed)
}

const lookEvery = 50 * time.Millisecond
