package redisstore

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/redistest"
)

// The floor is the least script that enforces a rate, on the same client; what counts
// are the ratios to it in one run:
//
//	go test ./redisstore -run '^$' -bench Decisions -benchtime 1s -count 3

const minimal = `local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local tat = tonumber(redis.call('GET', KEYS[1]) or 0)
if tat < now then tat = now end
local nt = tat + ARGV[1]
local over = nt - now - ARGV[2]
if over > 0 then return {0, over} end
redis.call('SET', KEYS[1], string.format('%.0f', nt), 'PX', math.ceil((nt - now) / 1000))
return {1, -over}`

// scripting is the time that the server has spent in EVALSHA, in microseconds.
func scripting(b *testing.B, srv *redistest.Server) float64 {
	_, rest, _ := strings.Cut(srv.Must(b, "INFO", "commandstats"), "cmdstat_evalsha:")
	_, rest, _ = strings.Cut(rest, "usec=")
	text, _, _ := strings.Cut(rest, ",")
	us, _ := strconv.ParseFloat(text, 64)
	return us
}

// processor is the time that a process has spent, in microseconds.
func processor(pid int) float64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	return (user + system) * 10_000
}

func BenchmarkDecisions(b *testing.B) {
	srv := redistest.Start(b, redistest.Options{})
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{srv.Addr()}, DisableCache: true, DisableRetry: true})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	s := open(b, Config{Addrs: []string{srv.Addr()}})
	floor := rueidis.NewLuaScript(minimal)
	ctx := context.Background()
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = "client-" + strconv.Itoa(100_000+i)
	}
	bucket := plan(b, escapement.Limit{Name: "bucket", Rate: escapement.PerSecond(1_000_000)})
	ring := plan(b, escapement.Limit{Name: "ring", Algorithm: escapement.RollingWindow, Rate: escapement.Rate{Count: 1_000_000_000, Per: 10 * time.Second}})
	ways := []struct {
		name string
		call func(key string) error
	}{
		{"ping", func(string) error { return client.Do(ctx, client.B().Ping().Build()).Error() }},
		{"minimal", func(key string) error {
			return floor.Exec(ctx, client, []string{key}, []string{"1", "1000000"}).Error()
		}},
		{"minimal-as-connected", func(key string) error {
			return floor.Exec(ctx, s.topology.Load().order[0].client, []string{key}, []string{"1", "1000000"}).Error()
		}},
		{"ping-as-connected", func(string) error {
			c := s.topology.Load().order[0].client
			return c.Do(ctx, c.B().Ping().Build()).Error()
		}},
		{"bucket", func(key string) error {
			_, err := s.DecideOne(ctx, escapement.Claim{Plan: bucket, Key: key, Cost: 1})
			return err
		}},
		{"ring", func(key string) error {
			_, err := s.DecideOne(ctx, escapement.Claim{Plan: ring, Key: key, Cost: 1})
			return err
		}},
		{"hot", func(string) error {
			_, err := s.DecideOne(ctx, escapement.Claim{Plan: bucket, Key: "hot", Cost: 1})
			return err
		}},
	}
	for _, callers := range []int{1, 64} {
		for _, w := range ways {
			b.Run(fmt.Sprintf("%s/%d", w.name, callers), func(b *testing.B) {
				srv.Must(b, "FLUSHALL")
				var next, failed atomic.Int64
				took := make([]int64, 0, 1<<16)
				before, scripts := processor(srv.PID()), scripting(b, srv)
				var wg sync.WaitGroup
				b.ResetTimer()
				for g := range callers {
					wg.Go(func() {
						for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
							start := clock.Mono()
							if w.call(keys[(i*577)%int64(len(keys))]) != nil {
								failed.Add(1)
							}
							if g == 0 && len(took) < cap(took) {
								took = append(took, int64(clock.Since(start)))
							}
						}
					})
				}
				wg.Wait()
				b.StopTimer()
				b.ReportMetric((processor(srv.PID())-before)/float64(b.N), "redis-µs/op")
				b.ReportMetric((scripting(b, srv)-scripts)/float64(b.N), "script-µs/op")
				b.ReportMetric(float64(failed.Load()), "failed")
				b.ReportMetric(median(took)/1000, "p50-µs")
			})
		}
	}
}

func median(all []int64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return float64(all[len(all)/2])
}
