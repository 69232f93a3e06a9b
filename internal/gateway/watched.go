package gateway

import (
	"net"
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
