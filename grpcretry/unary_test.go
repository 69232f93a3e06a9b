package grpcretry

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/escapement-io/escapement/clock"
)

// step is what an attempt brings.
type step struct {
	err     error
	trailer metadata.MD
	takes   time.Duration
}

func fails(code codes.Code, details ...protoadapt.MessageV1) step {
	s, err := status.New(code, "no").WithDetails(details...)
	if err != nil {
		panic(err)
	}
	return step{err: s.Err()}
}

func in(d time.Duration) protoadapt.MessageV1 {
	return &errdetails.RetryInfo{RetryDelay: durationpb.New(d)}
}

func pushed(code codes.Code, values ...string) step {
	s := fails(code)
	s.trailer = metadata.MD{pushback: values}
	return s
}

func conn(t *testing.T) *grpc.ClientConn {
	t.Helper()
	cc, err := grpc.NewClient("passthrough:///api.example", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	return cc
}

func TestCalls(t *testing.T) {
	const busy, away = codes.ResourceExhausted, codes.Unavailable
	forever := &errdetails.RetryInfo{RetryDelay: &durationpb.Duration{Seconds: 315_576_000_000}}
	malformed := &errdetails.RetryInfo{RetryDelay: &durationpb.Duration{Seconds: 1, Nanos: -1}}
	s := time.Second
	for _, tt := range []struct {
		name       string
		c          Config
		idempotent bool
		left       time.Duration
		steps      []step // the last one for ever
		takes      time.Duration
		reasons    string // of the events; the call succeeds if it ends in a retry
	}{
		{"fine", Config{}, false, 0, []step{{}}, 0, ""},
		{"refused twice", Config{}, false, 0, []step{fails(busy, in(2*s)), fails(away, in(1500*time.Millisecond)), {}}, 3500 * time.Millisecond, "told told"},
		{"refused for ever", Config{}, false, 0, []step{fails(busy, in(s))}, 3 * s, "told told told attempts"},
		{"the longest of two delays", Config{}, false, 0, []step{fails(busy, in(s), &errdetails.QuotaFailure{}, in(3*s)), {}}, 3 * s, "told"},
		{"too long a delay", Config{}, false, 0, []step{fails(busy, in(61*s))}, 0, "max_wait"},
		{"a delay of ten thousand years", Config{}, false, 0, []step{fails(busy, forever)}, 0, "max_wait"},
		{"a malformed delay", Config{}, false, 0, []step{fails(busy, malformed)}, 0, "unsafe"},
		{"a negative delay", Config{}, false, 0, []step{fails(busy, in(-s))}, 0, "unsafe"},
		{"no delay in it", Config{}, false, 0, []step{fails(busy, &errdetails.RetryInfo{})}, 0, "unsafe"},
		{"beyond the deadline", Config{}, false, 2 * s, []step{fails(busy, in(2*s))}, 0, "deadline"},
		{"a second wait beyond it", Config{}, false, 3 * s, []step{fails(busy, in(2*s))}, 2 * s, "told deadline"},
		{"not told", Config{}, false, 0, []step{fails(away)}, 0, "unsafe"},
		{"not told, idempotent", Config{}, true, 0, []step{fails(away), {}}, 0, "backoff"},
		{"pushed back", Config{}, false, 0, []step{pushed(busy, "250"), {}}, 250 * time.Millisecond, "told"},
		{"pushed back before the details", Config{}, false, 0, []step{{fails(busy, in(s)).err, metadata.Pairs(pushback, "3000"), 0}, {}}, 3 * s, "told"},
		{"pushed back for good", Config{}, true, 0, []step{pushed(away, "-1")}, 0, "final"},
		{"a malformed pushback", Config{}, true, 0, []step{pushed(away, "soon")}, 0, "final"},
		{"two pushbacks", Config{}, true, 0, []step{pushed(away, "1", "2")}, 0, "final"},
		{"another code", Config{}, true, 0, []step{fails(codes.Internal, in(s))}, 0, "final"},
		{"aborted", Config{}, true, 0, []step{fails(codes.Aborted)}, 0, "final"},
		{"not a status", Config{}, true, 0, []step{{err: fmt.Errorf("plain")}}, 0, "final"},
		{"spent", Config{Budget: Budget{Burst: 2, Percent: -1, Floor: -1}}, false, 0, []step{fails(busy, in(s))}, 2 * s, "told told budget"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cc := conn(t)
			synctest.Test(t, func(t *testing.T) {
				var reasons []string
				var last Event
				tt.c.Observe = func(e Event) { reasons, last = append(reasons, string(e.Reason)), e }
				tt.c.Random = func() uint64 { return 0 }
				tt.c.Idempotent = func(string) bool { return tt.idempotent }
				call, err := Unary(tt.c)
				if err != nil {
					t.Fatal(err)
				}
				ctx := context.Background()
				if tt.left > 0 {
					var cancel func()
					ctx, cancel = context.WithDeadline(ctx, clock.Deadline(tt.left))
					defer cancel()
				}
				n := 0
				var theirs metadata.MD
				began := clock.Mono()
				err = call(ctx, "/s/M", nil, nil, cc, func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
					st := tt.steps[min(n, len(tt.steps)-1)]
					n++
					for _, o := range opts {
						if tr, ok := o.(grpc.TrailerCallOption); ok {
							*tr.TrailerAddr = st.trailer
						}
					}
					return st.err
				}, grpc.Trailer(&theirs))
				if took := clock.Since(began); took != tt.takes {
					t.Errorf("took %v, want %v", took, tt.takes)
				}
				if got := strings.Join(reasons, " "); got != tt.reasons {
					t.Errorf("reasons %q, want %q", got, tt.reasons)
				}
				final := tt.steps[min(n, len(tt.steps))-1]
				if err != final.err || len(theirs) != len(final.trailer) { //nolint:errorlint // the very error, not one that says the same
					t.Errorf("%v with trailer %v, want that of the last attempt: %v, %v", err, theirs, final.err, final.trailer)
				}
				if len(reasons) > 0 && (last.Target != "passthrough:///api.example" || last.Method != "/s/M" || last.Attempt != len(reasons)) {
					t.Errorf("%+v", last)
				}
			})
		})
	}
}

func TestEndsWhileWaiting(t *testing.T) {
	cc := conn(t)
	synctest.Test(t, func(t *testing.T) {
		call, err := Unary(Config{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		n := 0
		err = call(ctx, "/s/M", nil, nil, cc, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			n++
			return fails(codes.Unavailable, in(time.Minute/2)).err
		})
		if status.Code(err) != codes.Canceled || n != 1 {
			t.Errorf("%v after %d attempts", err, n)
		}
		began := clock.Mono()
		err = call(ctx, "/s/M", nil, nil, cc, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			return fails(codes.Unavailable, in(time.Second)).err
		})
		if status.Code(err) != codes.Unavailable || clock.Since(began) != 0 {
			t.Errorf("a call whose context has ended: %v after %v", err, clock.Since(began))
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	_, err := Unary(Config{MaxAttempts: -1, MaxTargets: 5000})
	want := "grpcretry: MaxAttempts is -1: use 1 to 100, or 0 for 4; MaxTargets is 5000: use 1 to 4096, or 0 for 256"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
