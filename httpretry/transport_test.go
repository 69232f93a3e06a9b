package httpretry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement-io/escapement/clock"
)

// script is a transport in memory that plays steps, the last one for ever.
type script struct {
	mu     sync.Mutex
	steps  []step
	n      int
	bodies []string // as each attempt delivered it
	fixed  int      // attempts whose body the base could not rewind
}

// step reads so much of a body (0 is all of it), takes so long, and answers.
type step struct {
	reads  int64
	takes  time.Duration
	status int
	lines  []string
	err    error
	body   io.ReadCloser
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	st := s.steps[min(s.n, len(s.steps)-1)]
	s.n++
	s.mu.Unlock()
	if r.Body != nil {
		defer r.Body.Close()
		most := int64(1 << 40)
		if st.reads > 0 {
			most = st.reads
		}
		b, err := io.ReadAll(io.LimitReader(r.Body, most))
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.bodies = append(s.bodies, string(b))
		if r.GetBody == nil {
			s.fixed++
		}
		s.mu.Unlock()
	}
	select {
	case <-time.After(st.takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if st.err != nil {
		return nil, st.err
	}
	body, length := st.body, int64(-1)
	if body == nil {
		body, length = io.NopCloser(strings.NewReader("said")), 4
	}
	return &http.Response{StatusCode: st.status, Header: headers(st.lines...), Body: body, ContentLength: length, Request: r}, nil
}

func refused(seconds int) step {
	return step{status: 429, lines: []string{fmt.Sprint("Retry-After: ", seconds)}}
}

var fine = step{status: 200}

// told is a transport over a script that adds nothing to waits and notes its events.
func told(t *testing.T, c Config, steps ...step) (*Transport, *script, *[]Event) {
	t.Helper()
	s, events := &script{steps: steps}, &[]Event{}
	if c.Random == nil {
		c.Random = func() uint64 { return 0 }
	}
	if c.Observe == nil {
		c.Observe = func(e Event) { *events = append(*events, e) }
	}
	tr, err := New(s, c)
	if err != nil {
		t.Fatal(err)
	}
	return tr, s, events
}

func request(t *testing.T, method string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, "http://API.example:8080/path?secret=1", body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func reasons(events []Event) string {
	var s []string
	for _, e := range events {
		s = append(s, fmt.Sprint(e.Reason))
	}
	return strings.Join(s, " ")
}

func within(t *testing.T, want time.Duration, f func()) {
	t.Helper()
	began := clock.Mono()
	f()
	if got := clock.Since(began); got != want {
		t.Errorf("took %v, want %v", got, want)
	}
}

func expect(t *testing.T, resp *http.Response, err error, status int) {
	t.Helper()
	if err != nil {
		t.Fatalf("status %d wanted: %v", status, err)
	}
	b, err := io.ReadAll(resp.Body)
	if resp.StatusCode != status || string(b) != "said" || err != nil {
		t.Errorf("status %d, body %q, %v; want %d", resp.StatusCode, b, err, status)
	}
	resp.Body.Close()
}

func TestWaitsAsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, _, events := told(t, Config{}, refused(2), refused(5), fine)
		within(t, 7*time.Second, func() {
			resp, err := tr.RoundTrip(request(t, "POST", nil))
			expect(t, resp, err, 200)
		})
		want := []Event{
			{Method: "POST", Host: "http://api.example:8080", Attempt: 1, Status: 429, Told: 2 * time.Second, Retry: true, Wait: 2 * time.Second, Reason: Told},
			{Method: "POST", Host: "http://api.example:8080", Attempt: 2, Status: 429, Told: 5 * time.Second, Retry: true, Wait: 5 * time.Second, Reason: Told},
		}
		if !reflect.DeepEqual(*events, want) {
			t.Errorf("%+v", *events)
		}
	})
}

// What is given up is returned as it came, at once.
func TestGivesUp(t *testing.T) {
	reset := errors.New("connection reset by peer")
	ms := time.Millisecond
	for _, tt := range []struct {
		name    string
		c       Config
		method  string
		steps   []step
		left    time.Duration
		takes   time.Duration
		status  int
		reasons string
	}{
		{"not a refusal", Config{}, "GET", []step{{status: 404}}, 0, 0, 404, ""},
		{"a bug of the server", Config{}, "GET", []step{{status: 500}}, 0, 0, 500, ""},
		{"the fourth attempt", Config{}, "GET", []step{refused(1)}, 0, 3 * time.Second, 429, "told told told attempts"},
		{"a wait too long", Config{}, "GET", []step{refused(61)}, 0, 0, 429, "max_wait"},
		{"a wait for ever", Config{}, "GET", []step{{status: 429, lines: []string{"Retry-After: 9223372037"}}}, 0, 0, 429, "max_wait"},
		{"a wait beyond the deadline", Config{}, "GET", []step{refused(5)}, 5 * time.Second, 0, 429, "deadline"},
		{"a second wait beyond it", Config{}, "GET", []step{refused(2)}, 3500 * ms, 2 * time.Second, 429, "told deadline"},
		{"no time left for what an attempt takes", Config{}, "GET", []step{{status: 429, takes: 600 * ms, lines: []string{"Retry-After: 1"}}}, 2 * time.Second, 600 * ms, 429, "deadline"},
		{"503 that may have been done", Config{}, "POST", []step{{status: 503}}, 0, 0, 503, "unsafe"},
		{"503 that was not", Config{}, "POST", []step{{status: 503, lines: []string{"Retry-After: 1"}}, fine}, 0, time.Second, 200, "told"},
		{"429 without a wait", Config{}, "POST", []step{{status: 429}}, 0, 0, 429, "unsafe"},
		{"429 without a wait, idempotent", Config{}, "DELETE", []step{{status: 429}, fine}, 0, 0, 200, "backoff"},
		{"502", Config{}, "PATCH", []step{{status: 502}}, 0, 0, 502, "unsafe"},
		{"an error", Config{}, "POST", []step{{err: reset}}, 0, 0, 0, "unsafe"},
		{"an error, idempotent", Config{}, "PUT", []step{{err: reset}, fine}, 0, 0, 200, "backoff"},
		{"no retries", Config{MaxAttempts: 1}, "GET", []step{refused(1)}, 0, 0, 429, "attempts"},
		{"no budget", Config{Budget: Budget{Burst: 1, Percent: -1, Floor: -1}}, "GET", []step{refused(1)}, 0, time.Second, 429, "told budget"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr, _, events := told(t, tt.c, tt.steps...)
				ctx := context.Background()
				if tt.left > 0 {
					var cancel func()
					ctx, cancel = context.WithDeadline(ctx, clock.Deadline(tt.left))
					defer cancel()
				}
				within(t, tt.takes, func() {
					resp, err := tr.RoundTrip(request(t, tt.method, nil).WithContext(ctx))
					if tt.status == 0 {
						if err != reset || resp != nil { //nolint:errorlint // as it is, not wrapped
							t.Errorf("%v, %v", resp, err)
						}
						return
					}
					expect(t, resp, err, tt.status)
				})
				if got := reasons(*events); got != tt.reasons {
					t.Errorf("reasons %q, want %q", got, tt.reasons)
				}
			})
		})
	}
}

// A timeout of the client is a deadline of the request.
func TestClientTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, s, _ := told(t, Config{}, refused(3))
		client := &http.Client{Transport: tr, Timeout: 4 * time.Second}
		within(t, 3*time.Second, func() {
			resp, err := client.Do(request(t, "GET", nil))
			expect(t, resp, err, 429)
		})
		if s.n != 2 {
			t.Errorf("%d attempts", s.n)
		}
	})
}

func TestCancelledWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, s, _ := told(t, Config{}, refused(10))
		ctx, cancel := context.WithCancelCause(context.Background())
		gone := errors.New("the user went home")
		time.AfterFunc(3*time.Second, func() { cancel(gone) })
		closed := 0
		r := request(t, "POST", io.NopCloser(strings.NewReader("x"))).WithContext(ctx)
		r.GetBody = func() (io.ReadCloser, error) {
			return &watched{Reader: strings.NewReader("x"), closed: &closed}, nil
		}
		within(t, 3*time.Second, func() {
			if resp, err := tr.RoundTrip(r); resp != nil || err != gone { //nolint:errorlint // as it is, not wrapped
				t.Errorf("%v, %v", resp, err)
			}
		})
		if s.n != 1 || closed != 1 {
			t.Errorf("%d attempts, body of the second closed %d times", s.n, closed)
		}
	})
}

// Backoff doubles and is uniform between nothing and that.
func TestBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, _, events := told(t, Config{MaxAttempts: 9, MaxBackoff: time.Second, Random: func() uint64 { return 1 << 63 }}, step{status: 502})
		resp, err := tr.RoundTrip(request(t, "", nil))
		expect(t, resp, err, 502)
		var waits []time.Duration
		for _, e := range *events {
			waits = append(waits, e.Wait/time.Millisecond)
		}
		if want := []time.Duration{50, 100, 200, 400, 500, 500, 500, 500, 0}; !reflect.DeepEqual(waits, want) {
			t.Errorf("waits %d ms, want %d", waits, want)
		}
		if e := (*events)[0]; e.Method != "GET" || e.Told != -1 || e.Status != 502 {
			t.Errorf("%+v", e)
		}
	})
}

// If everything is refused the server sees a tenth more, whoever asks how often.
func TestBudgetOfATransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, s, _ := told(t, Config{Observe: func(Event) {}}, refused(1))
		var all sync.WaitGroup
		const requests = 20_000
		for range requests {
			all.Go(func() {
				resp, err := tr.RoundTrip(request(t, "GET", nil))
				if err != nil || resp.StatusCode != 429 {
					t.Errorf("%v, %v", resp, err)
				}
			})
			time.Sleep(500 * time.Microsecond)
		}
		all.Wait()
		// The end of the last waits earns a retry a second.
		if retries := s.n - requests; retries < requests/10 || retries > requests/10+10+5 {
			t.Errorf("%d retries of %d requests", retries, requests)
		}
	})
}

func TestHostsHaveTheirOwnBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, _, events := told(t, Config{MaxAttempts: 2, Budget: Budget{Burst: 1, Percent: -1, Floor: -1}}, refused(1))
		for _, url := range []string{"http://a/", "HTTP://A/x", "http://b/", "https://a/"} {
			r, err := http.NewRequest("GET", url, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := tr.RoundTrip(r)
			expect(t, resp, err, 429)
		}
		if got, want := reasons(*events), "told attempts budget told attempts told attempts"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	_, err := New(nil, Config{MaxAttempts: 101, MaxBody: -2, Budget: Budget{Percent: 101}})
	want := "httpretry: MaxAttempts is 101: use 1 to 100, or 0 for 4; Budget.Percent is 101: use -1 to 100, or 0 for 10; MaxBody is -2: use -1 to 67108864, or 0 for 65536"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestBaseThatReturnsNothing(t *testing.T) {
	tr, err := New(instant{}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := tr.RoundTrip(request(t, "GET", nil)); resp != nil || err == nil {
		t.Errorf("%v, %v", resp, err)
	}
}
