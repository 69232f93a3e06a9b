package httplimit

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/escapement-io/escapement"
)

func TestRemoteAddrKeys(t *testing.T) {
	tests := []struct {
		peer   string
		prefix int
		want   string
	}{
		{"192.0.2.1:80", 0, "192.0.2.1"},
		{"[::ffff:192.0.2.1]:80", 64, "192.0.2.1"},
		{"[2001:db8:1:2::1]:80", 0, "2001:db8:1:2::/64"},
		{"[2001:db8:1:2:ffff::9]:81", 0, "2001:db8:1:2::/64"},
		{"[2001:db8:1:2::1]:80", 48, "2001:db8:1::/48"},
		{"[2001:db8:1:2::1]:80", 128, "2001:db8:1:2::1/128"},
		{"[fe80::1%eth0]:80", 0, "fe80::/64"},
	}
	for _, tt := range tests {
		if key, ok := RemoteAddr(Clients{IPv6Prefix: tt.prefix})(request(tt.peer)); key != tt.want || !ok {
			t.Errorf("%s/%d: %q, %v, want %q", tt.peer, tt.prefix, key, ok, tt.want)
		}
	}
	if key := AddrKey(netip.Addr{}, 0); key != "" {
		t.Errorf("no address has the key %q", key)
	}
}

func TestMistakesInClientsPanic(t *testing.T) {
	for _, c := range []Clients{{IPv6Prefix: -1}, {IPv6Prefix: 129}, {Trusted: []netip.Prefix{{}}}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is taken", c)
				}
			}()
			RemoteAddr(c)
		}()
	}
}

func TestHeaderKeys(t *testing.T) {
	key := Header("x-api-key")
	tests := []struct {
		name    string
		headers []string
		want    string
		ok      bool
	}{
		{"there", []string{"X-Api-Key", "abc"}, "abc", true},
		{"missing", nil, "", false},
		{"empty", []string{"X-Api-Key", ""}, "", false},
		{"twice", []string{"X-Api-Key", "abc", "X-Api-Key", "def"}, "", false},
		{"not UTF-8", []string{"X-Api-Key", "\xff\xfe"}, "\xff\xfe", true},
	}
	for _, tt := range tests {
		if got, ok := key(request("192.0.2.1:1", tt.headers...)); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %q, %v, want %q, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
	if got, ok := Header("host")(request("192.0.2.1:1")); got != "example.org" || !ok {
		t.Errorf("host: %q, %v", got, ok)
	}
}

func parts(values []string) KeyFunc {
	var fs []KeyFunc
	for _, v := range values {
		fs = append(fs, func(*http.Request) (string, bool) { return v, true })
	}
	return Composite(fs...)
}

// Different lists of parts never make one key.
func TestCompositeDoesNotCollide(t *testing.T) {
	if a, b := parts([]string{"ab", "c"}), parts([]string{"a", "bc"}); must(t, a) == must(t, b) {
		t.Error("parts ran into each other")
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("01:a")), 0, 6, -1)
		list := rapid.SliceOfN(text, 0, 4)
		a, b := list.Draw(t, "a"), list.Draw(t, "b")
		ka, _ := parts(a)(nil)
		kb, _ := parts(b)(nil)
		if same := fmt.Sprintf("%q", a) == fmt.Sprintf("%q", b); same != (ka == kb) {
			t.Fatalf("%q and %q became %q and %q", a, b, ka, kb)
		}
	})
}

func must(t *testing.T, f KeyFunc) string {
	t.Helper()
	key, ok := f(request("192.0.2.1:1"))
	if !ok {
		t.Fatal("no key")
	}
	return key
}

func TestMissingParts(t *testing.T) {
	if key, ok := Composite(Everyone, Header("X-Api-Key"))(request("192.0.2.1:1")); ok {
		t.Errorf("without one of its parts the key is %q", key)
	}
	first := FirstOf(Header("X-Api-Key"), RemoteAddr(Clients{}))
	spoofed, _ := first(request("203.0.113.5:1", "X-Api-Key", "192.0.2.1"))
	if address := must(t, first); address == spoofed {
		t.Error("a header value collides with an address")
	}
	if _, ok := FirstOf(Header("X-Api-Key"))(request("192.0.2.1:1")); ok {
		t.Error("a key out of nothing")
	}
}

func TestBoundKey(t *testing.T) {
	long := strings.Repeat("a", escapement.MaxKey)
	for _, key := range []string{"", "abc", "\x00\xff", long} {
		if BoundKey(key) != key {
			t.Errorf("%.20q was changed", key)
		}
	}
	over := BoundKey(long + "b")
	if want := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(long+"b"))); over != want {
		t.Errorf("%q, want %q", over, want)
	}
	if BoundKey(over) == over {
		t.Error("who sends the hash of a long key has that key")
	}
}
