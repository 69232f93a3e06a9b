package gateway

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/config"
)

// echo makes the upstream answer with what it got.
func (w *world) echo(what func(*http.Request) string) {
	h := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(rw, what(r)) })
	w.handler.Store(&h)
}

func TestKeyAuth(t *testing.T) {
	c := oneRoute()
	c.Consumers.KeyAuth = map[string]string{"k-alice": "alice", "k-bob": "bob"}
	c.Routes[0].KeyAuth = &config.KeyAuth{Header: "apikey", Query: "apikey"}
	c.Routes = append(c.Routes, &config.Route{
		ID: "hidden", URIs: []string{"/hidden"}, KeyAuth: &config.KeyAuth{Header: "apikey", Query: "key", HideCredentials: true},
	})
	w := serve(t, newScript(), c)
	w.echo(func(r *http.Request) string {
		return r.Header.Get("X-Consumer-Username") + " " + r.Header.Get("apikey") + " " + r.URL.RawQuery
	})
	for _, test := range []struct {
		path   string
		fields []string
		code   int
		body   string
	}{
		{"/", nil, 401, "{\"message\":\"Missing API key in request\"}\n"},
		{"/", []string{"apikey: nope"}, 401, "{\"message\":\"Invalid API key in request\"}\n"},
		{"/", []string{"apikey: k-alice"}, 200, "alice k-alice "},
		{"/?apikey=k-bob&a=1", nil, 200, "bob  apikey=k-bob&a=1"},
		{"/", []string{"apikey: k-alice", "X-Consumer-Username: root"}, 200, "alice k-alice "},
		{"/", []string{"apikey: k-alice", "Connection: X-Consumer-Username"}, 200, "alice k-alice "},
		{"/hidden?b=2&key=k-bob&a=%20", nil, 200, "bob  b=2&a=%20"},
		{"/hidden?k%65y=k-bob", nil, 200, "bob  "},
		{"/hidden?a", []string{"apikey: k-alice"}, 200, "alice  a"},
		{"/hidden?key=k-bob", []string{"apikey: nope"}, 401, "{\"message\":\"Invalid API key in request\"}\n"},
	} {
		r := w.get(test.path, test.fields...)
		if r.code != test.code || r.body != test.body {
			t.Errorf("%s %v: got %d %q, want %d %q", test.path, test.fields, r.code, r.body, test.code, test.body)
		}
		if r.code == 401 && r.header.Get("WWW-Authenticate") == "" {
			t.Error("401 without WWW-Authenticate")
		}
	}
}

// TestConsumerHeader: the field is believed from trusted peers only, and never reaches
// the upstream from others.
func TestConsumerHeader(t *testing.T) {
	hour := escapement.Limit{Name: "l", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 1, Per: time.Hour}}
	c := oneRoute(compat(hour, key("consumer_name")))
	w := serve(t, newScript(), c)
	w.echo(func(r *http.Request) string { return r.Header.Get("X-Consumer") })
	if r := w.get("/", "X-Consumer: alice"); r.code != 200 || r.body != "alice" {
		t.Errorf("trusted: got %d %q", r.code, r.body)
	}
	if r := w.get("/", "X-Consumer: bob", "Connection: X-Consumer"); r.code != 200 || r.body != "bob" {
		t.Errorf("trusted, named in Connection: got %d %q", r.code, r.body)
	}
	if r := w.get("/", "X-Consumer: eve", "X-Consumer: alice"); r.code != 200 || r.body != "" {
		t.Errorf("twice: got %d %q, want none", r.code, r.body)
	}

	c = oneRoute(compat(hour, key("consumer_name")))
	c.Consumers.Trusted = nil
	w = serve(t, newScript(), c)
	w.echo(func(r *http.Request) string { return "saw " + r.Header.Get("X-Consumer") })
	if r := w.get("/", "X-Consumer: alice"); r.code != 200 || r.body != "saw " {
		t.Errorf("untrusted: got %d %q, want the field removed", r.code, r.body)
	}
	if r := w.get("/", "X-Consumer: another"); r.code != 503 {
		t.Errorf("a made-up consumer escapes the limit: got %d", r.code)
	}
}

// TestForwardedFor: a client cannot choose its address, a trusted proxy can say it.
func TestForwardedFor(t *testing.T) {
	make := func(trusted bool) *world {
		c := oneRoute(native(escapement.Limit{Name: "l", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 1, Per: time.Hour}}, key("remote_addr")))
		if trusted {
			c.TrustedProxies = loopback
		}
		w := serve(t, newScript(), c)
		w.echo(func(r *http.Request) string {
			h := r.Header
			return h.Get("X-Forwarded-For") + "|" + h.Get("X-Real-Ip") + "|" + h.Get("X-Forwarded-Proto") + "|" + h.Get("X-Forwarded-Host") + "|" + h.Get("Forwarded")
		})
		return w
	}
	w := make(false)
	spoof := []string{"X-Forwarded-For: 192.0.2.1", "X-Real-Ip: 192.0.2.1", "X-Forwarded-Proto: https", "X-Forwarded-Host: evil", "Forwarded: for=192.0.2.1", "Host: me"}
	if r := w.get("/", spoof...); r.code != 200 || r.body != "127.0.0.1|127.0.0.1|http|me|" {
		t.Errorf("untrusted: got %d %s", r.code, r.body)
	}
	if r := w.get("/", "X-Forwarded-For: 192.0.2.2"); r.code != 429 {
		t.Errorf("a spoofed address escapes the limit: got %d", r.code)
	}
	w = make(true)
	if r := w.get("/", append(spoof, "X-Forwarded-For: 198.51.100.7")...); r.body != "192.0.2.1, 198.51.100.7, 127.0.0.1|198.51.100.7|https|evil|" {
		t.Errorf("trusted: got %d %s", r.code, r.body)
	}
	for addr, want := range map[string]int{"198.51.100.7": 429, "9.9.9.9, 198.51.100.7": 429, "198.51.100.8": 200} {
		if r := w.get("/", "X-Forwarded-For: "+addr); r.code != want {
			t.Errorf("%s: got %d, want %d", addr, r.code, want)
		}
	}
	w.get("/", "X-Forwarded-For: 2001:db8:1:2::1")
	if r := w.get("/", "X-Forwarded-For: 2001:db8:1:2:ffff::2"); r.code != 429 {
		t.Errorf("another address of the same /64 escapes the limit: got %d", r.code)
	}
}
