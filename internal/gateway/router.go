package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// router finds the route of a request. What is more specific wins: a host over a suffix
// of hosts over any host, the longer suffix over the shorter, an exact path over a
// prefix, the longer prefix over the shorter; then the higher priority, then the earlier
// in the file. A route whose methods do not match is passed over.
type router struct {
	hosts    map[string]*paths // exact, lower case
	suffixes map[string]*paths // ".example.com" of *.example.com
	any      *paths
}

// paths are the routes of one host pattern.
type paths struct {
	exact    map[string][]*route
	prefixes []string   // sorted
	parents  []int      // of each prefix: the longest other one that it begins with, or -1
	routes   [][]*route // of each prefix
	byPrefix map[string][]*route
}

func newRouter(routes []*route) (*router, error) {
	r := &router{hosts: map[string]*paths{}, suffixes: map[string]*paths{}, any: &paths{}}
	for _, rt := range routes {
		hosts := rt.Hosts
		if len(hosts) == 0 {
			hosts = []string{"*"}
		}
		for _, h := range hosts {
			p, err := r.host(h)
			if err != nil {
				return nil, fmt.Errorf("route %s: %w", rt.ID, err)
			}
			for _, uri := range rt.URIs {
				p.add(uri, rt)
			}
		}
	}
	r.any.finish()
	for _, m := range []map[string]*paths{r.hosts, r.suffixes} {
		for _, p := range m {
			p.finish()
		}
	}
	return r, nil
}

// host is where the routes of a host pattern are kept.
func (r *router) host(pattern string) (*paths, error) {
	pattern = strings.ToLower(pattern)
	if pattern == "*" {
		return r.any, nil
	}
	m, key := r.hosts, pattern
	if strings.HasPrefix(pattern, "*.") {
		m, key = r.suffixes, pattern[1:]
	}
	if key == "" || key == "." || strings.Contains(key, "*") {
		return nil, fmt.Errorf("host %q is not a host name; write a name, or *.name for all names under it", pattern)
	}
	if m[key] == nil {
		m[key] = &paths{}
	}
	return m[key], nil
}

func (p *paths) add(uri string, rt *route) {
	if prefix, ok := strings.CutSuffix(uri, "*"); ok {
		if p.byPrefix == nil {
			p.byPrefix = map[string][]*route{}
		}
		p.byPrefix[prefix] = append(p.byPrefix[prefix], rt)
		return
	}
	if p.exact == nil {
		p.exact = map[string][]*route{}
	}
	p.exact[uri] = append(p.exact[uri], rt)
}

// finish sorts what add collected.
func (p *paths) finish() {
	rank := func(a, b *route) int { return cmp.Compare(b.Priority, a.Priority) }
	for _, rts := range p.exact {
		slices.SortStableFunc(rts, rank)
	}
	for prefix := range p.byPrefix {
		p.prefixes = append(p.prefixes, prefix)
	}
	slices.Sort(p.prefixes)
	p.parents = make([]int, len(p.prefixes))
	p.routes = make([][]*route, len(p.prefixes))
	for i, prefix := range p.prefixes {
		parent := i - 1
		for parent >= 0 && !strings.HasPrefix(prefix, p.prefixes[parent]) {
			parent = p.parents[parent]
		}
		p.parents[i] = parent
		p.routes[i] = p.byPrefix[prefix]
		slices.SortStableFunc(p.routes[i], rank)
	}
	p.byPrefix = nil
}

// match is the route of a request, or nil. host is lower case and without a port; path
// is decoded and clean.
func (r *router) match(host, path, method string) *route {
	if p := r.hosts[host]; p != nil {
		if rt := p.match(path, method); rt != nil {
			return rt
		}
	}
	if len(r.suffixes) > 0 {
		for i := 1; i < len(host); i++ {
			if host[i] != '.' {
				continue
			}
			if p := r.suffixes[host[i:]]; p != nil {
				if rt := p.match(path, method); rt != nil {
					return rt
				}
			}
		}
	}
	return r.any.match(path, method)
}

func (p *paths) match(path, method string) *route {
	if rt := pick(p.exact[path], method); rt != nil {
		return rt
	}
	// Every prefix of path sorts before path, and what sorts between the two begins with
	// it: they are ancestors of the last prefix that does not sort after path.
	i, found := slices.BinarySearch(p.prefixes, path)
	if !found {
		i--
	}
	for ; i >= 0; i = p.parents[i] {
		if !strings.HasPrefix(path, p.prefixes[i]) {
			continue
		}
		if rt := pick(p.routes[i], method); rt != nil {
			return rt
		}
	}
	return nil
}

func pick(rts []*route, method string) *route {
	for _, rt := range rts {
		if len(rt.Methods) == 0 || slices.Contains(rt.Methods, method) {
			return rt
		}
	}
	return nil
}
