package httplimit

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
)

func prefixes(texts ...string) []netip.Prefix {
	var ps []netip.Prefix
	for _, s := range texts {
		ps = append(ps, netip.MustParsePrefix(s))
	}
	return ps
}

// identityCase is a history that another rate limiter got wrong, and the right answers.
type identityCase struct {
	ID    string
	Limit struct {
		Count    int64
		WindowMS int64 `json:"window_ms"`
		Ident    *struct {
			TrustedProxies []string `json:"trusted_proxies"`
			IPv6Prefix     int      `json:"ipv6_prefix"`
		}
	}
	Events []struct {
		TMS    int64 `json:"t_ms"`
		Times  int
		Peer   string
		XFF    string
		Header *string
	}
	Expect []struct {
		Allowed      *bool
		AllowedCount *int `json:"allowed_count"`
		Remaining    int64
		RetryAfterMS int64 `json:"retry_after_ms"`
	}
}

func TestClientIdentityCases(t *testing.T) {
	f, err := os.Open("testdata/client_identity.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		var c identityCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.ID, func(t *testing.T) { replay(t, c) })
	}
	if n != 5 {
		t.Fatalf("%d cases, want 5", n)
	}
}

func replay(t *testing.T, c identityCase) {
	var clients Clients
	if i := c.Limit.Ident; i != nil {
		clients = Clients{Trusted: prefixes(i.TrustedProxies...), IPv6Prefix: i.IPv6Prefix}
	}
	key := FirstOf(Header("X-Api-Key"), RemoteAddr(clients))
	store := newLineStore(t)
	start := c.Limit.WindowMS * 1000 * 1_000_000
	lim := limiter(t, store, escapement.Limit{
		Algorithm: escapement.FixedWindow,
		Rate:      escapement.Rate{Count: c.Limit.Count, Per: time.Duration(c.Limit.WindowMS) * time.Millisecond},
	})
	for i, e := range c.Events {
		store.line.Store(start + e.TMS*1000)
		peer := net.JoinHostPort(e.Peer, "4711")
		r := request(peer)
		if e.XFF != "" {
			r.Header.Set("X-Forwarded-For", e.XFF)
		}
		if e.Header != nil {
			r.Header.Set("X-Api-Key", *e.Header)
		}
		want := c.Expect[i]
		allowed, last := 0, escapement.Decision{}
		for range max(1, e.Times) {
			k, _ := key(r)
			d, err := lim.Take(context.Background(), k, 1)
			if err != nil {
				t.Fatal(err)
			}
			if last = d; d.Allowed {
				allowed++
			}
		}
		if want.AllowedCount != nil && allowed != *want.AllowedCount {
			t.Errorf("event %d: %d allowed, want %d", i, allowed, *want.AllowedCount)
		}
		if want.Allowed != nil && last.Allowed != *want.Allowed {
			t.Errorf("event %d: allowed %v, want %v", i, last.Allowed, *want.Allowed)
		}
		if last.Remaining() != want.Remaining || last.RetryAfter().Milliseconds() != want.RetryAfterMS {
			t.Errorf("event %d: remaining %d, retry after %d ms, want %d and %d", i,
				last.Remaining(), last.RetryAfter().Milliseconds(), want.Remaining, want.RetryAfterMS)
		}
	}
}

func TestClientAddr(t *testing.T) {
	const proxy = "10.0.0.1:80"
	trusted := prefixes("10.0.0.0/8", "fd00::/8", "127.0.0.1/32")
	mapped := prefixes("::ffff:10.0.0.0/104")
	xff := func(lines ...string) (h []string) {
		for _, l := range lines {
			h = append(h, "X-Forwarded-For", l)
		}
		return h
	}
	fwd := func(lines ...string) (h []string) {
		for _, l := range lines {
			h = append(h, "Forwarded", l)
		}
		return h
	}
	tests := []struct {
		name    string
		clients Clients
		peer    string
		headers []string
		want    string
	}{
		{"peer alone", Clients{}, "192.0.2.1:5", nil, "192.0.2.1"},
		{"nobody is trusted", Clients{}, proxy, xff("192.0.2.1"), "10.0.0.1"},
		{"peer is no proxy", Clients{Trusted: trusted}, "192.0.2.9:5", xff("192.0.2.1"), "192.0.2.9"},
		{"mapped peer", Clients{}, "[::ffff:192.0.2.1]:5", nil, "192.0.2.1"},
		{"peer with a zone", Clients{}, "[fe80::1%eth0]:5", nil, "fe80::1"},
		{"peer without a port", Clients{}, "192.0.2.1", nil, "192.0.2.1"},
		{"no address", Clients{Trusted: trusted}, "@", xff("192.0.2.1"), ""},
		{"empty", Clients{Trusted: trusted}, "", xff("192.0.2.1"), ""},

		{"one hop", Clients{Trusted: trusted}, proxy, xff("192.0.2.1"), "192.0.2.1"},
		{"mapped proxy", Clients{Trusted: trusted}, "[::ffff:10.0.0.1]:80", xff("192.0.2.1"), "192.0.2.1"},
		{"proxies given as mapped", Clients{Trusted: mapped}, proxy, xff("192.0.2.1"), "192.0.2.1"},
		{"made-up text on the left", Clients{Trusted: trusted}, proxy, xff("1.1.1.1, 192.0.2.1"), "192.0.2.1"},
		{"over a trusted hop", Clients{Trusted: trusted}, proxy, xff("1.1.1.1, 192.0.2.1, 10.9.9.9"), "192.0.2.1"},
		{"the client claims to be a proxy", Clients{Trusted: trusted}, proxy, xff("10.0.0.7, 192.0.2.1"), "192.0.2.1"},
		{"over two lines", Clients{Trusted: trusted}, proxy, xff("1.1.1.1", "192.0.2.1, 10.9.9.9"), "192.0.2.1"},
		{"order of lines", Clients{Trusted: trusted}, proxy, xff("192.0.2.1", "10.9.9.9"), "192.0.2.1"},
		{"all trusted", Clients{Trusted: trusted}, proxy, xff("10.3.3.3, 10.2.2.2"), "10.3.3.3"},
		{"empty hops", Clients{Trusted: trusted}, proxy, xff(" , 192.0.2.1, ,\t"), "192.0.2.1"},
		{"empty header", Clients{Trusted: trusted}, proxy, xff(""), "10.0.0.1"},
		{"malformed hop", Clients{Trusted: trusted}, proxy, xff("192.0.2.1, garbage"), "10.0.0.1"},
		{"malformed behind trusted", Clients{Trusted: trusted}, proxy, xff("192.0.2.1, x, 10.2.2.2"), "10.2.2.2"},
		{"a number is no address", Clients{Trusted: trusted}, proxy, xff("23189987"), "10.0.0.1"},
		{"leading zeros", Clients{Trusted: trusted}, proxy, xff("192.0.02.1"), "10.0.0.1"},
		{"host name", Clients{Trusted: trusted}, proxy, xff("localhost"), "10.0.0.1"},
		{"with a port", Clients{Trusted: trusted}, proxy, xff("192.0.2.1:4711"), "192.0.2.1"},
		{"IPv6", Clients{Trusted: trusted}, proxy, xff("2001:DB8::1"), "2001:db8::1"},
		{"IPv6 in brackets", Clients{Trusted: trusted}, proxy, xff("[2001:db8::1]"), "2001:db8::1"},
		{"IPv6 with a port", Clients{Trusted: trusted}, proxy, xff("[2001:db8::1]:443"), "2001:db8::1"},
		{"IPv4 in brackets", Clients{Trusted: trusted}, proxy, xff("[192.0.2.1]"), "10.0.0.1"},
		{"hop with a zone", Clients{Trusted: trusted}, proxy, xff("2001:db8::1%x"), "2001:db8::1"},
		{"trusted hop with a zone", Clients{Trusted: trusted}, proxy, xff("192.0.2.1, fd00::1%x"), "192.0.2.1"},
		{"mapped hop", Clients{Trusted: trusted}, proxy, xff("::ffff:192.0.2.1"), "192.0.2.1"},
		{"non-breaking space", Clients{Trusted: trusted}, proxy, xff("\u00a0192.0.2.1"), "10.0.0.1"},
		{"Forwarded is not read", Clients{Trusted: trusted}, proxy, fwd("for=192.0.2.1"), "10.0.0.1"},

		{"for", Clients{Trusted: trusted, Forwarded: true}, proxy, fwd("for=192.0.2.1"), "192.0.2.1"},
		{"spelling", Clients{Trusted: trusted, Forwarded: true}, proxy, fwd("by=x;FOR=\"192.0.2.1:80\" ;proto=http"), "192.0.2.1"},
		{"for with IPv6", Clients{Trusted: trusted, Forwarded: true}, proxy, fwd(`for="[2001:db8::1]:4711"`), "2001:db8::1"},
		{"quoted pair", Clients{Trusted: trusted, Forwarded: true}, proxy, fwd(`for="192\.0.2.1"`), "192.0.2.1"},
		{"right-most element", Clients{Trusted: trusted, Forwarded: true}, proxy, fwd("for=1.1.1.1, for=192.0.2.1"), "192.0.2.1"},
		{"over trusted elements", Clients{Trusted: trusted, Forwarded: true}, proxy, fwd("for=1.1.1.1", "for=192.0.2.1, for=10.2.2.2"), "192.0.2.1"},
		{"comma in quotes", Clients{Trusted: trusted, Forwarded: true}, proxy, fwd(`for=192.0.2.1;host="a, for=1.1.1.1"`), "192.0.2.1"},
		{"escaped quote", Clients{Trusted: trusted, Forwarded: true}, proxy, fwd(`for=192.0.2.1;host="a\", for=1.1.1.1"`), "192.0.2.1"},
		{"open quote on the left", Clients{Trusted: trusted, Forwarded: true}, proxy, fwd(`for="1.1.1.1, for=192.0.2.1`), "192.0.2.1"},
		{"open quote in an earlier line", Clients{Trusted: trusted, Forwarded: true}, proxy, fwd(`for="1.1.1.1`, "for=192.0.2.1"), "192.0.2.1"},
		{"hidden", Clients{Trusted: trusted, Forwarded: true}, proxy, fwd("for=192.0.2.1, for=_secret"), "10.0.0.1"},
		{"unknown", Clients{Trusted: trusted, Forwarded: true}, proxy, fwd("for=192.0.2.1, for=unknown"), "10.0.0.1"},
		{"no for", Clients{Trusted: trusted, Forwarded: true}, proxy, fwd("for=192.0.2.1, proto=http"), "10.0.0.1"},
		{"two fors", Clients{Trusted: trusted, Forwarded: true}, proxy, fwd("for=192.0.2.1;for=192.0.2.2"), "10.0.0.1"},
		{"no value", Clients{Trusted: trusted, Forwarded: true}, proxy, fwd("for"), "10.0.0.1"},
		{"X-Forwarded-For is not read", Clients{Trusted: trusted, Forwarded: true}, proxy, xff("192.0.2.1"), "10.0.0.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ClientAddr(request(tt.peer, tt.headers...), tt.clients)
			if want, _ := netip.ParseAddr(tt.want); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestClientAddrUnix(t *testing.T) {
	overUnix := func(addr string, headers ...string) *http.Request {
		r := request(addr, headers...)
		local := &net.UnixAddr{Name: "/run/app.sock", Net: "unix"}
		return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local)))
	}
	r := overUnix("@", "X-Forwarded-For", "1.1.1.1, 192.0.2.1")
	if a := ClientAddr(r, Clients{TrustUnix: true}); a != netip.MustParseAddr("192.0.2.1") {
		t.Errorf("trusted: %v", a)
	}
	if a := ClientAddr(r, Clients{}); a.IsValid() {
		t.Errorf("not trusted: %v", a)
	}
	if key, ok := RemoteAddr(Clients{})(r); ok {
		t.Errorf("a peer without address has the key %q", key)
	}
	// A real server on a socket is recognised.
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, ClientAddr(r, Clients{TrustUnix: true}).String())
	})}
	defer srv.Close()
	go func() { _ = srv.Serve(ln) }()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", ln.Addr().String())
		},
	}}
	q, err := http.NewRequest("GET", "http://socket/", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("X-Forwarded-For", "192.0.2.1")
	resp, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "192.0.2.1" {
		t.Errorf("over a socket: %q, %v", b, err)
	}
	// A RemoteAddr that some handler before overwrote with nonsense is not a Unix socket.
	if a := ClientAddr(request("nonsense", "X-Forwarded-For", "192.0.2.1"), Clients{TrustUnix: true}); a.IsValid() {
		t.Errorf("no Unix socket: %v", a)
	}
}

func TestClientAddrBoundsTheWalk(t *testing.T) {
	c := Clients{Trusted: prefixes("10.0.0.0/8")}
	hops := strings.Repeat("10.0.0.2, ", maxHops+1)
	if a := ClientAddr(request("10.0.0.1:1", "X-Forwarded-For", "192.0.2.1, "+hops), c); a != netip.MustParseAddr("10.0.0.2") {
		t.Errorf("walk of %d hops ended at %v", maxHops+1, a)
	}
	hops = strings.Repeat("10.0.0.2, ", maxHops-1)
	if a := ClientAddr(request("10.0.0.1:1", "X-Forwarded-For", "192.0.2.1, "+hops), c); a != netip.MustParseAddr("192.0.2.1") {
		t.Errorf("walk of %d hops ended at %v", maxHops, a)
	}
}

// Whatever a client writes, the address that a trusted proxy appends is the answer.
func FuzzClientAddr(f *testing.F) {
	f.Add("", false)
	f.Add(`for="`, true)
	f.Add(`for="\`, true)
	f.Add("10.0.0.3, 10.0.0.4", false)
	f.Add("fe80::1%eth0, ::ffff:1.2.3.4", false)
	f.Add(`"\\\"", ;=,"`, true)
	f.Fuzz(func(t *testing.T, text string, forwarded bool) {
		c := Clients{Trusted: prefixes("10.0.0.0/8"), Forwarded: forwarded}
		name, hop := "X-Forwarded-For", "192.0.2.1"
		if forwarded {
			name, hop = "Forwarded", `for="192.0.2.1:4";host="a,\"b"`
		}
		want := netip.MustParseAddr("192.0.2.1")
		for _, lines := range [][]string{{text, hop}, {text + "," + hop}, {text, hop + ", ,"}} {
			r := request("10.0.0.1:1")
			r.Header[name] = lines
			if got := ClientAddr(r, c); got != want {
				t.Errorf("%q: got %v", lines, got)
			}
		}
		r := request("10.0.0.1:1")
		r.Header[name] = []string{text}
		if got := ClientAddr(r, c); !got.IsValid() || got.Is4In6() || got.Zone() != "" {
			t.Errorf("%q: got %v", text, got)
		}
		r = request(text)
		if got := ClientAddr(r, c); got.Is4In6() || got.Zone() != "" {
			t.Errorf("peer %q: got %v", text, got)
		}
	})
}
