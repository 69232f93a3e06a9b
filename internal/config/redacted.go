package config

import (
	"net/netip"

	"github.com/escapement-io/escapement/internal/policy"
)

// Redacted is the configuration in force as a value for JSON: everything that decides
// what happens to a request, and no secret. Of keys it has the consumers' names, of TLS
// the names of the files.
func (c *Config) Redacted() any {
	limits := make([]any, 0, len(c.Limits))
	for _, l := range c.Limits {
		limits = append(limits, l.redacted())
	}
	routes := make([]any, 0, len(c.Routes))
	for _, r := range c.Routes {
		routes = append(routes, r.redacted())
	}
	consumers := map[string]any{}
	if c.Consumers.Header != "" {
		consumers["header"] = c.Consumers.Header
		consumers["trusted"] = texts(c.Consumers.Trusted)
	}
	if len(c.Consumers.Names) > 0 {
		consumers["names"] = c.Consumers.Names
	}
	out := map[string]any{
		"listen": c.Listen, "admin": c.Admin, "trusted_proxies": texts(c.TrustedProxies), "clock": c.Clock.redacted(),
		"consumers": consumers, "limits": limits, "routes": routes, "findings": findings(c.Findings),
	}
	if len(c.Stores) > 0 {
		stores := make([]any, 0, len(c.Stores))
		for _, s := range c.Stores {
			stores = append(stores, s.redacted())
		}
		out["stores"] = stores
	}
	if c.TLS != nil {
		out["tls"] = map[string]string{"cert": c.TLS.Cert, "key": c.TLS.Key}
	}
	return out
}

func (l *Limit) redacted() any {
	out := map[string]any{
		"summary": l.Summary(), "burst": l.Burst, "max_delay": l.MaxDelay.String(), "align": l.Align.String(), "zone": zoneName(l.Zone),
		"headroom": l.Headroom, "on_failure": l.OnFailure.String(), "bypass": bypasses(l.Bypass),
		"rejected_code": l.Rejected.Code, "rejected_msg": l.Rejected.Msg,
		"headers": map[string]any{
			"style": l.Headers.Style, "limit": l.Headers.Limit, "remaining": l.Headers.Remaining, "reset": l.Headers.Reset,
			"retry_after": l.Headers.RetryAfter, "jitter": l.Headers.Jitter.String(),
		},
		"compatible": l.Compatible, "allow_degradation": l.AllowDegradation,
	}
	if l.RuleSet != "" {
		out["rule_set"] = l.RuleSet
	}
	if l.Sync > 0 {
		sync := map[string]any{"interval": l.Sync.String(), "mode": l.SyncMode.String()}
		if l.Fence {
			sync["fence"] = true
		}
		out["sync"] = sync
	}
	return out
}

// redacted leaves out who the store is told is asking.
func (s *Store) redacted() any {
	out := map[string]any{
		"name": s.Name, "mode": s.Mode, "addresses": s.Addrs, "database": s.DB, "deadline": s.Deadline.String(),
		"prefix": s.Prefix, "expiry_margin": s.ExpiryMargin.String(), "connections": s.Connections, "instances": s.Instances,
	}
	if s.Primary != "" {
		out["master"] = s.Primary
	}
	if t := s.TLS; t != nil {
		out["tls"] = map[string]any{"verify": t.Verify, "ca": t.CA, "cert": t.Cert, "key": t.Key, "server_name": t.ServerName}
	}
	return out
}

func (r *Route) redacted() any {
	names := make([]string, 0, len(r.Limits))
	for _, l := range r.Limits {
		names = append(names, l.Name)
	}
	out := map[string]any{"id": r.ID, "uris": r.URIs, "hosts": r.Hosts, "methods": r.Methods, "priority": r.Priority, "limits": names}
	if r.KeyAuth != nil {
		out["key_auth"] = map[string]any{"header": r.KeyAuth.Header, "query": r.KeyAuth.Query, "hide_credentials": r.KeyAuth.HideCredentials}
	}
	if u := r.Upstream; u != nil {
		nodes := map[string]int{}
		for _, n := range u.Nodes {
			nodes[n.Addr] = n.Weight
		}
		up := map[string]any{
			"type": u.Balance, "nodes": nodes, "scheme": u.Scheme, "pass_host": u.PassHost, "upstream_host": u.Host,
			"timeout": map[string]string{"connect": u.Connect.String(), "send": u.Send.String(), "read": u.Read.String()},
			"retries": u.Retries, "tls_verify": u.TLSVerify,
		}
		if u.HashOn != nil {
			up["hash_on"] = u.HashOn.String()
		}
		out["upstream"] = up
	}
	return out
}

func texts(prefixes []netip.Prefix) []string {
	out := make([]string, 0, len(prefixes))
	for _, p := range prefixes {
		out = append(out, p.String())
	}
	return out
}

// bypasses leaves out the values of headers, cookies and arguments: they may be what a
// probe proves itself by.
func bypasses(list []policy.Bypass) []map[string]string {
	out := make([]map[string]string, 0, len(list))
	for _, b := range list {
		if b.Var == "" {
			out = append(out, map[string]string{"cidr": b.Prefix.String()})
		} else {
			out = append(out, map[string]string{"var": b.Var})
		}
	}
	return out
}

func findings(list []Finding) []map[string]any {
	out := make([]map[string]any, 0, len(list))
	for _, f := range list {
		out = append(out, f.Document())
	}
	return out
}
