package twogateways

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/drill/bench"
	"github.com/escapement-io/escapement/internal/redisserver"
)

// stage is what is under drill.
type stage struct {
	o        *Options
	gateways []*gateway
	stepped  *bench.Clock // of the last gateway; nil: the machine's
	redis    *redisserver.Server
	clock    *bench.Clock      // of the store; nil: the machine's
	replica  *bench.Replicated // nil: none
	meter    meter
	begin    algo.Mono

	marks    []Mark
	failover *lapse // nil: none
}

// startStage starts the store and the gateways.
func startStage(ctx context.Context, o *Options, b *bench.Bench, upstream string) (*stage, error) {
	s := &stage{o: o}
	where, err := s.startStore(ctx, b)
	if err != nil {
		return nil, err
	}
	file, err := write(b.Dir, o.configuration(store(where), upstream))
	if err != nil {
		return nil, err
	}
	clocks := make([]*bench.Clock, o.Instances)
	if o.Faults.Skew != 0 {
		if clocks[0], err = b.Clock(ctx); err == nil {
			err = clocks[0].Step(ctx, o.Faults.Skew)
		}
	}
	if last := &clocks[o.Instances-1]; err == nil && len(o.Faults.Steps) > 0 {
		if *last == nil {
			*last, err = b.Clock(ctx)
		}
		s.stepped = *last
	}
	if err != nil {
		return nil, err
	}
	s.gateways = make([]*gateway, o.Instances)
	errs := make([]error, o.Instances)
	var all sync.WaitGroup
	for i := range s.gateways {
		all.Go(func() { s.gateways[i], errs[i] = startGateway(ctx, clocks[i].Under(o.Gateway(file, i))) })
	}
	all.Wait()
	for _, g := range s.gateways {
		if g != nil {
			b.OnEnd(g.stop)
		}
	}
	return s, errors.Join(errs...)
}

// startStore starts what the faults need, and says where it is.
func (s *stage) startStore(ctx context.Context, b *bench.Bench) (object, error) {
	f := &s.o.Faults
	var err error
	if f.Failover > 0 {
		if s.replica, err = b.Replicated(ctx, nil, nil); err != nil {
			return nil, err
		}
		s.redis = s.replica.First
		s.meter.servers = []*redisserver.Server{s.replica.First, s.replica.Second}
		return object{"sentinel": object{"master": bench.Primary, "addresses": []string{s.replica.Sentinel.Addr}}}, nil
	}
	if len(f.StoreStep) > 0 {
		if s.clock, err = b.Clock(ctx); err != nil {
			return nil, err
		}
	}
	var args []string
	if f.KillStore > 0 {
		args = []string{"--appendonly", "yes", "--appendfsync", "always"}
	}
	if s.redis, err = b.Redis(ctx, redisserver.Options{Args: args}, s.clock); err != nil {
		return nil, err
	}
	s.meter.servers = []*redisserver.Server{s.redis}
	return object{"url": "redis://" + s.redis.Addr + "/0"}, nil
}

// event is a fault that happens during the load.
type event struct {
	at   time.Duration
	name string
	do   func(ctx context.Context) error
}

// events are the faults in order.
func (s *stage) events() []event {
	f := &s.o.Faults
	var all []event
	spread := func(steps []time.Duration, whose string, clk *bench.Clock) {
		for i, d := range steps {
			all = append(all, event{
				at: s.o.For * time.Duration(i+1) / time.Duration(len(steps)+1), name: fmt.Sprintf("%s %s", whose, signed(d)),
				do: func(ctx context.Context) error { return clk.Step(ctx, d) },
			})
		}
	}
	spread(f.Steps, "gateway "+strconv.Itoa(s.o.Instances), s.stepped)
	spread(f.StoreStep, "store", s.clock)
	if f.KillGateway > 0 {
		all = append(all, event{f.KillGateway, "gateway killed", func(context.Context) error {
			s.gateways[len(s.gateways)-1].kill()
			return nil
		}})
	}
	if f.KillStore > 0 {
		all = append(all, event{f.KillStore, "store killed", s.killStore})
	}
	if f.Failover > 0 {
		all = append(all, s.failing()...)
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return all
}

// act lets the faults happen, each at its time.
func (s *stage) act(ctx context.Context) error {
	for _, e := range s.events() {
		if !sleep(ctx, s.begin+algo.Mono(e.at)) {
			return ctx.Err()
		}
		s.marks = append(s.marks, Mark{e.name, clock.Since(s.begin).Seconds()})
		if err := e.do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// down is how long a killed store stays away.
const down = 500 * time.Millisecond

func (s *stage) killStore(ctx context.Context) error {
	err := s.meter.ending(ctx, s.redis)
	s.redis.Kill()
	if !sleep(ctx, clock.Mono()+algo.Mono(down)) {
		return ctx.Err()
	}
	return errors.Join(err, s.redis.Restart(ctx))
}

// report adds what happened.
func (s *stage) report(r *Report, h *history) {
	if d := s.o.Faults.Skew; d != 0 {
		r.Faults = append(r.Faults, fmt.Sprintf("gateway 1's wall clock is off by %s", signed(d)))
	}
	for _, m := range s.marks {
		r.Faults = append(r.Faults, fmt.Sprintf("%s after %.2f s", m.Name, m.At))
	}
	r.marks = s.marks
	if s.failover != nil {
		r.Failover = s.failover.judge(s, h)
	}
}

func signed(d time.Duration) string {
	if d > 0 {
		return "+" + d.String()
	}
	return d.String()
}
