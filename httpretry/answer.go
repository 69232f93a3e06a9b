package httpretry

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"

	"github.com/escapement-io/escapement/internal/retry"
)

// judge says what may have become of an attempt.
func judge(ctx context.Context, resp *http.Response, err error) retry.Answer {
	if err != nil {
		return retry.Answer{Kind: failure(ctx, err)}
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if wait, ok := retryAfter(resp.Header); ok {
			return retry.Answer{Kind: retry.Refused, Told: true, Wait: wait}
		}
		// Without Retry-After the server has not promised that it did nothing.
		wait, ok := rateLimit(resp.Header)
		return retry.Answer{Kind: retry.Doubtful, Told: ok, Wait: wait}
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		wait, ok := retryAfter(resp.Header)
		return retry.Answer{Kind: retry.Doubtful, Told: ok, Wait: wait}
	}
	return retry.Answer{Kind: retry.Done}
}

// failure tells errors before a connection came about from those of which nothing is
// known and those that the next attempt would meet as well.
func failure(ctx context.Context, err error) retry.Kind {
	if ctx.Err() != nil || lasting(err) {
		return retry.Done
	}
	// net/http reports the failure to connect only if no byte of the request left by an
	// earlier connection of its own.
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "dial" || op.Op == "proxyconnect") {
		return retry.Unsent
	}
	return retry.Doubtful
}

// lasting reports errors that waiting does not mend.
func lasting(err error) bool {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return true
	}
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	return certificate || noTLS || errors.Is(err, http.ErrSchemeMismatch) || errors.Is(err, http.ErrNotSupported)
}

// idempotent reports whether doing a request twice is doing it once: by its method
// (RFC 9110, 9.2.2) or because the client has given it a key. As in net/http, a key
// without any value marks the request and is not sent.
func idempotent(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if v, ok := r.Header[name]; ok && (len(v) == 0 || v[0] != "") {
			return true
		}
	}
	return false
}
