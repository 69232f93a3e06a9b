package config

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/escapement-io/escapement/internal/config/tree"
	"github.com/escapement-io/escapement/internal/policy"
)

// readUpstreams reads upstreams that routes refer to: a map by name in the native form, a
// list with ids in the other.
func (b *builder) readUpstreams(v tree.Value) {
	if b.form == native {
		entries, _ := v.Entries(MaxRoutes)
		for _, e := range entries {
			b.upstreams[e.Name] = nil
			if o, ok := e.Object(); ok {
				b.upstreams[e.Name] = b.readUpstream(o)
			}
		}
		return
	}
	items, _ := v.Items(MaxRoutes)
	for _, item := range items {
		o, ok := item.Object()
		if !ok {
			continue
		}
		name, named := "", false
		if v, ok := o.Need("id", "give it an id that routes refer to"); ok {
			name, named = id(v)
			if _, twice := b.upstreams[name]; named && twice {
				v.Fail("the id "+v.Quote()+" is there twice", "give each upstream its own id")
			}
		}
		u := b.readUpstream(o)
		if named {
			b.upstreams[name] = u
		}
	}
}

// readRouteUpstream is where a route sends its requests; nil if that has mistakes.
func (b *builder) readRouteUpstream(o *tree.Object) *Upstream {
	inline, has := o.Get("upstream")
	ref, refers := o.Get("upstream_id")
	switch {
	case has && refers:
		ref.Fail("both upstream and upstream_id", "keep one of the two")
	case has:
		if u, ok := inline.Object(); ok {
			return b.readUpstream(u)
		}
	case refers:
		name, ok := id(ref)
		if u, defined := b.upstreams[name]; ok && !defined {
			ref.Fail("there is no upstream "+ref.Quote(), nearestHint(name, b.upstreams, "define it under upstreams"))
		} else {
			return u
		}
	default:
		o.Fail("upstream is missing", `write where requests go, such as upstream: {type: roundrobin, nodes: {"127.0.0.1:8081": 1}}`)
	}
	return nil
}

func (b *builder) readUpstream(o *tree.Object) *Upstream {
	u := &Upstream{Balance: "roundrobin", Scheme: "http", PassHost: "pass", TLSVerify: true,
		Connect: time.Minute, Send: time.Minute, Read: time.Minute}
	o.Skip("id")
	o.Skip(annotations...)
	choice := func(key string, to *string, words ...string) {
		if v, ok := o.Get(key); ok {
			if s, ok := v.OneOf(words...); ok {
				*to = s
			}
		}
	}
	choice("type", &u.Balance, "roundrobin", "chash", "least_conn")
	choice("scheme", &u.Scheme, "http", "https")
	choice("pass_host", &u.PassHost, "pass", "node", "rewrite")
	if v, ok := o.Get("upstream_host"); ok {
		u.Host, _ = host(v)
	}
	if u.PassHost == "rewrite" && !o.Has("upstream_host") {
		o.Fail("upstream_host is missing", "write the host to send, or use another pass_host")
	}
	if v, ok := o.Need("nodes", `write the servers, such as nodes: {"127.0.0.1:8081": 1}`); ok {
		u.Nodes = nodes(v, u.Scheme)
	}
	u.Retries = max(len(u.Nodes)-1, 0)
	if v, ok := o.Get("retries"); ok {
		n, _ := v.Int(0, 100)
		u.Retries = int(n)
	}
	readHash(o, u)
	if v, ok := o.Get("timeout"); ok {
		readTimeout(v, u)
	}
	if v, ok := o.Get("tls"); ok {
		if t, ok := v.Object(); ok {
			if v, ok := t.Get("verify"); ok {
				u.TLSVerify, _ = v.Bool()
				if !u.TLSVerify {
					v.Warn("the upstream's certificate is not checked", "use verify: true outside of tests")
				}
			}
			t.Refuse("is not supported", "remove it", "client_cert", "client_key", "client_cert_id")
			t.Done()
		}
	}
	o.Refuse("is not supported", "remove it, or use --ignore-unsupported to leave it out",
		"checks", "keepalive_pool", "retry_timeout", "service_name", "discovery_type", "discovery_args")
	o.Done()
	return u
}

// nodes reads {"host:port": weight}, or a list of {host, port, weight}.
func nodes(v tree.Value, scheme string) []Node {
	var out []Node
	if v.Node.Kind == tree.List {
		items, _ := v.Items(MaxNodes)
		for _, item := range items {
			if n, ok := listedNode(item, scheme); ok {
				out = append(out, n)
			}
		}
	} else {
		entries, _ := v.Entries(MaxNodes)
		for _, e := range entries {
			addr, ok := nodeAddress(e.Key, scheme)
			weight, good := e.Int(0, 1_000_000)
			if ok && good {
				out = append(out, Node{addr, int(weight)})
			}
		}
	}
	if len(v.Node.Items)+len(v.Node.Fields) == 0 {
		v.Fail("no servers", `write at least one, such as {"127.0.0.1:8081": 1}`)
		return nil
	}
	total := 0
	for _, n := range out {
		total += n.Weight
	}
	if len(out) > 0 && total == 0 {
		v.Fail("every weight is 0: no server would get a request", "give one a weight of at least 1")
	}
	return out
}

func listedNode(v tree.Value, scheme string) (n Node, ok bool) {
	o, ok := v.Object()
	if !ok {
		return n, false
	}
	port, ok := defaultPort(scheme), true
	if v, has := o.Get("port"); has {
		port, ok = v.Int(1, 65535)
	}
	n.Weight = 1
	if v, has := o.Get("weight"); has {
		w, good := v.Int(0, 1_000_000)
		n.Weight, ok = int(w), ok && good
	}
	if v, has := o.Get("priority"); has {
		if p, good := v.Int(-1000, 1000); good && p != 0 {
			v.Unsupported("a priority of servers is not supported", "remove it, or use 0")
		}
	}
	o.Skip("metadata")
	v, has := o.Need("host", "write the server's name or address")
	if has {
		s, good := v.Text()
		n.Addr, ok = net.JoinHostPort(s, strconv.FormatInt(port, 10)), ok && good
	}
	o.Done()
	return n, ok && has
}

func defaultPort(scheme string) int64 {
	if scheme == "https" {
		return 443
	}
	return 80
}

func nodeAddress(v tree.Value, scheme string) (string, bool) {
	s, ok := v.Text()
	if !ok {
		return "", false
	}
	h, port, err := net.SplitHostPort(s)
	if err != nil {
		// A name or address alone means the scheme's port.
		if h, port, err = net.SplitHostPort(fmt.Sprintf("%s:%d", s, defaultPort(scheme))); err != nil {
			v.Fail(v.Quote()+" is not host:port", "write an address and a port, such as 127.0.0.1:8081")
			return "", false
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || h == "" {
		v.Fail(v.Quote()+" is not host:port", "use a host and a port from 1 to 65535")
		return "", false
	}
	return net.JoinHostPort(h, port), true
}

// readHash reads what chash spreads by.
func readHash(o *tree.Object, u *Upstream) {
	on := "vars"
	if v, ok := o.Get("hash_on"); ok {
		if s, ok := v.OneOf("vars", "header", "cookie", "consumer", "vars_combinations"); ok {
			on = s
		}
	}
	key, has := o.Get("key")
	if u.Balance != "chash" {
		return
	}
	if on == "consumer" {
		t := policy.Variable("consumer_name")
		u.HashOn = &t
		return
	}
	if !has {
		o.Fail("key is missing", "write the variable to spread by, such as key: remote_addr")
		return
	}
	s, ok := key.Text()
	if !ok {
		return
	}
	name := s
	switch on {
	case "header":
		name = "http_" + headerVariable(s)
	case "cookie":
		name = "cookie_" + s
	}
	t := policy.Variable(name)
	if on == "vars_combinations" {
		if t, ok = template(key); !ok {
			return
		}
	}
	for _, n := range t.Variables() {
		if !policy.Known(n) {
			key.Fail(fmt.Sprintf("%s can never resolve: there is no such variable", n), variableHint(n))
			return
		}
	}
	u.HashOn = &t
}

// readTimeout reads seconds, as APISIX writes them, or lengths with a unit.
func readTimeout(v tree.Value, u *Upstream) {
	o, ok := v.Object()
	if !ok {
		return
	}
	for key, to := range map[string]*time.Duration{"connect": &u.Connect, "send": &u.Send, "read": &u.Read} {
		v, ok := o.Get(key)
		if !ok {
			continue
		}
		if v.Node.Kind != tree.Number {
			if d, ok := v.Duration(time.Millisecond, 24*time.Hour); ok {
				*to = d
			}
			continue
		}
		if s, ok := v.Number(); ok {
			if s < 0.001 || s > 86400 {
				v.Fail(fmt.Sprintf("%s is out of range", v.Node.Text), "use 0.001 to 86400 seconds")
				continue
			}
			*to = time.Duration(s * float64(time.Second))
		}
	}
	o.Done()
}
