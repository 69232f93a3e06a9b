package redisstore

import (
	"context"
	"crypto/tls"
	"net"
)

// dialWith makes rueidis dial by the function of the configuration.
func dialWith(cfg Config) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	return func(ctx context.Context, addr string, _ *net.Dialer, t *tls.Config) (net.Conn, error) {
		c, err := cfg.Dial(ctx, "tcp", addr)
		if err != nil || t == nil {
			return c, err
		}
		return tls.Client(c, t), nil
	}
}
