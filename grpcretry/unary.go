package grpcretry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/retry"
)

// Unary returns an interceptor that retries. Share one among connections, since what it
// saves up for retries is its own. It reports everything that is out of range at once.
//
// A call returns what its last attempt brought. If its context ends while it waits, it
// returns the status of that.
func Unary(c Config) (grpc.UnaryClientInterceptor, error) {
	rules, err := c.rules().Complete()
	if err != nil {
		return nil, fmt.Errorf("grpcretry: %s", strings.NewReplacer("\n", "; ", "MaxHosts", "MaxTargets").Replace(err.Error()))
	}
	if c.Idempotent == nil {
		c.Idempotent = byOption
	}
	if c.Observe == nil {
		c.Observe = func(Event) {}
	}
	i := &interceptor{table: retry.NewTable(rules, c.Random), idempotent: c.Idempotent, observe: c.Observe}
	return i.call, nil
}

type interceptor struct {
	table      *retry.Table
	idempotent func(string) bool
	observe    func(Event)
}

func (i *interceptor) call(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	target := cc.CanonicalTarget()
	i.table.Request(target)
	for n := 1; ; n++ {
		var trailer metadata.MD
		began := clock.Mono()
		err := invoke(ctx, method, req, reply, cc, slices.Concat(opts, []grpc.CallOption{grpc.Trailer(&trailer)})...)
		if err == nil {
			return nil
		}
		answer := judge(ctx, trailer, err)
		v := i.table.Decide(target, retry.Attempt{
			Number:     n,
			Idempotent: i.idempotent(method),
			Repeatable: true,
			Left:       retry.Left(ctx),
			Took:       clock.Since(began),
		}, answer)
		e := Event{Method: method, Target: target, Attempt: n, Code: status.Code(err), Told: -1, Retry: v.Retry, Wait: v.Wait, Reason: Reason(v.Reason)}
		if answer.Told {
			e.Told = answer.Wait
		}
		i.observe(e)
		if !v.Retry {
			return err
		}
		if retry.Pause(ctx, v.Wait) != nil {
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}
