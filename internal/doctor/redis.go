package doctor

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

// redisWithin is how long one exchange with a store may take.
const redisWithin = 2 * time.Second

// maxRedisLine is more than any reply to AUTH or TIME needs.
const maxRedisLine = 4096

// redisClock asks a Redis for its TIME over one connection. It speaks just enough of the
// protocol to need no client.
type redisClock struct {
	name           string // the URL without its password
	network, addr  string
	tls            *tls.Config // nil: plain
	user, password string

	mu   sync.Mutex
	conn net.Conn
	r    *bufio.Reader
}

// newRedisClock understands redis://, rediss:// (TLS) and unix:// with user and password.
// Its errors do not repeat the address, which may hold a password.
func newRedisClock(address string) (*redisClock, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the address of the store is not a URL; write redis://[user:password@]host[:port]")
	}
	c := &redisClock{network: "tcp", addr: u.Host, name: u.Redacted(), user: u.User.Username()}
	c.password, _ = u.User.Password()
	switch u.Scheme {
	case "redis", "rediss":
		if u.Hostname() == "" {
			return nil, errors.New("the address of the store names no host; write redis://[user:password@]host[:port]")
		}
		if u.Port() == "" {
			c.addr = net.JoinHostPort(u.Hostname(), "6379")
		}
		if u.Scheme == "rediss" {
			c.tls = &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
		}
	case "unix":
		c.network, c.addr = "unix", u.Path
	default:
		return nil, fmt.Errorf("%q is not a scheme of a store; write redis://, rediss:// or unix://", u.Scheme)
	}
	return c, nil
}

// Time asks once. After an error the next call connects anew.
func (c *redisClock) Time(ctx context.Context) (algo.Store, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, err := c.ask(ctx)
	if err != nil {
		c.close()
	}
	return t, err
}

// Close ends the connection.
func (c *redisClock) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close()
}

func (c *redisClock) close() {
	if c.conn != nil {
		_ = c.conn.Close() // its replies are read or given up
		c.conn = nil
	}
}

func (c *redisClock) ask(ctx context.Context) (algo.Store, error) {
	if c.conn == nil {
		if err := c.dial(ctx); err != nil {
			return 0, err
		}
	}
	limit := clock.Deadline(redisWithin)
	if d, ok := ctx.Deadline(); ok && d.Before(limit) {
		limit = d
	}
	if err := c.conn.SetDeadline(limit); err != nil {
		return 0, err
	}
	reply, err := c.do("TIME")
	if err != nil {
		return 0, err
	}
	if len(reply) != 2 {
		return 0, fmt.Errorf("TIME was answered with %d values instead of 2", len(reply))
	}
	seconds, err1 := strconv.ParseInt(reply[0], 10, 64)
	micros, err2 := strconv.ParseInt(reply[1], 10, 64)
	if err1 != nil || err2 != nil || seconds < 0 || seconds > int64(algo.MaxInstant)/1_000_000 || micros < 0 || micros > 999_999 {
		return 0, fmt.Errorf("TIME was answered with %.20q, %.20q, which is no time", reply[0], reply[1])
	}
	return algo.Store(seconds*1_000_000 + micros), nil
}

func (c *redisClock) dial(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, redisWithin)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, c.network, c.addr)
	if err != nil {
		return err
	}
	if c.tls != nil {
		secure := tls.Client(conn, c.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close() // the handshake may have closed it
			return err
		}
		conn = secure
	}
	c.conn, c.r = conn, bufio.NewReaderSize(conn, maxRedisLine)
	if err := conn.SetDeadline(clock.Deadline(redisWithin)); err != nil {
		return err
	}
	switch {
	case c.user != "" && c.password != "":
		_, err = c.do("AUTH", c.user, c.password)
	case c.password != "":
		_, err = c.do("AUTH", c.password)
	}
	return err
}

// do sends one command and returns the strings of its reply.
func (c *redisClock) do(words ...string) ([]string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := io.WriteString(c.conn, b.String()); err != nil {
		return nil, err
	}
	kind, text, err := c.line()
	if err != nil {
		return nil, err
	}
	switch kind {
	case '+':
		return []string{text}, nil
	case '*':
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > 16 {
			return nil, errors.New("the reply is not that of a Redis")
		}
		var out []string
		for range n {
			s, err := c.bulk()
			if err != nil {
				return nil, err
			}
			out = append(out, s)
		}
		return out, nil
	case '-':
		return nil, fmt.Errorf("it refuses %s: %s", words[0], text)
	}
	return nil, errors.New("the reply is not that of a Redis")
}

func (c *redisClock) line() (kind byte, text string, err error) {
	b, err := c.r.ReadSlice('\n')
	if err != nil {
		return 0, "", err
	}
	s := strings.TrimRight(string(b), "\r\n")
	if s == "" {
		return 0, "", errors.New("the reply is not that of a Redis")
	}
	return s[0], s[1:], nil
}

func (c *redisClock) bulk() (string, error) {
	kind, text, err := c.line()
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(text)
	if kind != '$' || err != nil || n < 0 || n > maxRedisLine {
		return "", errors.New("the reply is not that of a Redis")
	}
	b := make([]byte, n+2)
	if _, err := io.ReadFull(c.r, b); err != nil {
		return "", err
	}
	return string(b[:n]), nil
}
