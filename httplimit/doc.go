// Package httplimit limits HTTP handlers and tells clients where they stand.
//
// New puts one limit in front of a handler, All several at once: a request is charged to
// all of them or to none. A refused request is answered with 429, a Retry-After in delta
// seconds and a problem document (RFC 9457); if a store could not answer and the limit's
// policy is to deny, with 503. Requests of a pacing limit are held until their turn.
//
//	limit := httplimit.New(limiter, httplimit.RemoteAddr(httplimit.Clients{}))
//	http.ListenAndServe(addr, limit(handler))
//
// A key function says who a request is counted for. The ones here cannot be made to
// collide, and RemoteAddr believes X-Forwarded-For only from proxies that are listed. A
// request without a key is refused, unless PassWithoutKey says otherwise: a limit that
// can be avoided by leaving out a header is none.
//
// Waits travel as durations, never as dates, so no clock of the client's matters. They
// are rounded up to whole seconds; what remains is rounded down.
package httplimit
