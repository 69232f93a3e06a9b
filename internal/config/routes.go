package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/config/tree"
	"github.com/escapement-io/escapement/internal/policy"
)

func (b *builder) readRoutes(v tree.Value) {
	items, _ := v.Items(MaxRoutes)
	ids := map[string]tree.Value{}
	for _, item := range items {
		o, ok := item.Object()
		if !ok {
			continue
		}
		r := b.readRoute(o)
		if r == nil {
			continue
		}
		if first, ok := ids[r.ID]; ok {
			if line := first.Node.Place.Line; o.Has("id") {
				o.At("id").Fail(fmt.Sprintf("the id %s is already on line %d", r.ID, line), "give each route its own id")
			} else {
				o.Fail(fmt.Sprintf("the route matches exactly what the one on line %d does", line), "remove one, or change what it matches")
			}
			continue
		}
		ids[r.ID] = item
		b.matchers = append(b.matchers, matcher{r, item})
		b.config.Routes = append(b.config.Routes, r)
	}
}

// annotations describe things to people and change nothing here.
var annotations = []string{"name", "desc", "labels", "create_time", "update_time"}

// readRoute is nil if the route is switched off or too broken to go on with.
func (b *builder) readRoute(o *tree.Object) *Route {
	r := &Route{}
	o.Skip(annotations...)
	if v, ok := o.Get("id"); ok {
		r.ID, _ = id(v)
	}
	r.URIs = oneOrMany(o, "uri", "uris", b.uri)
	if len(r.URIs) == 0 && !o.Has("uri") && !o.Has("uris") {
		o.Fail("uri is missing", "write the path to match, such as uri: /api/*")
	}
	r.Hosts = oneOrMany(o, "host", "hosts", host)
	if v, ok := o.Get("methods"); ok {
		r.Methods = methods(v)
	}
	if v, ok := o.Get("priority"); ok {
		n, _ := v.Int(-1_000_000, 1_000_000)
		r.Priority = int(n)
	}
	on := true
	if v, ok := o.Get("status"); ok {
		if n, ok := v.Int(0, 1); ok {
			on = n == 1
		}
	}
	if r.ID == "" {
		r.ID = derivedID(r)
	}
	b.readRouteLimits(o, r)
	r.Upstream = b.readRouteUpstream(o)
	o.Refuse("is not supported", "remove it, or use --ignore-unsupported to leave it out",
		"vars", "filter_func", "script", "service_id", "plugin_config_id", "remote_addr", "remote_addrs", "timeout", "enable_websocket", "service_protocol")
	o.Done()
	if !on || len(r.URIs) == 0 {
		return nil
	}
	return r
}

// oneOrMany reads a text under one key or a list of texts under another.
func oneOrMany(o *tree.Object, one, many string, check func(v tree.Value) (string, bool)) []string {
	single, has := o.Get(one)
	list, hasMany := o.Get(many)
	if has && hasMany {
		list.Fail(fmt.Sprintf("both %s and %s", one, many), "keep one of the two")
	}
	var values []tree.Value
	if has {
		values = append(values, single)
	}
	if hasMany {
		values = append(values, list.Texts(1000)...)
	}
	var out []string
	for _, v := range values {
		s, ok := check(v)
		if !ok {
			continue
		}
		if slices.Contains(out, s) {
			v.Fail(v.Quote()+" is in the list twice", "remove one")
			continue
		}
		out = append(out, s)
	}
	return out
}

// uri reads an exact path, or a prefix that ends in *.
func (b *builder) uri(v tree.Value) (string, bool) {
	s, ok := v.Text()
	switch {
	case !ok:
		return "", false
	case len(s) > 4096:
		v.Fail(fmt.Sprintf("%d bytes long", len(s)), "use at most 4096")
	case s[0] != '/':
		v.Fail(v.Quote()+" does not begin with /", "write the path from its first slash")
	case strings.Contains(s[:len(s)-1], "*"):
		v.Fail("a * in the middle", "use * at the end only: /api/* matches everything below /api/")
	case strings.ContainsAny(s, "?# "):
		v.Fail(v.Quote()+" is more than a path", "leave out query, fragment and spaces")
	case slices.ContainsFunc(strings.Split(s, "/"), func(part string) bool { return strings.HasPrefix(part, ":") }):
		v.Unsupported("a path parameter is not supported", "use a prefix that ends in *")
	default:
		return s, b.matchable(v, s)
	}
	return "", false
}

// matchable points at what no path can match: paths are compared clean and decoded.
func (b *builder) matchable(v tree.Value, s string) bool {
	sample, prefix := s, strings.HasSuffix(s, "*")
	if prefix {
		sample = s[:len(s)-1] + "x"
	}
	if clean := policy.CleanPath(sample); clean != sample {
		const problem = " can never be reached: paths are compared with dot segments resolved and slashes merged"
		if prefix {
			clean = clean[:len(clean)-1] + "*"
		}
		hint := fmt.Sprintf("write %q", clean)
		if b.form == native {
			v.Fail(v.Quote()+problem, hint)
			return false
		}
		v.Warn(v.Quote()+problem, hint)
	}
	if decoded, err := url.PathUnescape(s); err == nil && decoded != s {
		v.Warn("paths are compared decoded, and this one is not", fmt.Sprintf("write %q, unless a %% in the path itself is meant", decoded))
	}
	return true
}

// host reads a host name in lower case, or *.suffix.
func host(v tree.Value) (string, bool) {
	s, ok := v.Text()
	if !ok {
		return "", false
	}
	name, wild := strings.CutPrefix(s, "*.")
	plain := policy.HostName(name)
	switch addr, err := netip.ParseAddr(plain); {
	case strings.ContainsFunc(s, func(c rune) bool { return c > '~' }):
		v.Fail(v.Quote()+" is not in ASCII", "write it as clients send it, in the form that begins with xn--")
	case len(s) > 255, plain == "", strings.ContainsAny(name, "*/ ?#@"),
		strings.HasPrefix(name, "[") != strings.HasSuffix(name, "]"),
		strings.ContainsAny(name, ":[]") && (err != nil || !addr.Is6() || wild):
		v.Fail(v.Quote()+" is not a host", "write a name without scheme and port, such as example.com or *.example.com")
	case wild:
		return "*." + plain, true
	default:
		return plain, true
	}
	return "", false
}

func methods(v tree.Value) []string {
	var out []string
	for _, item := range v.Texts(16) {
		s, ok := item.OneOf("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT", "TRACE", "PURGE")
		if !ok {
			continue
		}
		if slices.Contains(out, s) {
			item.Fail(s+" is in the list twice", "remove one")
			continue
		}
		out = append(out, s)
	}
	return out
}

// derivedID names a route without an id by what it matches, so that it keeps its
// counters when routes are added or moved.
func derivedID(r *Route) string {
	sorted := func(s []string) []string { return slices.Sorted(slices.Values(s)) }
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d", sorted(r.URIs), sorted(r.Hosts), sorted(r.Methods), r.Priority))
	word := ""
	if len(r.URIs) > 0 {
		word = strings.Trim(slug(r.URIs[0]), "-")
	}
	if word == "" {
		word = "all"
	}
	return word[:min(len(word), 32)] + "-" + hex.EncodeToString(sum[:4])
}

// slug is s in the characters of a limit's name.
func slug(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '-':
			return c
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		}
		return '-'
	}, s)
}

// readRouteLimits reads the limits and plugins of a route.
func (b *builder) readRouteLimits(o *tree.Object, r *Route) {
	if b.form == native {
		if v, ok := o.Get("limits"); ok {
			for _, item := range v.Texts(escapement.MaxClaims) {
				b.addNamed(item, r)
			}
		}
	}
	if v, ok := o.Get("plugins"); ok {
		b.readRoutePlugins(v, r)
	}
	if len(r.Limits) > escapement.MaxClaims {
		o.Fail(fmt.Sprintf("%d limits on one route", len(r.Limits)), fmt.Sprintf("use at most %d", escapement.MaxClaims))
	}
}

func (b *builder) addNamed(v tree.Value, r *Route) {
	name, _ := v.Text()
	l, defined := b.limits[name]
	switch {
	case !defined:
		v.Fail("there is no limit "+v.Quote(), nearestHint(name, b.limits, "define it under limits"))
	case l == nil: // its own mistakes are reported where it is defined
	case slices.Contains(r.Limits, l):
		v.Fail(v.Quote()+" is in the list twice", "remove one: it would be charged twice")
	default:
		r.Limits = append(r.Limits, l)
		b.used[l] = true
	}
}
