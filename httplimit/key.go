package httplimit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/netip"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/escapement-io/escapement"
)

// KeyFunc says who a request is counted for; ok is false if the request does not say.
// Requests with one key share what the limit allows.
type KeyFunc func(r *http.Request) (key string, ok bool)

// Everyone counts all requests together.
func Everyone(*http.Request) (key string, ok bool) { return "", true }

// RemoteAddr counts by ClientAddr; an IPv6 address is cut to c.IPv6Prefix bits, so the
// key reads "192.0.2.1" or "2001:db8:1:2::/64". There is no key if the peer has no
// address. It panics if c.IPv6Prefix is not 0 to 128 or a prefix in c.Trusted is not valid.
func RemoteAddr(c Clients) KeyFunc {
	if c.IPv6Prefix < 0 || c.IPv6Prefix > 128 {
		panic(fmt.Sprintf("httplimit: IPv6 prefix of %d bits, use 1 to 128, or 0 for 64", c.IPv6Prefix))
	}
	for i, p := range c.Trusted {
		if !p.IsValid() {
			panic(fmt.Sprintf("httplimit: trusted proxy %d is not a valid prefix; use netip.ParsePrefix and check its error", i))
		}
	}
	return func(r *http.Request) (string, bool) {
		a := ClientAddr(r, c)
		return AddrKey(a, c.IPv6Prefix), a.IsValid()
	}
}

// AddrKey is the key of an address in RemoteAddr. A prefix of 0 bits means 64. For an
// address that is not valid it is empty.
func AddrKey(a netip.Addr, ipv6Prefix int) string {
	if !a.IsValid() {
		return ""
	}
	a = plain(a)
	if a.Is4() {
		return a.String()
	}
	if ipv6Prefix == 0 {
		ipv6Prefix = 64
	}
	// The error is for lengths outside of 0 to 128; the result is then its own spelling.
	p, _ := a.Prefix(ipv6Prefix)
	return p.String()
}

// Header counts by the value of a request header. There is no key if the header is
// missing, empty, or there more than once: which of several values the handler goes by
// is not known here. The client can say what it likes in a header, so use one that a
// proxy sets or that was authenticated before.
func Header(name string) KeyFunc {
	name = textproto.CanonicalMIMEHeaderKey(name)
	if name == "Host" { // net/http keeps it elsewhere
		return func(r *http.Request) (string, bool) { return strings.ToLower(r.Host), r.Host != "" }
	}
	return func(r *http.Request) (string, bool) {
		v := r.Header[name]
		if len(v) != 1 || v[0] == "" {
			return "", false
		}
		return v[0], true
	}
}

// Composite counts by several keys together. Parts cannot run into each other: each is
// preceded by its length. There is no key if one of them is missing.
func Composite(parts ...KeyFunc) KeyFunc {
	return func(r *http.Request) (string, bool) {
		b := make([]byte, 0, 128)
		for _, part := range parts {
			key, ok := part(r)
			if !ok {
				return "", false
			}
			b = strconv.AppendInt(b, int64(len(key)), 10)
			b = append(b, ':')
			b = append(b, key...)
		}
		return string(b), true
	}
}

// FirstOf counts by the first of the keys that a request has. Keys of different
// functions never collide: each is preceded by the position of its function.
func FirstOf(keys ...KeyFunc) KeyFunc {
	return func(r *http.Request) (string, bool) {
		for i, f := range keys {
			if key, ok := f(r); ok {
				return strconv.Itoa(i) + ":" + key, true
			}
		}
		return "", false
	}
}

// hashed marks keys that are a hash.
const hashed = "sha256:"

// BoundKey is the key itself up to escapement.MaxKey bytes, and above that its SHA-256.
// A key that only looks like a hash is hashed too, so nobody can ask for another's. The
// middleware applies it to every key.
func BoundKey(key string) string {
	if len(key) <= escapement.MaxKey && !strings.HasPrefix(key, hashed) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hashed + hex.EncodeToString(sum[:])
}
