// Package storestep drills a limit on a real Redis whose clock is stepped under load, and
// says whether it admitted what is right.
package storestep

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/redisstore"
)

// Options of a drill. The limit is a token bucket.
type Options struct {
	Rate      escapement.Rate
	Burst     int64           // zero means Rate.Count
	Load      int             // decisions per second, of all instances together, on a fixed schedule
	For       time.Duration   // how long; steps are spread evenly over it
	Steps     []time.Duration // of the store's clock
	Instances int             // stores with their own connections and time lines: 1
	Naive     bool            // drill the usual recipe, which believes the store's clock
	Server    string          // the binary: redis-server
}

const (
	maxLoad      = 20_000
	maxFor       = time.Hour
	maxInstances = 64
	maxSteps     = 1000
)

func (o *Options) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("drill: "+format, args...)) }
	if o.Burst == 0 {
		o.Burst = o.Rate.Count
	}
	if o.Instances == 0 {
		o.Instances = 1
	}
	if o.Server == "" {
		o.Server = "redis-server"
	}
	if o.Load < 1 || o.Load > maxLoad {
		bad("%d decisions per second; use 1 to %d", o.Load, maxLoad)
	}
	if o.For < time.Second || o.For > maxFor {
		bad("a run of %v; use 1s to %v", o.For, maxFor)
	}
	if o.Instances < 1 || o.Instances > maxInstances {
		bad("%d instances; use 1 to %d", o.Instances, maxInstances)
	}
	if len(o.Steps) > maxSteps {
		bad("%d steps; use at most %d", len(o.Steps), maxSteps)
	}
	for _, s := range o.Steps {
		if s < -24*time.Hour || s > 24*time.Hour {
			bad("a step of %v; use at most 24h", s)
		}
	}
	return errors.Join(errs...)
}

// ParseFlap reads "500ms*18": so many steps of that size, forward and back in turn.
func ParseFlap(text string) ([]time.Duration, error) {
	size, times, ok := strings.Cut(text, "*")
	d, err := time.ParseDuration(size)
	n, err2 := strconv.Atoi(times)
	if !ok || err != nil || err2 != nil || n < 1 || n > maxSteps {
		return nil, fmt.Errorf("drill: flap %q: write a duration and how often, at most %d, such as 500ms*18", text, maxSteps)
	}
	steps := make([]time.Duration, n)
	for i := range steps {
		steps[i] = d
		if i%2 == 1 {
			steps[i] = -d
		}
	}
	return steps, nil
}

// taker asks for one unit.
type taker func(ctx context.Context) (admitted bool, err error)

// Run drills. The error says that the drill could not run; what it found is in the
// report, whose Problems are empty if the limit held.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	plan, err := escapement.Limit{Name: "drill", Rate: o.Rate, Burst: o.Burst}.Compile()
	if err != nil {
		return nil, fmt.Errorf("drill: %w", err)
	}
	dir, remove, err := workspace()
	if err != nil {
		return nil, err
	}
	defer remove()
	srv, err := startServer(ctx, dir, o.Server)
	if err != nil {
		return nil, err
	}
	defer srv.end()
	takers, stores, closers, err := open(&o, srv.addr, plan)
	defer func() {
		for _, c := range closers {
			c()
		}
	}()
	if err != nil {
		return nil, err
	}
	asked, err := press(ctx, &o, srv, takers)
	if err != nil {
		return nil, err
	}
	r := judge(o.Rate.Count, o.Burst, o.Rate.Per, asked)
	r.Instances = o.Instances
	for _, s := range o.Steps {
		r.Steps = append(r.Steps, s.String())
	}
	if len(stores) > 0 {
		snap := stores[0].Snapshot()
		r.Seen, r.Error = snap.Steps, float64(snap.Error)/1e6
	}
	r.Problems = problems(&o, &r)
	return &r, nil
}

// slack is what a run may be off by, in units: the first and the last one, and what is
// under way at a step.
const slack = 2

// longest is the longest gap, besides one emission interval, that is no problem.
const longest = 100

func problems(o *Options, r *Report) []string {
	all := []string{}
	// A decision without an answer may have been charged.
	if d := float64(r.Admitted) - r.Right; d > slack || d < -slack-float64(r.Failed) {
		all = append(all, fmt.Sprintf("%d were admitted, %.1f are right: %+.1f", r.Admitted, r.Right, d))
	}
	interval := float64(o.Rate.Per) / float64(o.Rate.Count) / 1e6
	if r.LongestGap > interval+longest {
		all = append(all, fmt.Sprintf("nothing was admitted for %.0f ms; one unit comes back each %.0f ms", r.LongestGap, interval))
	}
	if r.Failed > 0 {
		all = append(all, fmt.Sprintf("%d of %d decisions failed", r.Failed, r.Decisions))
	}
	return all
}

func open(o *Options, addr string, plan *escapement.Plan) (takers []taker, stores []*redisstore.Store, closers []func(), err error) {
	for range o.Instances {
		if o.Naive {
			t, end, err := naive(addr, o)
			if err != nil {
				return takers, stores, closers, err
			}
			takers, closers = append(takers, t), append(closers, end)
			continue
		}
		s, err := redisstore.Open(redisstore.Config{Addrs: []string{addr}})
		if err != nil {
			return takers, stores, closers, err
		}
		stores, closers = append(stores, s), append(closers, func() { _ = s.Close() })
		takers = append(takers, func(ctx context.Context) (bool, error) {
			d, err := s.DecideOne(ctx, escapement.Claim{Plan: plan, Key: "drill", Cost: 1})
			return d.Allowed, err
		})
	}
	return takers, stores, closers, nil
}

// press makes the load and the steps.
func press(ctx context.Context, o *Options, srv *server, takers []taker) ([]Asked, error) {
	ctx, cancel := context.WithTimeout(ctx, o.For)
	defer cancel()
	var mu sync.Mutex
	var all []Asked
	var load sync.WaitGroup
	every := time.Second * time.Duration(len(takers)) / time.Duration(o.Load)
	for i, take := range takers {
		load.Go(func() {
			var mine []Asked
			offset := time.NewTimer(every * time.Duration(i) / time.Duration(len(takers)))
			defer offset.Stop()
			<-offset.C
			ticker := time.NewTicker(every)
			defer ticker.Stop()
			for ctx.Err() == nil {
				a := Asked{Sent: clock.Mono()}
				ok, err := take(context.WithoutCancel(ctx))
				a.Answered, a.Admitted, a.Failed = clock.Mono(), ok && err == nil, err != nil
				mine = append(mine, a)
				select {
				case <-ctx.Done():
				case <-ticker.C:
				}
			}
			mu.Lock()
			all = append(all, mine...)
			mu.Unlock()
		})
	}
	err := stepAll(ctx, o, srv)
	load.Wait()
	return all, err
}

func stepAll(ctx context.Context, o *Options, srv *server) error {
	gap := time.NewTicker(o.For / time.Duration(len(o.Steps)+1))
	defer gap.Stop()
	for _, s := range o.Steps {
		select {
		case <-ctx.Done():
			return nil
		case <-gap.C:
		}
		if err := srv.step(context.WithoutCancel(ctx), s); err != nil {
			return err
		}
	}
	<-ctx.Done()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil
	}
	return ctx.Err()
}

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

func naive(addr string, o *Options) (taker, func(), error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true, DisableRetry: true})
	if err != nil {
		return nil, nil, fmt.Errorf("drill: %w", err)
	}
	script := rueidis.NewLuaScript(recipe)
	args := []string{strconv.FormatInt(o.Burst, 10), strconv.FormatFloat(float64(o.Rate.Count)/o.Rate.Per.Seconds(), 'f', -1, 64)}
	return func(ctx context.Context) (bool, error) {
		n, err := script.Exec(ctx, client, []string{"drill"}, args).AsInt64()
		return n == 1, err
	}, client.Close, nil
}
