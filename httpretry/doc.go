// Package httpretry retries HTTP requests without making an overload worse.
//
// In the incident that this module answers, a clock stepped by 320 ms and a limiter
// refused 19,432 requests in 90 seconds. The clients' libraries retried each refusal at
// once: retries went from 0.3 % to 11 % of requests, the load doubled, and p99 rose from
// 34 ms to 1.4 s, most of it by the retries. Refusal and retry are designed together
// here: httplimit says how long to wait, exactly and rounded up, and this package waits
// that long, spreads those who were told the same moment, and stops when retries are too
// large a share of the traffic.
//
//	retrying, err := httpretry.New(nil, httpretry.Config{})
//	client := &http.Client{Transport: retrying}
//
// # When it retries
//
// Every method, if the server says that it did nothing and when to come back: 429 or 503
// with a valid Retry-After. Every method, if no connection came about. Otherwise only
// requests that may be done twice (GET, HEAD, OPTIONS, TRACE, PUT, DELETE, or any with an
// Idempotency-Key), after 429, 502, 503, 504 and failed connections.
//
// Only if the body can be sent again from its beginning: there is none, the request has
// GetBody, or its length is known and at most Config.MaxBody.
//
// Never if the wait would outlast the request's deadline, or Config.MaxWait, or if the
// budget of the host is spent. What came back is then returned at once and untouched.
//
// # How long it waits
//
// At least what it was told: by Retry-After in seconds or as a date, which is measured
// against the response's own Date and not against a clock of this machine; without it by
// RateLimit (drafts 08 to 11), RateLimit-Reset or X-RateLimit-Reset. Up to a tenth is
// added, at least up to a second, since waits are told in whole seconds. If it was told
// nothing, a uniform part of Config.Backoff, doubled with each attempt.
//
// # The budget
//
// Each request to a host earns a tenth of a retry, or what one retry a second has earned
// since the last request, and a retry costs one. So if everything is refused, the load is
// 1.1 times what it was and not a multiple.
//
// Waits are timed by the monotonic clock: no step of the wall clock shortens one.
package httpretry
