package main

import (
	"context"
	"strconv"
	"time"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/redisstore"
)

// way is one way of asking. open connects anew for each measurement, as a program would
// that does nothing else, and returns how to ask and how to end.
type way struct {
	name string
	open func(addr string) (ask func(ctx context.Context, key string) error, end func(), err error)
}

// Names of the ways.
const (
	ping     = "PING, rueidis"
	minimal  = "minimal GCRA script, rueidis"
	rate     = "redis_rate v10, go-redis v9"
	bucket   = "escapement"
	hotKey   = "escapement, one hot key"
	rolling  = "escapement, rolling window of 128 buckets"
	perKey   = 1_000_000 // a second: everything is admitted, so that every decision writes
	manyKeys = 10_000
)

// leastScript enforces a rate and does nothing else.
const leastScript = `local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local tat = tonumber(redis.call('GET', KEYS[1]) or 0)
if tat < now then tat = now end
local nt = tat + ARGV[1]
local over = nt - now - ARGV[2]
if over > 0 then return {0, over} end
redis.call('SET', KEYS[1], string.format('%.0f', nt), 'PX', math.ceil((nt - now) / 1000))
return {1, -over}`

var ways = []way{
	{ping, func(addr string) (func(context.Context, string) error, func(), error) {
		c, err := connect(addr)
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context, _ string) error { return c.Do(ctx, c.B().Ping().Build()).Error() }, c.Close, nil
	}},
	{minimal, func(addr string) (func(context.Context, string) error, func(), error) {
		c, err := connect(addr)
		if err != nil {
			return nil, nil, err
		}
		script := rueidis.NewLuaScript(leastScript)
		args := []string{strconv.Itoa(1_000_000 / perKey), "1000000"}
		return func(ctx context.Context, key string) error {
			return script.Exec(ctx, c, []string{key}, args).Error()
		}, c.Close, nil
	}},
	{rate, func(addr string) (func(context.Context, string) error, func(), error) {
		c := goredis.NewClient(&goredis.Options{Addr: addr})
		l := redis_rate.NewLimiter(c)
		return func(ctx context.Context, key string) error {
			_, err := l.Allow(ctx, key, redis_rate.PerSecond(perKey))
			return err
		}, func() { _ = c.Close() }, nil
	}},
	{bucket, ours(escapement.Limit{Rate: escapement.PerSecond(perKey)}, "")},
	{hotKey, ours(escapement.Limit{Rate: escapement.PerSecond(perKey)}, "hot")},
	{rolling, ours(escapement.Limit{Algorithm: escapement.RollingWindow, Rate: escapement.Rate{Count: 1_000_000_000, Per: 10 * time.Second}, Buckets: 128}, "")},
}

// ours asks through the call that a Limiter makes, about a fixed key unless that is empty.
func ours(l escapement.Limit, fixed string) func(string) (func(context.Context, string) error, func(), error) {
	return func(addr string) (func(context.Context, string) error, func(), error) {
		l.Name = "bench"
		plan, err := l.Compile()
		if err != nil {
			return nil, nil, err
		}
		s, err := redisstore.Open(redisstore.Config{Addrs: []string{addr}})
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context, key string) error {
			if fixed != "" {
				key = fixed
			}
			_, err := s.DecideOne(ctx, escapement.Claim{Plan: plan, Key: key, Cost: 1})
			return err
		}, func() { _ = s.Close() }, nil
	}
}

func connect(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true, DisableRetry: true})
}
