// Package grpcretry retries unary gRPC calls by the rules of package httpretry: it waits
// as it is told, spreads those who were told the same, and stops when retries are too
// large a share of the calls to a target.
//
//	retrying, err := grpcretry.Unary(grpcretry.Config{})
//	conn, err := grpc.NewClient(target, grpc.WithChainUnaryInterceptor(retrying), ...)
//
// A call is repeated, whatever it does, if the server refused it with RESOURCE_EXHAUSTED
// or UNAVAILABLE and said when to come back: by google.rpc.RetryInfo in the details of the
// status, or by grpc-retry-pushback-ms, of which a negative or malformed value forbids it.
// If the server did not say, it is repeated only if it is idempotent: by
// Config.Idempotent, or by the option idempotency_level of its method.
//
// There is no wait that would outlast the call's deadline or Config.MaxWait: what the
// server said is then returned at once. Streams are left alone. Do not combine it with a
// retryPolicy of the service config, which would multiply the attempts.
package grpcretry
