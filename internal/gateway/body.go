package gateway

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// impatient is a body whose reads must make progress within a limit; if one does not,
// expired is called from another goroutine and must make the read end. A read that is
// still on its way when the handler returns stays under watch.
type impatient struct {
	io.ReadCloser
	limit time.Duration
	timer *time.Timer
	late  atomic.Bool
	whole atomic.Bool // it was read to its end
	bad   atomic.Bool // reading it failed
}

func (b *impatient) init(body io.ReadCloser, limit time.Duration, expired func()) {
	b.ReadCloser, b.limit = body, limit
	b.timer = time.AfterFunc(limit, func() {
		b.late.Store(true)
		expired()
	})
	b.timer.Stop()
}

func (b *impatient) Read(p []byte) (int, error) {
	b.timer.Reset(b.limit)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	switch err {
	case nil:
	case io.EOF:
		b.whole.Store(true)
	default:
		b.bad.Store(true)
	}
	return n, err
}

// clientBody is a request's body and what is needed to be rid of it. A server of
// HTTP/1 reads what a handler left of it, at the latest after the answer, and sets no
// limit of its own: a client that announces a body and does not send it would hold its
// connection for ever.
type clientBody struct {
	impatient
	request *http.Request
	plain   io.ReadCloser // as net/http made it
	during  during
	giveUp  func() // ends any read of the connection
}

// Bounds of what is read of the body of a request that is refused, so that its
// connection can be kept.
const (
	lingerBytes = 64 << 10
	linger      = 500 * time.Millisecond
)

// watchBody bounds how long the client may pause while it sends a body. It is nil
// without one.
func watchBody(w http.ResponseWriter, r *http.Request, limit time.Duration) *clientBody {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	control := http.NewResponseController(w)
	b := &clientBody{request: r, plain: r.Body}
	b.giveUp = func() { b.during.do(func() { _ = control.SetReadDeadline(past) }) }
	b.init(r.Body, limit, b.giveUp)
	r.Body = b
	return b
}

// pending reports that a body of HTTP/1 was not read to its end.
func (b *clientBody) pending() bool {
	return b != nil && b.request.ProtoMajor == 1 && !b.whole.Load()
}

// drain reads a short rest of a body that goes nowhere. A client that waits for 100
// Continue is not told to send it.
func (b *clientBody) drain() {
	if !b.pending() || b.request.ContentLength > lingerBytes || b.request.Header.Get("Expect") != "" {
		return
	}
	t := time.AfterFunc(linger, b.giveUp)
	defer t.Stop()
	_, _ = io.CopyN(io.Discard, b, lingerBytes+1) // pending tells how it went
}

// closing makes the connection end with this answer if the body is still pending: then
// nothing has to be read before the answer is sent.
func (b *clientBody) closing(h http.Header) {
	if b.pending() {
		h.Set("Connection", "close")
	}
}

// release hands the body back to net/http, and if it is pending allows a last moment to
// read it. The connection ends anyway, so nothing cancels that.
func (b *clientBody) release() {
	if b == nil {
		return
	}
	if b.request.ProtoMajor != 1 {
		b.during.end() // HTTP/2 itself ends the read
	}
	if b.pending() {
		time.AfterFunc(linger, b.giveUp)
	}
	b.request.Body = b.plain
}
