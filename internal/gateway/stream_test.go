package gateway

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// rawStream is a client of HTTP/2 that opens a window of so many bytes and asks once.
func rawStream(t *testing.T, addr, path string, window uint32) (net.Conn, *http2.Framer) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	var head bytes.Buffer
	enc := hpack.NewEncoder(&head)
	for _, f := range []hpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "http"}, {Name: ":authority", Value: "x"}, {Name: ":path", Value: path},
	} {
		if err := enc.WriteField(f); err != nil {
			t.Fatal(err)
		}
	}
	f := http2.NewFramer(conn, conn)
	_, err = io.WriteString(conn, http2.ClientPreface)
	err = errors.Join(err, f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}),
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes(), EndStream: true, EndHeaders: true}))
	if err != nil {
		t.Fatal(err)
	}
	return conn, f
}

// TestStreamThatOpensNoWindow: a client whose connection works, but that takes in nothing
// of its stream, is let go, the upstream with it, also for the last bytes of a response.
func TestStreamThatOpensNoWindow(t *testing.T) {
	w := serve(t, nil, oneRoute(), WithH2C(), WithClientTimeout(50*time.Millisecond))
	gone := make(chan struct{}, 1)
	h := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/short" {
			_, _ = io.WriteString(rw, "short")
			return
		}
		piece := make([]byte, 1<<20)
		for {
			if _, err := rw.Write(piece); err != nil {
				gone <- struct{}{}
				return
			}
		}
	})
	w.handler.Store(&h)
	for _, path := range []string{"/short", "/endless"} {
		conn, f := rawStream(t, w.g.Addr().String(), path, 1)
		reset := make(chan bool, 1)
		go func() {
			for {
				frame, err := f.ReadFrame()
				if _, ok := frame.(*http2.RSTStreamFrame); ok || err != nil {
					reset <- ok
					return
				}
			}
		}()
		select {
		case ok := <-reset:
			if !ok {
				t.Errorf("%s: the connection ended instead of the stream", path)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s: the stream is held for a client that takes in nothing", path)
		}
		conn.Close()
	}
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		t.Error("the upstream still sends to a client that does not read")
	}
}

// TestTimersEndWithTheHandler: net/http takes an HTTP/2 response apart when its handler
// returns, and a timer that acted on it afterwards would end the process.
func TestTimersEndWithTheHandler(t *testing.T) {
	late := make(chan func(), 2)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stream := newWatchedStream(w, time.Hour)
		body := watchBody(w, r, time.Hour)
		late <- body.giveUp
		late <- func() { stream.timer.Reset(0); <-time.After(10 * time.Millisecond) }
		_, _ = io.WriteString(stream, "ok")
		stream.end()
		body.release()
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	res, err := s.Client().Post(s.URL, "text/plain", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if res.ProtoMajor != 2 || string(b) != "ok" {
		t.Fatalf("got %s %q", res.Proto, b)
	}
	s.CloseClientConnections() // the handler has returned for certain
	for range 2 {
		(<-late)()
	}
}
