package config

import (
	"fmt"
	"slices"

	"github.com/escapement-io/escapement/internal/config/tree"
)

// matcher is a route with the place it was read from.
type matcher struct {
	*Route
	tree.Value
}

// checkUnused points at limits that no route charges. A file without routes is for the
// decision service, which takes limits by name; in a file with mistakes the use may be
// among them.
func (b *builder) checkUnused() {
	if len(b.matchers) == 0 || b.report.Failed() {
		return
	}
	for _, l := range b.config.Limits {
		if s, ok := b.sources[l]; ok && !b.used[l] && !l.Compatible {
			s.limit.Warn("no route uses the limit", "name it under limits of a route, or remove it")
		}
	}
}

// checkConsumers finds limits by consumer on routes where nobody says who the consumer
// is. A native limit would count everybody as one; a compatible one falls back to the
// client's address.
func (b *builder) checkConsumers() {
	if len(b.config.Consumers.Names) == 0 {
		for _, m := range b.matchers {
			if m.KeyAuth != nil {
				m.Warn("key-auth without any consumer: every request to the route is refused", "define consumers with their keys")
			}
		}
	}
	if b.config.Consumers.Header != "" {
		return
	}
	told := map[*Limit]bool{}
	for _, r := range b.config.Routes {
		if r.KeyAuth != nil {
			continue
		}
		for _, l := range r.Limits {
			s, ok := b.sources[l]
			if !ok || told[l] || !slices.Contains(l.Key.Variables(), "consumer_name") {
				continue
			}
			told[l] = true
			const hint = "add consumers: {header: NAME, trusted: [NETWORK]}, or key-auth to the plugins of the route"
			switch {
			case !l.Compatible:
				s.key.Fail(fmt.Sprintf("consumer_name can never resolve on route %s: nothing says who the consumer is", r.ID), hint)
			case !slices.ContainsFunc(l.Key.Variables(), func(n string) bool { return n != "consumer_name" }) && !keyResolves(l):
				s.key.Warn(fmt.Sprintf("a silent change of scope on route %s: consumer_name never resolves there, so the limit counts by client address", r.ID), hint)
			}
		}
	}
}

func keyResolves(l *Limit) bool {
	for _, t := range l.Key.Parts {
		if !t.AlwaysResolves() {
			return false
		}
	}
	return true
}

// allMethods stands for a route that takes every method.
const allMethods = ^uint32(0)

var methodBits = []string{"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT", "TRACE", "PURGE"}

func methodSet(names []string) uint32 {
	if len(names) == 0 {
		return allMethods
	}
	var set uint32
	for _, n := range names {
		set |= 1 << slices.Index(methodBits, n)
	}
	return set
}

// checkReach finds routes all of whose requests go to another one: for each of its hosts
// and paths, a route of the same host and path, at least its methods, and precedence.
func (b *builder) checkReach() {
	type place struct{ host, uri string }
	type entry struct {
		order   int
		methods uint32
	}
	at := map[place][]entry{}
	places := func(r *Route) (out []place) {
		hosts := r.Hosts
		if len(hosts) == 0 {
			hosts = []string{""}
		}
		for _, h := range hosts {
			for _, u := range r.URIs {
				out = append(out, place{h, u})
			}
		}
		return out
	}
	for i, m := range b.matchers {
		for _, p := range places(m.Route) {
			at[p] = append(at[p], entry{i, methodSet(m.Methods)})
		}
	}
	for i, m := range b.matchers {
		set, winner := methodSet(m.Methods), -1
		for _, p := range places(m.Route) {
			j := slices.IndexFunc(at[p], func(e entry) bool {
				other := b.matchers[e.order]
				return e.order != i && e.methods&set == set &&
					(other.Priority > m.Priority || other.Priority == m.Priority && e.order < i)
			})
			if j < 0 {
				winner = -1
				break
			}
			winner = at[p][j].order
		}
		if winner < 0 {
			continue
		}
		first := b.matchers[winner]
		problem := fmt.Sprintf("the route can never be reached: %s on line %d takes its requests", first.ID, first.Node.Place.Line)
		const hint = "remove it, give it other hosts, paths or methods, or a higher priority"
		if b.form == native {
			m.Fail(problem, hint)
		} else {
			m.Warn(problem, hint)
		}
	}
}
