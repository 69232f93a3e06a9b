package storestep

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/redisstore"
)

// recipe is the limiter in common use, as an exhibit: levels in floating point, dated by
// whatever the server's clock says, which is written back even when it went back.
const recipe = `local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local h = redis.call('HMGET', KEYS[1], 'level', 'at')
local level = tonumber(h[1]) or tonumber(ARGV[1])
local since = math.max(0, now - (tonumber(h[2]) or now))
level = math.min(tonumber(ARGV[1]), level + since * ARGV[2] / 1000)
local ok = 0
if level >= 1 then level, ok = level - 1, 1 end
redis.call('HSET', KEYS[1], 'level', level, 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil(ARGV[1] / ARGV[2] * 1000) + 1000)
return ok`

func naive(c redisstore.Config, o *Options) (taker, func(), error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: c.Addrs, DisableCache: true, DisableRetry: true, Sentinel: rueidis.SentinelOption{MasterSet: c.Primary}})
	if err != nil {
		return nil, nil, fmt.Errorf("drill: %w", err)
	}
	script := rueidis.NewLuaScript(recipe)
	args := []string{strconv.FormatInt(o.Burst, 10), strconv.FormatFloat(float64(o.Rate.Count)/o.Rate.Per.Seconds(), 'f', -1, 64)}
	return func(ctx context.Context) answer {
		n, err := script.Exec(ctx, client, []string{"drill"}, args).AsInt64()
		if err != nil {
			return answer{outcome: escapement.Unknown}
		}
		return answer{admitted: n == 1, outcome: escapement.Decided}
	}, client.Close, nil
}
