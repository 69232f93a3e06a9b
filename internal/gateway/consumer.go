package gateway

import (
	"crypto/sha256"
	"net/http"
	"net/netip"

	"github.com/escapement-io/escapement/internal/config"
)

// identities knows who a request comes from.
type identities struct {
	header  string // canonical; empty: none
	trusted []netip.Prefix
	keys    map[[sha256.Size]byte]string // hash of an API key to its consumer
}

// keyHeader and consumerHeader are the names that limit-count's users know.
const (
	keyHeader      = "Apikey"
	consumerHeader = "X-Consumer-Username"
)

func newIdentities(c *config.Consumers) identities {
	id := identities{trusted: c.Trusted, keys: make(map[[sha256.Size]byte]string, len(c.KeyAuth))}
	if c.Header != "" {
		id.header = http.CanonicalHeaderKey(c.Header)
	}
	for key, name := range c.KeyAuth {
		id.keys[sha256.Sum256([]byte(key))] = name
	}
	return id
}

// fromHeader is the consumer that a trusted peer names, or none. The field is removed
// from a request of any other peer, and from one that carries it more than once: one of
// the values may be the client's own.
func (id *identities) fromHeader(r *http.Request, peer netip.Addr) string {
	if id.header == "" {
		return ""
	}
	values := r.Header[id.header]
	if values == nil {
		return ""
	}
	if len(values) == 1 && contains(id.trusted, peer) {
		return values[0]
	}
	delete(r.Header, id.header)
	return ""
}

// fromKey is the consumer whose API key the request carries, or what to answer without
// one. Keys are looked up by hash, so the time it takes says nothing about how much of a
// guess was right.
func (id *identities) fromKey(r *http.Request, a *config.KeyAuth) (string, *refusal) {
	header := a.Header
	if header == "" {
		header = keyHeader
	}
	key := r.Header.Get(header)
	if key == "" && a.Query != "" {
		key, _ = queryArg(r.URL.RawQuery, a.Query)
	}
	if key == "" {
		return "", &noKey
	}
	name, ok := id.keys[sha256.Sum256([]byte(key))]
	if !ok {
		return "", &badKey
	}
	if a.HideCredentials {
		r.Header.Del(header)
		if a.Query != "" && r.URL.RawQuery != "" {
			r.URL.RawQuery = dropArg(r.URL.RawQuery, a.Query)
		}
	}
	return name, nil
}

// peerAddr is the address at the other end of the connection.
func peerAddr(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}

func contains(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
