package main

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// sample is one way in one round. Times are microseconds.
type sample struct {
	perSecond float64 // decisions that were made
	redis     float64 // processor time of redis-server per decision
	script    float64 // of that within scripts, by the server's own count
	p50       float64 // as one of the callers sees it
	errors    int64
	failed    error // the first of them
}

// server is a connection of the harness to the measured server.
type server struct {
	addr   string
	client rueidis.Client
}

func watchServer(ctx context.Context, addr string) (*server, error) {
	c, err := connect(addr)
	if err != nil {
		return nil, err
	}
	s := &server{addr, c}
	_, err = s.do(ctx, "PING")
	return s, err
}

func (s *server) do(ctx context.Context, args ...string) (rueidis.RedisMessage, error) {
	return s.client.Do(ctx, s.client.B().Arbitrary(args...).Build()).ToMessage()
}

// field is a number of INFO, or of one of the pairs that a line of it holds.
func (s *server) field(ctx context.Context, section, line, pair string) (float64, error) {
	m, err := s.do(ctx, "INFO", section)
	if err != nil {
		return 0, err
	}
	text, err := m.ToString()
	if err != nil {
		return 0, err
	}
	return infoField(text, line, pair)
}

func infoField(text, line, pair string) (float64, error) {
	for l := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(l), ":")
		if name != line {
			continue
		}
		if pair != "" {
			_, rest, ok := strings.Cut(","+value, ","+pair+"=")
			if !ok {
				break
			}
			value, _, _ = strings.Cut(rest, ",")
		}
		return strconv.ParseFloat(value, 64)
	}
	return 0, fmt.Errorf("INFO has no %s %s", line, pair)
}

// spent is the processor time of the server and what scripts had of it, in microseconds.
func (s *server) spent(ctx context.Context) (all, scripts float64, err error) {
	user, err := s.field(ctx, "cpu", "used_cpu_user", "")
	if err != nil {
		return 0, 0, err
	}
	system, err := s.field(ctx, "cpu", "used_cpu_sys", "")
	if err != nil {
		return 0, 0, err
	}
	// Without a script call there is no such line.
	scripts, _ = s.field(ctx, "commandstats", "cmdstat_evalsha", "usec")
	return (user + system) * 1e6, scripts, nil
}

// warm is what is asked before measuring, so that connections and scripts are there.
const warm = 256

func measure(s *server, w *way, callers int, dur time.Duration) (sample, error) {
	ctx := context.Background()
	if _, err := s.do(ctx, "FLUSHALL"); err != nil {
		return sample{}, err
	}
	ask, end, err := w.open(s.addr)
	if err != nil {
		return sample{}, err
	}
	defer end()
	var keys [manyKeys]string
	for i := range keys {
		keys[i] = "client-" + strconv.Itoa(100_000+i)
	}
	var failed atomic.Int64
	var first atomic.Pointer[error]
	try := func(key string) bool {
		err := ask(ctx, key)
		if err != nil && failed.Add(1) == 1 {
			first.Store(&err)
		}
		return err == nil
	}
	burst(callers, func(g int) {
		for i := range max(1, warm/callers) {
			try(keys[(g*97+i)%manyKeys])
		}
	})
	cpu, scripts, err := s.spent(ctx)
	if err != nil {
		return sample{}, err
	}
	var decided atomic.Int64
	took := make([]float64, 0, 1<<16)
	start := time.Now()
	burst(callers, func(g int) {
		n := int64(0)
		defer func() { decided.Add(n) }()
		for i := g * 997; ; i += 577 {
			before := time.Now()
			if before.Sub(start) > dur {
				return
			}
			if try(keys[i%manyKeys]) {
				n++
			}
			if g == 0 {
				took = append(took, float64(time.Since(before).Nanoseconds())/1000)
			}
		}
	})
	wall := time.Since(start).Seconds()
	cpuAfter, scriptsAfter, err := s.spent(ctx)
	if err != nil {
		return sample{}, err
	}
	slices.Sort(took)
	n := float64(decided.Load())
	x := sample{
		perSecond: n / wall, redis: (cpuAfter - cpu) / n, script: (scriptsAfter - scripts) / n,
		p50: took[len(took)/2], errors: failed.Load(),
	}
	if e := first.Load(); e != nil {
		x.failed = *e
	}
	return x, nil
}

// burst runs f once per caller, and waits for all.
func burst(callers int, f func(g int)) {
	var wg sync.WaitGroup
	for g := range callers {
		wg.Go(func() { f(g) })
	}
	wg.Wait()
}

// profiled writes where this process spends its time while it asks our token bucket.
func profiled(s *server, name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	i := slices.IndexFunc(ways, func(w way) bool { return w.name == bucket })
	_, err = measure(s, &ways[i], 64, 10*time.Second)
	pprof.StopCPUProfile()
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
