package drill

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/httplimit"
	"github.com/escapement-io/escapement/redisstore"
)

// ServeShared is Serve on a Redis that other processes share. The naive form keeps the
// bucket there too, and dates it by this process's own wall clock.
func ServeShared(ctx context.Context, l Limit, addr string, naive bool, in io.Reader, out io.Writer) error {
	if err := l.check(); err != nil {
		return err
	}
	mux := withClock()
	if naive {
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
		if err != nil {
			return fmt.Errorf("drill: %w", err)
		}
		defer client.Close()
		mux.HandleFunc("/", callerDated(client, l))
		return serve(ctx, mux, in, out)
	}
	// A process under drill shares its machine with the load.
	store, err := redisstore.Open(redisstore.Config{Addrs: []string{addr}, Deadline: time.Second})
	if err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	defer func() { _ = store.Close() }() // the drill is over
	limiter, err := escapement.New(store, l.limit())
	if err != nil {
		return err
	}
	one := func(*http.Request) (string, bool) { return "client", true }
	mux.Handle("/", httplimit.New(limiter, one)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	return serve(ctx, mux, in, out)
}

// callerScript is a bucket in circulation, as an exhibit: kept in Redis, dated by whoever
// asks.
const callerScript = `local now, cap, rate = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local st = redis.call('HMGET', KEYS[1], 'level', 'at')
local level, at = tonumber(st[1]) or cap, tonumber(st[2]) or now
level = math.min(cap, level + math.max(0, now - at) * rate / 1000)
local ok = 0
if level >= 1 then level, ok = level - 1, 1 end
redis.call('HSET', KEYS[1], 'level', level, 'at', now)
return ok`

func callerDated(client rueidis.Client, l Limit) http.HandlerFunc {
	script := rueidis.NewLuaScript(callerScript)
	burst, rate := strconv.FormatInt(l.Burst, 10), strconv.FormatFloat(float64(l.Count)/l.Per.Seconds(), 'f', -1, 64)
	return func(w http.ResponseWriter, r *http.Request) {
		now := strconv.FormatInt(clock.Wall().UnixMilli(), 10)
		n, err := script.Exec(r.Context(), client, []string{"bucket"}, []string{now, burst, rate}).AsInt64()
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case n == 0:
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}
}
