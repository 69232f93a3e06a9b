package cases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/redisserver"
	"github.com/escapement-io/escapement/redisstore"
)

const everyPath = "0 < PTTL <= 2 x window + 10 s on every write path."

// minute is a limit with a window of 60 s.
func minute(name string, a escapement.Algorithm, sync time.Duration, mode escapement.SyncMode) escapement.Limit {
	return escapement.Limit{Name: name, Algorithm: a, Rate: escapement.PerMinute(100), Sync: sync, SyncMode: mode}
}

// lifetimes writes in every way that the store has, and looks at when the keys end.
func lifetimes(ctx context.Context, c *Case, b Backend) (found string, err error) {
	w, err := newWorld(c)
	if err != nil {
		return "", err
	}
	session, err := b.Start(w)
	if err != nil {
		return "", err
	}
	defer end(session, &err)
	s := session.(*onRedis)
	for _, a := range []escapement.Algorithm{escapement.TokenBucket, escapement.FixedWindow, escapement.SlidingWindow, escapement.RollingWindow, escapement.Pacing} {
		p, err := minute("exact-"+strconv.Itoa(int(a)), a, 0, 0).Compile()
		if err != nil {
			return "", err
		}
		if err := writeExactly(ctx, s, p); err != nil {
			return "", err
		}
	}
	if err := s.timed(func(store *redisstore.Store) error {
		return errors.Join(writeInAdvance(ctx, store), writeLater(ctx, store))
	}); err != nil {
		return "", err
	}
	names, err := s.names()
	if err != nil {
		return "", err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.Contains(name, "{line") }) // of no limit
	if len(names) < 29 {
		return fmt.Sprintf("%d keys were written, want 29 at least", len(names)), nil
	}
	for _, name := range names {
		left, err := redisserver.Do(ctx, s.reach, "PTTL", name)
		if err != nil {
			return "", err
		}
		if ms, err := strconv.ParseInt(left[0], 10, 64); err != nil || ms <= 0 || ms > 130_000 {
			return fmt.Sprintf("PTTL of %s is %s ms", name, left[0]), err
		}
	}
	return "", nil
}

// timed uses the store by an account that may ask the server for the time.
func (s *onRedis) timed(use func(*redisstore.Store) error) error {
	c := s.config
	c.Username, c.Password = s.reach.Username, s.reach.Password
	if s.server != nil {
		c.Username, c.Password = "timed", "any"
	}
	c.Bound, c.Prefix = nil, s.prefix+"timed:"
	store, err := redisstore.Open(c)
	if err != nil {
		return err
	}
	return errors.Join(use(store), store.Close())
}

// writeExactly makes five records: one a mode, the takes alone and with others.
func writeExactly(ctx context.Context, s *onRedis, p *escapement.Plan) error {
	ways := map[string][]escapement.Claim{
		"take":   {{Cost: 1}},
		"wait":   {{Cost: 1, Patience: time.Second}},
		"most":   {{Cost: 1, Mode: escapement.TakeUpTo}},
		"charge": {{Cost: 1, Mode: escapement.Charge}},
		"sum":    {{Cost: 1}, {Cost: 2}},
	}
	for key, claims := range ways {
		for i := range claims {
			claims[i].Plan, claims[i].Key = p, key
		}
		var a [1]escapement.Answer
		s.store.Decide(ctx, []escapement.Request{{Claims: claims}}, a[:])
		if a[0].Err != nil {
			return a[0].Err
		}
		if key != "sum" {
			continue
		}
		back := escapement.Claim{Plan: p, Key: key, Mode: escapement.Refund, Receipt: a[0].Parts[0].Receipt()}
		if _, err := s.store.DecideOne(ctx, back); err != nil {
			return err
		}
	}
	return nil
}

// writeInAdvance has quota lent.
func writeInAdvance(ctx context.Context, s escapement.Lender) error {
	for _, a := range []escapement.Algorithm{escapement.FixedWindow, escapement.RollingWindow, escapement.TokenBucket} {
		p, err := minute("leased-"+strconv.Itoa(int(a)), a, time.Second, escapement.SyncLease).Compile()
		if err != nil {
			return err
		}
		var g [1]escapement.Granted
		s.Lend(ctx, []escapement.Loan{{Plan: p, Key: "k", Ask: algo.Ask{Epoch: -1, Window: -1, Rate: 10, Want: 10, Base: 10, Upto: -1, Horizon: 1}}}, g[:])
		if g[0].Outcome != escapement.Decided {
			return errors.Join(errors.New("nothing was lent"), g[0].Err)
		}
	}
	return nil
}

// writeLater reports what was admitted.
func writeLater(ctx context.Context, s escapement.Collector) error {
	p, err := minute("delayed", escapement.FixedWindow, time.Second, escapement.SyncDelayed).Compile()
	if err != nil {
		return err
	}
	var r [1]escapement.Reported
	now := algo.Store(clock.Wall().UnixMicro()) // as the server has it
	s.Collect(ctx, []escapement.Report{{Plan: p, Key: "k", Flush: algo.Flush{Instance: 7, Number: 1, Interval: 1_000_000,
		Parts: []algo.Spent{{Window: now - now%60_000_000, Units: 1}}}}}, r[:])
	if r[0].Outcome != escapement.Decided {
		return errors.Join(errors.New("a report was not taken"), r[0].Err)
	}
	return nil
}
