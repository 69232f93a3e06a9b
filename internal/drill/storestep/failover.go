package storestep

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/drill/bench"
	"github.com/escapement-io/escapement/internal/redisserver"
	"github.com/escapement-io/escapement/redisstore"
)

// Failover is what a failover did.
type Failover struct {
	SkewMS   float64 `json:"skew_ms"`   // the replica's clock minus the primary's
	OutageMS float64 `json:"outage_ms"` // from the end of the primary to the first decision after it
	Lost     int     `json:"lost"`      // admissions that the replica had not heard of
}

// RunFailover ends the primary in the middle of the load; a sentinel promotes its replica,
// whose clock differs by skew. What is right comes from an exact bucket that is asked at
// the same instants, those without an answer left out.
func RunFailover(ctx context.Context, o Options, skew time.Duration) (*Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	plan, err := o.plan()
	if err != nil {
		return nil, err
	}
	b, err := bench.New()
	if err != nil {
		return nil, err
	}
	defer b.End()
	clk, err := b.Clock(ctx)
	if err != nil {
		return nil, err
	}
	if err := clk.Step(ctx, skew); err != nil {
		return nil, err
	}
	servers, err := b.Replicated(ctx, nil, clk)
	if err != nil {
		return nil, err
	}
	on, err := open(&o, redisstore.Config{Mode: redisstore.Sentinel, Addrs: []string{servers.Sentinel.Addr}, Primary: bench.Primary}, plan)
	defer on.close()
	if err != nil {
		return nil, err
	}
	var ended algo.Mono
	var record algo.Store
	asked, marks, err := press(ctx, &o, on.takers, func(ctx context.Context, mark func(string)) error {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.For / 2):
		}
		mark(fmt.Sprintf("failover, %+v", skew))
		servers.First.Kill()
		ended = clock.Mono()
		if o.Naive {
			return nil
		}
		var err error
		record, err = heard(ctx, servers.Second)
		return err
	})
	if err != nil {
		return nil, err
	}
	r := judge(o.Rate.Count, o.Burst, o.Rate.Per, asked)
	r.Failover = &Failover{SkewMS: float64(skew) / 1e6}
	r.Steps = []string{}
	r.after(&o, asked, ended, record)
	on.describe(&o, r, asked, marks)
	r.Problems = problems(&o, r)
	return r, nil
}

// heard is the instant of the last admission that a replica has on record.
func heard(ctx context.Context, s *redisserver.Server) (algo.Store, error) {
	keys, err := s.Do(ctx, "KEYS", "*")
	if err != nil {
		return 0, fmt.Errorf("drill: %w", err)
	}
	last := int64(0)
	for _, k := range keys {
		reply, err := s.Do(ctx, "GET", k)
		if err != nil || len(reply) == 0 {
			continue // a record of another type
		}
		if f := strings.Fields(reply[0]); len(f) > 1 && f[0] == "1" && len(f[1]) == 16 {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			last = max(last, n)
		}
	}
	if last == 0 {
		return 0, fmt.Errorf("drill: the replica holds no record of the limit")
	}
	return algo.Store(last), nil
}

// after judges a run with a stretch without answers.
func (r *Report) after(o *Options, asked []Asked, ended algo.Mono, record algo.Store) {
	sorted := sortedByAnswer(asked)
	exact := bucket{count: o.Rate.Count, per: int64(o.Rate.Per), burst: o.Burst}
	r.Right = 0
	var back algo.Mono
	var decided, admitted spread
	for _, a := range sorted {
		if a.Failed {
			continue
		}
		if exact.take(int64(a.Answered)) {
			r.Right++
		}
		if a.Admitted && a.Sent < ended && record != 0 && a.at > record {
			r.Failover.Lost++
		}
		if a.Sent < ended {
			continue
		}
		if back == 0 {
			back = a.Answered
			admitted.add(back)
		}
		decided.add(a.Answered)
		if a.Admitted {
			admitted.add(a.Answered)
		}
	}
	if back == 0 {
		r.LongestGap = float64(o.For/2) / 1e6
		return
	}
	r.Failover.OutageMS = float64(back-ended) / 1e6
	admitted.add(decided.last)
	r.LongestGap = max(0, float64(admitted.gap-decided.gap)/1e6)
	if r.Right > 0 {
		r.Ratio = float64(r.Admitted) / r.Right
	}
}
