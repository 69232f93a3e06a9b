package gateway

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// past is an instant that is over on every clock.
var past = time.Unix(1, 0)

// watched is a connection on which no single write may stall for longer than a limit.
// The watch is a timer, not a deadline, so that no clock is read.
type watched struct {
	net.Conn
	limit time.Duration
	timer *time.Timer
}

func newWatched(c net.Conn, limit time.Duration) net.Conn {
	w := &watched{Conn: c, limit: limit}
	w.timer = time.AfterFunc(limit, func() { _ = c.SetWriteDeadline(past) })
	w.timer.Stop()
	return w
}

// Write fails with os.ErrDeadlineExceeded if the peer takes nothing in for the limit.
// Writes of one connection do not overlap: net/http holds a lock or owns the connection.
func (w *watched) Write(b []byte) (int, error) {
	w.timer.Reset(w.limit)
	n, err := w.Conn.Write(b)
	w.timer.Stop()
	return n, err
}

// CloseWrite lets an upgraded connection end one direction and keep the other.
func (w *watched) CloseWrite() error {
	if c, ok := w.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return net.ErrClosed
}

// watchedListener accepts watched connections.
type watchedListener struct {
	net.Listener
	limit time.Duration
}

func (l watchedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newWatched(c, l.limit), nil
}

// during is the time in which a handler runs. Timers that act on its response must not do
// so later: net/http takes an HTTP/2 response apart when the handler returns.
type during struct {
	mu   sync.Mutex
	over bool
}

func (d *during) do(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.over {
		f()
	}
}

func (d *during) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
}

// watchedStream is the response of an HTTP/2 request, on which no write may stall for
// longer than a limit: the connection of a client that opens no window stays writable.
type watchedStream struct {
	http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration
	timer   *time.Timer
	during  during
	wrote   bool
}

func newWatchedStream(w http.ResponseWriter, limit time.Duration) *watchedStream {
	s := &watchedStream{ResponseWriter: w, control: http.NewResponseController(w), limit: limit}
	s.timer = time.AfterFunc(limit, func() { s.during.do(func() { _ = s.control.SetWriteDeadline(past) }) })
	s.timer.Stop()
	return s
}

// Write fails if the client takes nothing in for the limit. As with Flush, calls must not
// overlap.
func (s *watchedStream) Write(b []byte) (int, error) {
	s.wrote = s.wrote || len(b) > 0
	s.timer.Reset(s.limit)
	n, err := s.ResponseWriter.Write(b)
	s.timer.Stop()
	return n, err
}

// FlushError is Flush, under the same watch.
func (s *watchedStream) FlushError() error {
	s.timer.Reset(s.limit)
	err := s.control.Flush()
	s.timer.Stop()
	return err
}

// end sends what is left of a body, which net/http would do unwatched when the handler
// returns.
func (s *watchedStream) end() {
	if s.wrote {
		_ = s.FlushError() // a client that is gone needs no answer
	}
	s.during.end()
	s.timer.Stop()
}
