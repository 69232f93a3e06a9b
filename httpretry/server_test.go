package httpretry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/httplimit"
	"github.com/escapement-io/escapement/memstore"
)

// form tells waits in one of the forms that clients meet.
type form func(h http.Header)

func inSeconds(http.Header) {}

// asDate is Retry-After as a date of a server whose clock is years behind.
func asDate(h http.Header) {
	now := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	h.Set("Date", now.Format(http.TimeFormat))
	if s, err := strconv.Atoi(h.Get("Retry-After")); err == nil {
		h.Set("Retry-After", now.Add(time.Duration(s)*time.Second).Format(http.TimeFormat))
	}
}

func fieldsOnly(h http.Header) { h.Del("Retry-After") }

// rewriting has the headers pass a form before they are sent.
type rewriting struct {
	http.ResponseWriter
	form form
}

func (w rewriting) WriteHeader(status int) {
	if status == http.StatusTooManyRequests {
		w.form(w.Header())
	}
	w.ResponseWriter.WriteHeader(status)
}

// A client that waits as told is admitted: our middleware, memstore, real sockets.
func TestToldWaitIsEnough(t *testing.T) {
	for _, tt := range []struct {
		name  string
		style httplimit.Style
		form  form
	}{
		{"seconds", httplimit.IETF, inSeconds},
		{"date", httplimit.None, asDate},
		{"RateLimit", httplimit.IETF, fieldsOnly},
		{"draft03", httplimit.Draft03, fieldsOnly},
		{"X", httplimit.X, fieldsOnly},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store := memstore.New()
			defer store.Close()
			lim, err := escapement.New(store, escapement.Limit{Name: "s", Rate: escapement.PerSecond(1), Burst: 1})
			if err != nil {
				t.Fatal(err)
			}
			var allowed, seen atomic.Int64
			limited := httplimit.New(lim, httplimit.Everyone, httplimit.WithStyle(tt.style))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				allowed.Add(1)
				_, _ = io.Copy(w, r.Body)
			}))
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				seen.Add(1)
				limited.ServeHTTP(rewriting{w, tt.form}, r)
			}))
			defer srv.Close()

			var events []Event
			tr, err := New(srv.Client().Transport, Config{Spread: -1, Observe: func(e Event) { events = append(events, e) }})
			if err != nil {
				t.Fatal(err)
			}
			client := &http.Client{Transport: tr, Timeout: time.Minute}
			const requests = 2
			for i := range requests {
				text := fmt.Sprint("body ", i)
				r, err := http.NewRequest("PUT", srv.URL, strings.NewReader(text))
				if err != nil {
					t.Fatal(err)
				}
				resp, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != 200 || string(b) != text || err != nil {
					t.Errorf("status %d, %q, %v", resp.StatusCode, b, err)
				}
			}
			for _, e := range events {
				if e.Attempt != 1 || e.Status != 429 || e.Told != time.Second || e.Reason != Told {
					t.Errorf("refused after waiting as told: %+v", e)
				}
			}
			// A machine slow enough to let the bucket refill refuses less often.
			if n := int64(len(events)); n == 0 || n >= requests || allowed.Load() != requests || seen.Load() != requests+n {
				t.Errorf("%d refusals, %d of %d attempts allowed", n, allowed.Load(), seen.Load())
			}
		})
	}
}

// An executed request whose reply is lost is repeated only if that does nothing twice.
func TestLostReply(t *testing.T) {
	for _, tt := range []struct {
		method, key string
		want        int64
		reasons     string
	}{
		{"POST", "", 1, "unsafe"},
		{"PATCH", "", 1, "unsafe"},
		{"POST", "payment-17", 2, "backoff"},
		{"GET", "", 2, "backoff"},
		{"PUT", "", 2, "backoff"},
		{"DELETE", "", 2, "backoff"},
	} {
		var done atomic.Int64
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if done.Add(1) > 1 {
				return
			}
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			conn.Close()
		}))
		var events []Event
		tr, err := New(&http.Transport{DisableKeepAlives: true}, Config{Backoff: time.Millisecond, Observe: func(e Event) { events = append(events, e) }})
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequest(tt.method, srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if tt.key != "" {
			r.Header.Set("Idempotency-Key", tt.key)
		}
		resp, err := tr.RoundTrip(r)
		if (err == nil) != (tt.want == 2) {
			t.Errorf("%s %s: %v", tt.method, tt.key, err)
		}
		if err == nil {
			resp.Body.Close()
		}
		if got := reasons(events); done.Load() != tt.want || got != tt.reasons {
			t.Errorf("%s %s: done %d times, want %d; reasons %q", tt.method, tt.key, done.Load(), tt.want, got)
		}
		srv.Close()
	}
}

// What no server has seen may be sent again, whatever it is. What cannot get better is
// not.
func TestFailuresToConnect(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + l.Addr().String()
	l.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	for _, tt := range []struct{ name, url, reasons string }{
		{"nobody listens", nobody, "backoff backoff backoff attempts"},
		{"a certificate of somebody", secure.URL, "final"},
		{"no TLS at all", strings.Replace(plain.URL, "http:", "https:", 1), "final"},
		{"no such protocol", "gopher://127.0.0.1/", "unsafe"},
	} {
		var events []Event
		tr, err := New(&http.Transport{}, Config{Backoff: time.Millisecond, Observe: func(e Event) { events = append(events, e) }})
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequest("POST", tt.url, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := tr.RoundTrip(r); err == nil {
			t.Errorf("%s: %v", tt.name, resp.Status)
		} else if got := reasons(events); got != tt.reasons {
			t.Errorf("%s: reasons %q, want %q (%v)", tt.name, got, tt.reasons, err)
		}
		tr.CloseIdleConnections()
	}
}

func TestFailures(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	dial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	unknown := &net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}
	for _, tt := range []struct {
		ended bool // the caller is gone
		err   error
		want  string
	}{
		{false, dial, "unsent"},
		{false, fmt.Errorf("wrapped: %w", dial), "unsent"},
		{false, &net.OpError{Op: "proxyconnect", Err: dial}, "unsent"},
		{false, unknown, "done"},
		{false, &net.OpError{Op: "read", Err: errors.New("reset")}, "doubtful"},
		{false, io.EOF, "doubtful"},
		{true, dial, "done"},
		{true, io.EOF, "done"},
	} {
		names := []string{"done", "refused", "unsent", "doubtful"}
		ctx := context.Background()
		if tt.ended {
			ctx = gone
		}
		if got := names[failure(ctx, tt.err)]; got != tt.want {
			t.Errorf("%v: %s, want %s", tt.err, got, tt.want)
		}
	}
}

func TestIdempotent(t *testing.T) {
	for _, tt := range []struct {
		method string
		h      http.Header
		want   bool
	}{
		{"", nil, true}, {"GET", nil, true}, {"HEAD", nil, true}, {"OPTIONS", nil, true}, {"TRACE", nil, true}, {"PUT", nil, true}, {"DELETE", nil, true},
		{"POST", nil, false}, {"PATCH", nil, false}, {"CONNECT", nil, false}, {"get", nil, false}, {"QUERY", nil, false},
		{"POST", headers("Idempotency-Key: 17"), true},
		{"POST", headers("X-Idempotency-Key: 17"), true},
		{"POST", headers("Idempotency-Key: "), false},
		{"POST", headers("Idempotency-Key: ", "X-Idempotency-Key: 17"), true},
		{"POST", http.Header{"Idempotency-Key": nil}, true},
		{"POST", headers("Key: 17"), false},
	} {
		if got := idempotent(&http.Request{Method: tt.method, Header: tt.h}); got != tt.want {
			t.Errorf("%s %v: %v, want %v", tt.method, tt.h, got, tt.want)
		}
	}
}

// Twenty workers are told the same 600 s. They come back spread over a tenth of it, none
// too early; with the spread turned off all at once.
func TestWorkersToldTheSame(t *testing.T) {
	for _, spread := range []int{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			store := memstore.New()
			defer store.Close()
			lim, err := escapement.New(store, escapement.Limit{Name: "job", Algorithm: escapement.FixedWindow, Align: escapement.FirstUse, Rate: escapement.Rate{Count: 1, Per: 10 * time.Minute}})
			if err != nil {
				t.Fatal(err)
			}
			h := httplimit.New(lim, httplimit.Everyone)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			waits := make(chan time.Duration, 100)
			tr, err := New(handler{h}, Config{Spread: spread, MaxAttempts: 2, MaxWait: time.Hour, Budget: Budget{Burst: 20}, Observe: func(e Event) {
				if e.Retry {
					waits <- e.Wait
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			if resp, err := tr.RoundTrip(request(t, "GET", nil)); err != nil || resp.StatusCode != 200 {
				t.Fatal(resp, err)
			}
			time.Sleep(time.Millisecond)
			for range 20 {
				go func() { _, _ = tr.RoundTrip(request(t, "GET", nil)) }()
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			close(waits)
			moments, n := map[time.Duration]bool{}, 0
			for w := range waits {
				n++
				moments[w.Truncate(time.Second)] = true
				if w < 600*time.Second || w > 660*time.Second {
					t.Errorf("waits %v", w)
				}
			}
			if n != 20 || (len(moments) >= 10) != (spread == 0) || spread < 0 && len(moments) != 1 {
				t.Errorf("%d workers come back in %d different seconds", n, len(moments))
			}
		})
	}
}

// handler is a transport that asks a handler.
type handler struct{ h http.Handler }

func (h handler) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.h.ServeHTTP(w, r)
	return w.Result(), nil
}
