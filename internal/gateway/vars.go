package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// ipv6Client is how many bits of an IPv6 address tell clients apart in remote_addr: one
// customer commonly has 2^64 addresses, and would have as many limits.
const ipv6Client = 64

// maxArgs is how many query arguments are looked at for an arg_ variable.
const maxArgs = 128

// vars are the variables of one request, in the names of nginx and APISIX. Values come
// from the header of the request, so its bound (MaxHeaderBytes) bounds them too.
type vars struct {
	r        *http.Request
	rt       *route
	host     string     // lower case, without the port
	path     string     // clean
	peer     netip.Addr // at the other end of the connection; not valid on a Unix socket
	client   netip.Addr // behind trusted proxies; not valid on a Unix socket
	consumer string
	hostname string // of this machine
	addr     string // client as shown; filled in when first asked for
}

// Var resolves a variable; see policy.Names for the list.
func (v *vars) Var(name string) (string, bool) {
	switch name {
	case "remote_addr":
		return v.remoteAddr(), v.client.IsValid()
	case "consumer_name":
		return v.consumer, v.consumer != ""
	case "route_id", "route_name":
		return v.rt.ID, v.rt.ID != ""
	case "uri":
		return v.path, true
	case "request_uri":
		return v.r.URL.RequestURI(), true
	case "host":
		return v.host, v.host != ""
	case "http_host":
		return v.r.Host, v.r.Host != ""
	case "hostname":
		return v.hostname, v.hostname != ""
	case "request_method":
		return v.r.Method, true
	case "scheme":
		return v.scheme(), true
	}
	return v.lessUsual(name)
}

func (v *vars) lessUsual(name string) (string, bool) {
	switch name {
	case "args", "query_string":
		return v.r.URL.RawQuery, v.r.URL.RawQuery != ""
	case "is_args":
		if v.r.URL.RawQuery == "" {
			return "", true
		}
		return "?", true
	case "server_protocol":
		return v.r.Proto, true
	case "content_length":
		return strconv.FormatInt(v.r.ContentLength, 10), v.r.ContentLength > 0
	case "content_type":
		s := v.r.Header.Get("Content-Type")
		return s, s != ""
	case "realip_remote_addr":
		return v.peer.String(), v.peer.IsValid()
	case "remote_port":
		// Behind a proxy the port is the proxy's, and says nothing about the client.
		_, port, err := net.SplitHostPort(v.r.RemoteAddr)
		return port, err == nil && v.peer == v.client
	case "server_addr", "server_port":
		local, ok := v.local()
		if name == "server_port" {
			return strconv.Itoa(int(local.Port())), ok
		}
		return local.Addr().Unmap().String(), ok
	}
	return v.family(name)
}

func (v *vars) family(name string) (string, bool) {
	kind, item, found := strings.Cut(name, "_")
	if !found || item == "" {
		return "", false
	}
	switch kind {
	case "http":
		values := v.r.Header[headerName(item)]
		if len(values) == 1 {
			return values[0], values[0] != ""
		}
		s := strings.Join(values, ", ")
		return s, s != ""
	case "arg":
		return queryArg(v.r.URL.RawQuery, item)
	case "cookie":
		c, err := v.r.Cookie(item)
		if err != nil {
			return "", false
		}
		return c.Value, c.Value != ""
	}
	return "", false
}

// remoteAddr is the client as limits see it: an IPv4 address, or the /64 of an IPv6 one.
func (v *vars) remoteAddr() string {
	if v.addr == "" && v.client.IsValid() {
		v.addr = v.client.String()
		if v.client.Is6() {
			p, _ := v.client.Prefix(ipv6Client)
			v.addr = p.String()
		}
	}
	return v.addr
}

func (v *vars) scheme() string {
	if v.r.TLS != nil {
		return "https"
	}
	return "http"
}

func (v *vars) local() (netip.AddrPort, bool) {
	a, _ := v.r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	return t.AddrPort(), true
}

// headerName is the canonical field name of an http_ variable.
func headerName(item string) string {
	return http.CanonicalHeaderKey(strings.ReplaceAll(item, "_", "-"))
}

// queryArg is the first argument of that name, decoded; where it does not decode, as it
// stands. An empty value counts as none.
func queryArg(query, name string) (string, bool) {
	for range maxArgs {
		if query == "" {
			break
		}
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		k, value, _ := strings.Cut(pair, "=")
		if k != name {
			if d, err := url.QueryUnescape(k); err != nil || d != name {
				continue
			}
		}
		if d, err := url.QueryUnescape(value); err == nil {
			value = d
		}
		return value, value != ""
	}
	return "", false
}

// dropArg is the query without the arguments of that name.
func dropArg(query, name string) string {
	kept := make([]string, 0, 8)
	for pair := range strings.SplitSeq(query, "&") {
		k, _, _ := strings.Cut(pair, "=")
		if d, err := url.QueryUnescape(k); err == nil {
			k = d
		}
		if k != name {
			kept = append(kept, pair)
		}
	}
	return strings.Join(kept, "&")
}
