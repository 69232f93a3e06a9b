package cases

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/redisserver"
	"github.com/escapement-io/escapement/redisstore"
)

// Redis runs cases on a Redis server, each under keys of its own. The account that the
// store uses there may not ask for the time, so that decisions are dated by the bounds
// that the caller vouches for: the clocks of the case, on which time passes as it says.
type Redis struct {
	server *redisserver.Server // nil: somebody else's
	reach  rueidis.ClientOption
	user   string // of the server of somebody else
	secret string
	prefix string
	cases  atomic.Int64
}

// withoutTime is the configuration of a server of our own. The account timed may ask it
// for the time, as leases need.
const withoutTime = "user default on nopass ~* +@all -time\nuser timed on nopass ~* +@all\nappendonly yes\nappendfsync always\nsave \"\"\n"

// StartRedis starts a server of its own.
func StartRedis(ctx context.Context) (*Redis, error) {
	s, err := redisserver.Start(ctx, redisserver.Options{Config: withoutTime})
	if err != nil {
		return nil, err
	}
	return &Redis{server: s, reach: rueidis.ClientOption{InitAddress: []string{s.Addr}}, prefix: "replay:"}, nil
}

// UseRedis uses the server at a URL of redis:// or rediss://. It makes an account for the
// time of the replay, whose keys it removes.
func UseRedis(ctx context.Context, url string) (*Redis, error) {
	o, err := rueidis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("redis: not the URL of a server; write redis://HOST:PORT/DB")
	}
	id := strings.ToLower(rand.Text()[:12])
	r := &Redis{reach: o, user: "escapement-replay-" + id, secret: rand.Text(), prefix: "replay-" + id + ":"}
	if _, err := redisserver.Do(ctx, o, "ACL", "SETUSER", r.user, "on", ">"+r.secret, "~"+r.prefix+"*", "+@all", "-time"); err != nil {
		return nil, fmt.Errorf("redis: %w\n  the account of the URL must be allowed ACL SETUSER, on Redis 6 or later; or leave --redis out", err)
	}
	return r, nil
}

// Close ends the server, or removes what was made on it.
func (r *Redis) Close(ctx context.Context) error {
	if r.server != nil {
		r.server.Stop()
		return nil
	}
	_, err := redisserver.Do(ctx, r.reach, "ACL", "DELUSER", r.user)
	return err
}

// Cannot implements Backend.
func (r *Redis) Cannot(op string) string {
	switch op {
	case "node_restart", lostReply, timeForbidden:
		return ""
	case "script_flush", "store_restart", "store_pause":
		if r.server != nil {
			return ""
		}
	}
	return cannotDo(op)
}

// Unfit implements Backend.
func (r *Redis) Unfit(c *Case) string {
	switch {
	case c.sentence() == nil:
	case strings.Contains(c.ExpectText, "heap back"):
		return "is about the memory of the process"
	}
	return ""
}

// Start implements Backend. A case that does something to its server has one of its own.
func (r *Redis) Start(w *World) (Session, error) {
	s := &onRedis{network: &network{}, server: r.server, reach: r.reach, prefix: fmt.Sprintf("%s%d:", r.prefix, r.cases.Add(1)), line: clock.NewLineFrom(w)}
	if w.alone && r.server != nil {
		own, err := redisserver.Start(context.Background(), redisserver.Options{Config: withoutTime})
		if err != nil {
			return nil, err
		}
		s.server, s.alone = own, true
		s.reach.InitAddress = []string{own.Addr}
	}
	c := redisstore.Config{
		Addrs: s.reach.InitAddress[:1], Username: s.reach.Username, Password: s.reach.Password, DB: s.reach.SelectDB, TLS: s.reach.TLSConfig,
		Prefix: s.prefix, Deadline: 10 * time.Second, Bound: s.bound,
	}
	if r.user != "" {
		c.Username, c.Password = r.user, r.secret
	}
	if w.ends {
		c.ExpiryMargin = time.Second
	}
	if w.silent {
		c.Deadline = 50 * time.Millisecond
	}
	c.Dial, s.config = s.network.dial, c
	var err error
	if s.store, err = redisstore.Open(c); err != nil {
		if s.alone {
			s.server.Stop()
		}
		return nil, err
	}
	return s, nil
}

// onRedis is the store of one case.
type onRedis struct {
	store   *redisstore.Store
	config  redisstore.Config // of store
	network *network
	line    *clock.Line
	server  *redisserver.Server
	alone   bool
	reach   rueidis.ClientOption
	prefix  string
}

// bound vouches for the time that the case is at, exactly.
func (s *onRedis) bound() clock.Interval {
	now := algo.Wall(s.line.Now()) * 1000
	return clock.Interval{Earliest: now, Latest: now, State: clock.Synchronised}
}

func (s *onRedis) Store() escapement.Store { return s.store }

func (s *onRedis) Announce(p *escapement.Plan) { s.store.Adopt(p) }

func (s *onRedis) Woken() { s.line.Sync() }

// Keys counts the keys of this case.
func (s *onRedis) Keys() int64 {
	names, err := s.names()
	if err != nil {
		return -1
	}
	return int64(len(names))
}

func (s *onRedis) names() (all []string, err error) {
	cursor := "0"
	for {
		reply, err := redisserver.Do(context.Background(), s.reach, "SCAN", cursor, "MATCH", s.prefix+"*", "COUNT", "10000")
		if err != nil {
			return nil, err
		}
		all = append(all, reply[1:]...)
		if cursor = reply[0]; cursor == "0" {
			return all, nil
		}
	}
}

// Close removes the keys of the case.
func (s *onRedis) Close() error {
	err := s.store.Close()
	switch {
	case s.alone:
		s.server.Stop()
	case s.server == nil:
		names, _ := s.names()
		for len(names) > 0 {
			n := min(len(names), 1000)
			if _, err := redisserver.Do(context.Background(), s.reach, append([]string{"UNLINK"}, names[:n]...)...); err != nil {
				return err
			}
			names = names[n:]
		}
	}
	return err
}
