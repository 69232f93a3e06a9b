package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/escapement-io/escapement/internal/config/tree"
)

// Where the gateway listens unless told otherwise: nowhere but on this machine.
const (
	defaultListen = "127.0.0.1:8080"
	defaultAdmin  = "127.0.0.1:9090"
)

func (b *builder) readNative(root *tree.Object) {
	if v, ok := root.Get("listen"); ok {
		b.config.Listen = address(v, b.config.Listen)
	}
	if v, ok := root.Get("admin"); ok {
		b.config.Admin = address(v, b.config.Admin)
		if host, _, err := net.SplitHostPort(b.config.Admin); err == nil && !loopback(host) {
			v.Warn("the admin listener is reachable from other machines", "bind it to 127.0.0.1 unless the network is closed")
		}
	}
	if _, port, err := net.SplitHostPort(b.config.Admin); err == nil && b.config.Admin == b.config.Listen && port != "0" {
		root.At("admin").Fail("the admin listener has the address of the gateway", "give it another port")
	}
	if v, ok := root.Get("tls"); ok {
		b.readTLS(v)
	}
	if v, ok := root.Get("trusted_proxies"); ok {
		b.config.TrustedProxies = prefixes(v)
		if slices.ContainsFunc(b.config.TrustedProxies, everybody) {
			v.Warn("every peer is believed about the address of the client", "list only the networks of your own proxies")
		}
	}
	if v, ok := root.Get("clock"); ok {
		b.readClock(v)
	}
	if v, ok := root.Get("stores"); ok {
		b.readStores(v)
	}
	if v, ok := root.Get("consumers"); ok {
		b.readConsumers(v)
	}
	if v, ok := root.Get("limits"); ok {
		b.readLimits(v)
	}
	if v, ok := root.Get("upstreams"); ok {
		b.readUpstreams(v)
	}
	if v, ok := root.Get("routes"); ok {
		b.readRoutes(v)
	}
	root.Done()
}

// address reads host:port; an empty host means every interface.
func address(v tree.Value, otherwise string) string {
	s, ok := v.Text()
	if !ok {
		return otherwise
	}
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		v.Fail(v.Quote()+" is not host:port", "write an address and a port, such as 127.0.0.1:8080")
		return otherwise
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		v.Fail(fmt.Sprintf("%q is not a port", port), "use 0 to 65535; 0 picks a free one")
	} else if strconv.FormatUint(n, 10) != port {
		v.Fail(fmt.Sprintf("%q is not a plain port number", port), "write it in decimal without leading zeros")
	}
	return s
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

func (b *builder) readTLS(v tree.Value) {
	o, ok := v.Object()
	if !ok {
		return
	}
	t := &TLS{}
	if v, ok := o.Need("cert", "name the file of the certificate chain in PEM"); ok {
		t.Cert, _ = v.Text()
	}
	if v, ok := o.Need("key", "name the file of the private key in PEM"); ok {
		t.Key, _ = v.Text()
	}
	o.Done()
	b.config.TLS = t
}

// prefixes reads a list of addresses and networks in CIDR notation.
func prefixes(v tree.Value) []netip.Prefix {
	var out []netip.Prefix
	for _, item := range v.Texts(1000) {
		if p, ok := prefix(item); ok {
			out = append(out, p)
		}
	}
	return out
}

func prefix(v tree.Value) (netip.Prefix, bool) {
	s, ok := v.Text()
	if !ok {
		return netip.Prefix{}, false
	}
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil || p.Addr().Is4In6():
		v.Fail(v.Quote()+" is not a network", "write an address or a network, such as 10.0.0.0/8 or ::1")
		return netip.Prefix{}, false
	case p != p.Masked():
		v.Fail(fmt.Sprintf("%s has bits set beyond its length", s), fmt.Sprintf("write %v", p.Masked()))
		return netip.Prefix{}, false
	}
	return p, true
}

// everybody reports whether a network holds every address of its family.
func everybody(p netip.Prefix) bool { return p.Bits() == 0 }

// id reads the identity of a route, upstream or consumer.
func id(v tree.Value) (string, bool) {
	s, ok := v.Word()
	if !ok {
		return "", false
	}
	if len(s) > 64 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" {
		v.Fail(v.Quote()+" is not an id", "use 1 to 64 letters, digits, - _ and .")
		return "", false
	}
	return s, true
}
