package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/redistest"
)

// What counts are script-µs/key in ratio to the floor, of the same run:
//
//	go test ./redisstore -run '^$' -bench Syncs -benchtime 100x -count 3
//
// Each op is a call of so many keys; a rolling holder's buckets to its horizon are a tenth
// of the window, and it gives back a lot with each ask, as it does under steady load.
func BenchmarkSyncs(b *testing.B) {
	srv := redistest.Start(b, redistest.Options{})
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{srv.Addr()}, DisableCache: true, DisableRetry: true})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	s := open(b, Config{Addrs: []string{srv.Addr()}})
	floor := rueidis.NewLuaScript(minimal)
	limit := func(name string, a escapement.Algorithm, mode escapement.SyncMode) *escapement.Plan {
		return plan(b, escapement.Limit{Name: name, Algorithm: a, Rate: escapement.Rate{Count: 100_000, Per: 10 * time.Second}, Sync: time.Second, SyncMode: mode})
	}
	fixed, rolling := limit("fixed", escapement.FixedWindow, escapement.SyncLease), limit("rolling", escapement.RollingWindow, escapement.SyncLease)
	late, sliding := limit("late", escapement.FixedWindow, escapement.SyncDelayed), limit("sliding", escapement.SlidingWindow, escapement.SyncDelayed)
	exact := limit("exact", escapement.FixedWindow, escapement.SyncLease)
	lend := func(p *escapement.Plan, ask func(i int, last *algo.Grant) algo.Ask) func(keys []string) error {
		last := map[string]*algo.Grant{}
		return func(keys []string) error {
			loans, answers := make([]escapement.Loan, len(keys)), make([]escapement.Granted, len(keys))
			for i, k := range keys {
				if last[k] == nil {
					last[k] = &algo.Grant{Epoch: -1, Upto: -1}
				}
				loans[i] = escapement.Loan{Plan: p, Key: k, Ask: ask(i, last[k])}
			}
			s.Lend(ctx, loans, answers)
			for i := range answers {
				if answers[i].Err != nil {
					return answers[i].Err
				}
				g := answers[i].Grant
				last[keys[i]] = &g
			}
			return nil
		}
	}
	number := int64(0)
	collect := func(p *escapement.Plan) func(keys []string) error {
		return func(keys []string) error {
			reports, answers := make([]escapement.Report, len(keys)), make([]escapement.Reported, len(keys))
			number++
			for i, k := range keys {
				reports[i] = escapement.Report{Plan: p, Key: k, Flush: algo.Flush{Instance: 1 + number%5, Number: 1 + number/5, Interval: 1_000_000, Parts: []algo.Spent{{Window: 1_900_000_000_000_000, Units: 3}}}}
			}
			s.Collect(ctx, reports, answers)
			for i := range answers {
				if answers[i].Err != nil {
					return answers[i].Err
				}
			}
			return nil
		}
	}
	ways := []struct {
		name string
		call func(keys []string) error
	}{
		{"minimal", func(keys []string) error {
			for _, k := range keys {
				if err := floor.Exec(ctx, client, []string{k}, []string{"1", "1000000"}).Error(); err != nil {
					return err
				}
			}
			return nil
		}},
		{"fixed", lend(fixed, func(_ int, g *algo.Grant) algo.Ask {
			return algo.Ask{Epoch: g.Epoch, Rate: 1000, LastRate: 1000, Window: g.Window, Return: 2, Want: 10, Have: 10, WantNext: 2}
		})},
		{"fixed-exact", lend(exact, func(int, *algo.Grant) algo.Ask { return algo.Ask{Exact: 1} })},
		{"rolling", lend(rolling, func(_ int, g *algo.Grant) algo.Ask {
			a := algo.Ask{Epoch: g.Epoch, Rate: 1000, LastRate: 1000, Want: 100, Base: 10, Have: 100, Horizon: 14, Upto: g.Upto, Carry: g.Carry}
			if n := len(g.Lots); n > 0 {
				j := g.Lots[0].From
				a.Settle = []algo.Amount{{Bucket: g.Lots[0].Expiry, Units: g.Lots[0].Units}}
				a.Used = []algo.Amount{{Bucket: j, Units: g.Lots[0].Units / 3}, {Bucket: j + 1, Units: g.Lots[0].Units / 3}}
			}
			return a
		})},
		{"delayed", collect(late)},
		{"delayed-sliding", collect(sliding)},
	}
	for _, n := range []int{1, 64} {
		keys := make([]string, n)
		for _, w := range ways {
			b.Run(fmt.Sprintf("%s/%d", w.name, n), func(b *testing.B) {
				srv.Must(b, "FLUSHALL")
				before, scripts := processor(srv.PID()), scripting(b, srv)
				done := 0
				b.ResetTimer()
				for i := range b.N {
					for k := range keys {
						keys[k] = "client-" + strconv.Itoa((i*n+k)%2000)
					}
					if err := w.call(keys); err != nil {
						b.Fatal(err)
					}
					done += n
				}
				b.StopTimer()
				b.ReportMetric((processor(srv.PID())-before)/float64(done), "redis-µs/key")
				b.ReportMetric((scripting(b, srv)-scripts)/float64(done), "script-µs/key")
			})
		}
	}
}
