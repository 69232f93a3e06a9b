// Command redis measures our decisions on one Redis beside the least that a rate limit on
// it can cost: on a redis-server of its own, every way of asking in turn in each round.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/escapement-io/escapement/bench/stats"
	"github.com/escapement-io/escapement/internal/redisserver"
)

func main() {
	rounds := flag.Int("rounds", 7, "repetitions")
	dur := flag.Duration("dur", 500*time.Millisecond, "length of one measurement")
	asJSON := flag.Bool("json", false, "print JSON lines instead of tables")
	profile := flag.String("profile", "", "instead: ask our token bucket for ten seconds with 64 callers and write a processor profile there")
	flag.Parse()
	if *rounds < 1 || *dur <= 0 {
		fmt.Fprintln(os.Stderr, "bench: -rounds and -dur are above zero")
		os.Exit(2)
	}
	if err := run(*rounds, *dur, *profile, &report{json: *asJSON, out: os.Stdout}); err != nil {
		fmt.Fprintln(os.Stderr, "bench: "+err.Error())
		os.Exit(1)
	}
}

func run(rounds int, dur time.Duration, profile string, r *report) error {
	ctx := context.Background()
	srv, err := redisserver.Start(ctx, redisserver.Options{})
	if err != nil {
		return err
	}
	defer srv.Stop()
	watch, err := watchServer(ctx, srv.Addr)
	if err != nil {
		return err
	}
	defer watch.client.Close()
	if profile != "" {
		return profiled(watch, profile)
	}
	m := measurements{}
	for range rounds {
		for _, callers := range []int{1, 64} {
			for i := range ways {
				x, err := measure(watch, &ways[i], callers, dur)
				if err != nil {
					return fmt.Errorf("%s: %w", ways[i].name, err)
				}
				if x.failed != nil {
					fmt.Fprintf(os.Stderr, "bench: %s, callers: %d: %d errors, the first: %v\n", ways[i].name, callers, x.errors, x.failed)
				}
				m.add(ways[i].name, callers, x)
			}
		}
	}
	shares, err := witnessShares(watch, rounds)
	if err != nil {
		return fmt.Errorf("the witness's share: %w", err)
	}
	for _, callers := range []int{64, 1} {
		r.rows(m, callers)
	}
	r.goals(goals(m, shares))
	return r.err
}

// measurements are what each way did in each round.
type measurements map[string][]sample

func key(way string, callers int) string { return fmt.Sprintf("%s/%d", way, callers) }

func (m measurements) add(way string, callers int, x sample) {
	k := key(way, callers)
	m[k] = append(m[k], x)
}

// median of a figure over the rounds.
func (m measurements) median(way string, callers int, of func(sample) float64) float64 {
	var all []float64
	for _, x := range m[key(way, callers)] {
		all = append(all, of(x))
	}
	return stats.Median(all)
}

// ratios of a figure, one way over another in the same round.
func (m measurements) ratios(way, over string, callers int, of func(sample) float64) []float64 {
	a, b := m[key(way, callers)], m[key(over, callers)]
	var all []float64
	for i := range a {
		all = append(all, of(a[i])/of(b[i]))
	}
	return all
}

// errors of all rounds and, unless way is empty, of one way.
func (m measurements) errors(way string) (n int64) {
	for _, callers := range []int{1, 64} {
		for i := range ways {
			if way != "" && ways[i].name != way {
				continue
			}
			for _, x := range m[key(ways[i].name, callers)] {
				n += x.errors
			}
		}
	}
	return n
}
