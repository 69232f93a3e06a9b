package grpcretry

import (
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/memstore"
)

// A real server behind a limit of ours that says in RetryInfo or in the trailer how long
// to wait: a client that waits as told is admitted.
func TestToldWaitIsEnough(t *testing.T) {
	store := memstore.New()
	defer store.Close()
	lim, err := escapement.New(store, escapement.Limit{Name: "s", Rate: escapement.PerSecond(5), Burst: 1})
	if err != nil {
		t.Fatal(err)
	}
	var seen, allowed atomic.Int64
	srv := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		n := seen.Add(1)
		d, err := lim.Take(ctx, "", 1)
		if err != nil {
			return nil, err
		}
		if d.Allowed {
			allowed.Add(1)
			return next(ctx, req)
		}
		if n%2 == 0 {
			ms := (d.RetryAfter() + time.Millisecond - 1) / time.Millisecond
			_ = grpc.SetTrailer(ctx, metadata.Pairs(pushback, strconv.FormatInt(int64(ms), 10)))
			return nil, status.Error(codes.Unavailable, "limited")
		}
		return nil, fails(codes.ResourceExhausted, in(d.RetryAfter())).err
	}))
	grpc_health_v1.RegisterHealthServer(srv, health.NewServer())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	defer func() {
		srv.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()

	var events []Event
	call, err := Unary(Config{Spread: -1, Observe: func(e Event) { events = append(events, e) }})
	if err != nil {
		t.Fatal(err)
	}
	cc, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithChainUnaryInterceptor(call))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	const calls = 6
	for range calls {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		resp, err := grpc_health_v1.NewHealthClient(cc).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		cancel()
		if err != nil || resp.Status != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("%v, %v", resp, err)
		}
	}
	for _, e := range events {
		if e.Attempt != 1 || e.Reason != Told || e.Told <= 0 || e.Wait < e.Told {
			t.Errorf("refused after waiting as told: %+v", e)
		}
	}
	if n := int64(len(events)); n == 0 || seen.Load() != calls+n || allowed.Load() != calls {
		t.Errorf("%d refusals, %d of %d attempts allowed", n, allowed.Load(), seen.Load())
	}
}

// A method says itself that it may be done twice.
func TestIdempotentByOption(t *testing.T) {
	level := func(l descriptorpb.MethodOptions_IdempotencyLevel) *descriptorpb.MethodOptions {
		return &descriptorpb.MethodOptions{IdempotencyLevel: &l}
	}
	method := func(name string, o *descriptorpb.MethodOptions) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{Name: &name, InputType: proto.String(".test.shop.M"), OutputType: proto.String(".test.shop.M"), Options: o}
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("test/shop.proto"), Package: proto.String("test.shop"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("M")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("Shop"), Method: []*descriptorpb.MethodDescriptorProto{
			method("Look", level(descriptorpb.MethodOptions_NO_SIDE_EFFECTS)),
			method("Put", level(descriptorpb.MethodOptions_IDEMPOTENT)),
			method("Buy", level(descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN)),
			method("Sell", nil),
		}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Under -count the file is there already.
	if _, err := protoregistry.GlobalFiles.FindFileByPath(file.Path()); err != nil {
		if err := protoregistry.GlobalFiles.RegisterFile(file); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{
		"/test.shop.Shop/Look": true, "/test.shop.Shop/Put": true, "/test.shop.Shop/Buy": false, "/test.shop.Shop/Sell": false,
		"/test.shop.Shop/Steal": false, "/test.shop.M": false, "/grpc.health.v1.Health/Check": false, "": false, "/": false, "///": false,
	} {
		if got := byOption(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
