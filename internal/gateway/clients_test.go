package gateway

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/config"
)

// TestSlowClients: one that never ends its header, or pauses in its body, is let go.
func TestSlowClients(t *testing.T) {
	w := serve(t, nil, oneRoute(), WithHeaderTimeout(50*time.Millisecond), WithClientTimeout(50*time.Millisecond))
	w.echo(func(r *http.Request) string {
		_, _ = io.Copy(io.Discard, r.Body)
		return "done"
	})
	conn, err := net.Dial("tcp", w.g.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n")
	for i := range 1000 {
		if _, err := fmt.Fprintf(conn, "X-%d: y\r\n", i); err != nil {
			break
		}
		<-time.After(5 * time.Millisecond)
	}
	answer, _ := io.ReadAll(conn)
	if n := w.passed.Load(); n != 0 || bytes.Contains(answer, []byte("200 OK")) {
		t.Errorf("the endless header was served: %q", answer)
	}

	conn, err = net.Dial("tcp", w.g.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusRequestTimeout {
		t.Errorf("a body that stalls: got %d", res.StatusCode)
	}

	conn, err = net.Dial("tcp", w.g.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	before := w.passed.Load()
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n", strings.Repeat("y", 2*maxHeader))
	// The answer may be lost when the connection is closed with the rest unread.
	res, err = http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil && res.StatusCode != http.StatusRequestHeaderFieldsTooLarge || w.passed.Load() != before {
		t.Errorf("a header of %d bytes: got %v", 2*maxHeader, res)
	}
}

// TestHTTP2 goes over TLS and HTTP/2 on both sides.
func TestHTTP2(t *testing.T) {
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(rw, "%s %s %s", r.Proto, r.Header.Get("X-Forwarded-Proto"), r.Host)
	}))
	up.EnableHTTP2 = true
	up.Config.ErrorLog = log.New(t.Output(), "", 0)
	up.StartTLS()
	defer up.Close()
	cert, keyFile := certificate(t)
	c := oneRoute(native(escapement.Limit{Name: "l", Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 5, Per: time.Hour}}, key("remote_addr")))
	c.TLS = &config.TLS{Cert: cert, Key: keyFile}
	c.Routes[0].Upstream = toNode(strings.Replace(up.URL, "https", "http", 1))
	c.Routes[0].Upstream.Scheme = "https"
	w := serve(t, newScript(), c)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	w.client, w.base = &http.Client{Transport: transport, Timeout: 30 * time.Second}, "https://"+w.g.Addr().String()
	codes := make(chan int, 9)
	for range 9 {
		go func() {
			res, err := w.client.Get(w.base + "/")
			if err != nil {
				t.Error(err)
				codes <- 0
				return
			}
			defer res.Body.Close()
			b, _ := io.ReadAll(res.Body)
			if res.ProtoMajor != 2 || res.StatusCode == 200 && string(b) != "HTTP/2.0 https "+w.g.Addr().String() {
				t.Errorf("got %s %s", res.Proto, b)
			}
			codes <- res.StatusCode
		}()
	}
	got := map[int]int{}
	for range 9 {
		got[<-codes]++
	}
	if got[200] != 5 || got[429] != 4 {
		t.Errorf("got %v", got)
	}

	// A certificate that nobody vouches for is refused when verification is asked for.
	c.Routes[0].Upstream.TLSVerify = true
	c.Limits, c.Routes[0].Limits = nil, nil
	if err := w.g.Reload(c); err != nil {
		t.Fatal(err)
	}
	if r := w.get("/"); r.code != 502 {
		t.Errorf("verify: got %d", r.code)
	}
}

// TestClientThatDoesNotRead is let go, and the upstream with it.
func TestClientThatDoesNotRead(t *testing.T) {
	w := serve(t, nil, oneRoute(), WithClientTimeout(50*time.Millisecond))
	gone := make(chan struct{})
	h := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		defer close(gone)
		piece := make([]byte, 1<<20)
		for {
			if _, err := rw.Write(piece); err != nil {
				return
			}
		}
	})
	w.handler.Store(&h)
	conn, err := net.Dial("tcp", w.g.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		t.Error("the upstream still sends to a client that does not read")
	}
}

// TestEarlyAnswer: an upstream that answers before it has the body does not keep the
// connection of a client that sends no more of it.
func TestEarlyAnswer(t *testing.T) {
	w := serve(t, nil, oneRoute(), WithClientTimeout(50*time.Millisecond))
	h := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Connection", "close")
		rw.WriteHeader(http.StatusRequestEntityTooLarge)
	})
	w.handler.Store(&h)
	conn, err := net.Dial("tcp", w.g.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nhalf")
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d", res.StatusCode)
	}
	if _, err := io.ReadAll(in); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("got %v, want the connection closed", err)
	}
}

// TestConnect: no tunnel leads through the gateway.
func TestConnect(t *testing.T) {
	w := serve(t, nil, oneRoute())
	conn, err := net.Dial("tcp", w.g.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 404 || w.passed.Load() != 0 {
		t.Errorf("got %d", res.StatusCode)
	}
}

// TestH2C: HTTP/2 without TLS is spoken where it is turned on, and only there.
func TestH2C(t *testing.T) {
	for _, on := range []bool{true, false} {
		var opts []Option
		if on {
			opts = append(opts, WithH2C())
		}
		w := serve(t, nil, oneRoute(), opts...)
		transport := &http.Transport{Protocols: new(http.Protocols)}
		transport.Protocols.SetUnencryptedHTTP2(true)
		res, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Get(w.base + "/")
		if on != (err == nil) {
			t.Errorf("h2c %v: got %v", on, err)
		}
		if err == nil {
			if res.ProtoMajor != 2 {
				t.Errorf("got %s", res.Proto)
			}
			res.Body.Close()
		}
		transport.CloseIdleConnections()
	}
}

// TestRefusedBodies: a refusal does not wait for a body that never comes, asks for none,
// and keeps the connection of a client whose short body has come.
func TestRefusedBodies(t *testing.T) {
	c := oneRoute()
	c.Routes[0].URIs = []string{"/elsewhere"}
	w := serve(t, nil, c)
	for _, test := range []struct {
		request string
		keeps   bool
	}{
		{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody", true},
		{"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", true},
		{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf", false},
		{"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", false},
		{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\nhalf", false},
		{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n", false},
	} {
		conn, err := net.Dial("tcp", w.g.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, test.request)
		in := bufio.NewReader(conn)
		for range 2 {
			res, err := http.ReadResponse(in, nil)
			if err != nil || res.StatusCode != 404 || res.Close == test.keeps {
				t.Fatalf("%q: got %v, %v", test.request, res, err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			if !test.keeps {
				if _, err := in.ReadByte(); err == nil {
					t.Errorf("%q: more after the answer", test.request)
				}
				break
			}
			fmt.Fprint(conn, test.request)
		}
		conn.Close()
	}
}

// TestExpectContinue: a client that waits to be asked for its body is asked.
func TestExpectContinue(t *testing.T) {
	w := serve(t, nil, oneRoute())
	w.echo(func(r *http.Request) string {
		b, _ := io.ReadAll(r.Body)
		return string(b)
	})
	conn, err := net.Dial("tcp", w.g.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); !strings.Contains(line, "100") {
		t.Fatalf("got %q, %v", line, err)
	}
	if line, _ := in.ReadString('\n'); line != "\r\n" {
		t.Fatalf("got %q", line)
	}
	fmt.Fprint(conn, "body")
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(res.Body); string(b) != "body" || res.Close {
		t.Errorf("got %q, close %v", b, res.Close)
	}
}
