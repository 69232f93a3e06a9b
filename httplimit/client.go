package httplimit

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Clients says how the address of a client is found. The zero value takes the peer of
// the connection and believes no header.
type Clients struct {
	// Trusted are the proxies whose word is taken on who they forward for. It must not
	// cover addresses of clients. A prefix of IPv4-mapped IPv6 addresses means the IPv4
	// ones.
	Trusted []netip.Prefix
	// TrustUnix also takes the word of peers on a Unix socket, which have no address.
	TrustUnix bool
	// Forwarded reads Forwarded (RFC 7239) instead of X-Forwarded-For. Only one of them is
	// ever read, for a proxy that writes one passes on the other as the client made it up.
	Forwarded bool
	// IPv6Prefix is how many bits of an IPv6 address tell clients apart in RemoteAddr;
	// 0 means 64, as one customer commonly has 2^64 addresses.
	IPv6Prefix int
}

// maxHops bounds the walk over forwarded addresses. The walk ends there as it does at a
// malformed hop.
const maxHops = 64

// ClientAddr is the address a request comes from: the peer's, or where that is a trusted
// proxy, the right-most address in the forwarding header that is not one. What stands
// left of it is the client's own text. A hop that is not an address (malformed, hidden or
// unknown) ends the walk at the trusted proxy that reported it; the same is true if every
// hop is trusted, at the left-most.
//
// IPv4-mapped addresses are unwrapped and IPv6 zones dropped. The result is not valid if
// the peer has no address, as on a Unix socket that is not trusted.
func ClientAddr(r *http.Request, c Clients) netip.Addr {
	addr := parsePeer(r.RemoteAddr)
	if !c.trusts(addr) && !(c.TrustUnix && overUnix(r)) {
		return addr
	}
	lines := r.Header["X-Forwarded-For"]
	if c.Forwarded {
		lines = r.Header["Forwarded"]
	}
	hops := 0
	for i := len(lines) - 1; i >= 0; i-- {
		for line, more := lines[i], true; more; {
			var hop string
			if c.Forwarded {
				line, hop, more = cutLastElement(line)
			} else {
				line, hop, more = cutLast(line)
			}
			hop = strings.Trim(hop, " \t")
			if hop == "" {
				continue
			}
			next := c.parse(hop)
			if hops++; !next.IsValid() || hops > maxHops {
				return addr
			}
			addr = next
			if !c.trusts(addr) {
				return addr
			}
		}
	}
	return addr
}

func (c *Clients) parse(hop string) netip.Addr {
	if !c.Forwarded {
		return parseHop(hop)
	}
	node, ok := forwardedFor(hop)
	if !ok {
		return netip.Addr{}
	}
	return parseHop(node)
}

func (c *Clients) trusts(a netip.Addr) bool {
	for _, p := range c.Trusted {
		if p.Contains(a) {
			return true
		}
		if p.Addr().Is4In6() && p.Bits() >= 96 && netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96).Contains(a) {
			return true
		}
	}
	return false
}

// parsePeer reads http.Request.RemoteAddr: address and port, or for a Unix socket
// whatever the socket is called.
func parsePeer(s string) netip.Addr {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return plain(ap.Addr())
	}
	a, _ := netip.ParseAddr(s)
	return plain(a)
}

// overUnix reports whether the server that took the request listens on a Unix socket.
func overUnix(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && local.Network() == "unix"
}

// maxHop is the longest text of an address with brackets, zone and port that is read.
const maxHop = 128

// parseHop reads an address as proxies write it: bare, in brackets, with a port.
func parseHop(s string) netip.Addr {
	if len(s) > maxHop {
		return netip.Addr{}
	}
	if a, err := netip.ParseAddr(s); err == nil {
		return plain(a)
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return plain(ap.Addr())
	}
	if n := len(s); n > 2 && s[0] == '[' && s[n-1] == ']' {
		if a, err := netip.ParseAddr(s[1 : n-1]); err == nil && a.Is6() {
			return plain(a)
		}
	}
	return netip.Addr{}
}

// plain is the one spelling of an address by which clients are compared.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
