package grpcretry

import (
	"context"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/escapement-io/escapement/internal/retry"
)

// pushback is the trailer by which a server tells clients when to retry, in milliseconds.
const pushback = "grpc-retry-pushback-ms"

// maxDetails is how many details of a status are looked at.
const maxDetails = 32

// judge says what may have become of an attempt.
func judge(ctx context.Context, trailer metadata.MD, err error) retry.Answer {
	s := status.Convert(err)
	if ctx.Err() != nil || s.Code() != codes.ResourceExhausted && s.Code() != codes.Unavailable {
		return retry.Answer{}
	}
	if v := trailer.Get(pushback); len(v) > 0 {
		ms, err := strconv.ParseInt(v[0], 10, 32)
		if err != nil || ms < 0 || len(v) > 1 {
			return retry.Answer{}
		}
		return retry.Answer{Kind: retry.Refused, Told: true, Wait: time.Duration(ms) * time.Millisecond}
	}
	if wait, ok := retryInfo(s); ok {
		return retry.Answer{Kind: retry.Refused, Told: true, Wait: wait}
	}
	return retry.Answer{Kind: retry.Doubtful}
}

// retryInfo is the longest delay that the details of a status tell. Those that are
// malformed or negative are ignored; one that is too long for a Duration saturates.
func retryInfo(s *status.Status) (wait time.Duration, ok bool) {
	details := s.Proto().GetDetails()
	for _, d := range details[:min(len(details), maxDetails)] {
		info := &errdetails.RetryInfo{}
		if !d.MessageIs(info) || d.UnmarshalTo(info) != nil || info.RetryDelay == nil || info.RetryDelay.CheckValid() != nil {
			continue
		}
		if delay := info.RetryDelay.AsDuration(); delay >= 0 {
			wait, ok = max(wait, delay), true
		}
	}
	return wait, ok
}
