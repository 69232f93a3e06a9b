package httpretry

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// watched counts what is read of it and how often it is closed.
type watched struct {
	io.Reader
	read   int64
	closed *int
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	w.read += int64(n)
	return n, err
}

func (w *watched) Close() error { *w.closed++; return nil }

// Each attempt sends the body from its beginning or there is none.
func TestBodies(t *testing.T) {
	const text = "0123456789"
	half := step{status: 429, reads: 5, lines: []string{"Retry-After: 1"}}
	for _, tt := range []struct {
		name    string
		c       Config
		body    func(r *http.Request)
		steps   []step
		status  int
		bodies  []string
		reasons string
	}{
		{"with GetBody", Config{}, nil, []step{refused(1), fine}, 200, []string{text, text}, "told"},
		{"half of it read, then all", Config{}, nil, []step{half, fine}, 200, []string{text[:5], text}, "told"},
		{"kept in memory", Config{}, func(r *http.Request) { r.GetBody = nil }, []step{half, refused(1), fine}, 200, []string{text[:5], text, text}, "told told"},
		{"just small enough to keep", Config{MaxBody: 10}, func(r *http.Request) { r.GetBody = nil }, []step{refused(1), fine}, 200, []string{text, text}, "told"},
		{"too long to keep", Config{MaxBody: 9}, func(r *http.Request) { r.GetBody = nil }, []step{half, fine}, 429, []string{text[:5]}, "body"},
		{"keeping turned off", Config{MaxBody: -1}, func(r *http.Request) { r.GetBody = nil }, []step{half, fine}, 429, []string{text[:5]}, "body"},
		{"of unknown length", Config{}, func(r *http.Request) { r.GetBody, r.ContentLength = nil, -1 }, []step{half, fine}, 429, []string{text[:5]}, "body"},
		{"of no stated length", Config{}, func(r *http.Request) { r.GetBody, r.ContentLength = nil, 0 }, []step{half, fine}, 429, []string{text[:5]}, "body"},
		{"GetBody fails", Config{}, func(r *http.Request) {
			r.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("file is gone") }
		}, []step{half, fine}, 429, []string{text[:5]}, "body"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr, s, events := told(t, tt.c, tt.steps...)
				r := request(t, "POST", strings.NewReader(text))
				closed := 0
				r.Body = &watched{Reader: r.Body, closed: &closed}
				if tt.body != nil {
					tt.body(r)
				}
				before := *r
				resp, err := tr.RoundTrip(r)
				expect(t, resp, err, tt.status)
				if !reflect.DeepEqual(s.bodies, tt.bodies) {
					t.Errorf("bodies %q, want %q", s.bodies, tt.bodies)
				}
				if got := reasons(*events); got != tt.reasons {
					t.Errorf("reasons %q, want %q", got, tt.reasons)
				}
				if closed != 1 {
					t.Errorf("body closed %d times", closed)
				}
				if tt.status == 200 && s.fixed > 0 {
					t.Errorf("%d attempts without GetBody", s.fixed)
				}
				if r.Body != before.Body || (r.GetBody == nil) != (before.GetBody == nil) || r.ContentLength != before.ContentLength {
					t.Error("the request was changed")
				}
			})
		})
	}
}

func TestBodyOfAnotherLength(t *testing.T) {
	broken := errors.New("disk error")
	for _, tt := range []struct {
		body io.Reader
		want error
	}{
		{strings.NewReader("012345678"), errLength},
		{strings.NewReader("0123456789x"), errLength},
		{strings.NewReader(""), errLength},
		{io.MultiReader(strings.NewReader("0123"), &failing{broken}), broken},
	} {
		tr, s, _ := told(t, Config{}, fine)
		closed := 0
		r := request(t, "POST", nil)
		r.Body, r.ContentLength = &watched{Reader: tt.body, closed: &closed}, 10
		if resp, err := tr.RoundTrip(r); resp != nil || !errors.Is(err, tt.want) {
			t.Errorf("%v, %v, want %v", resp, err, tt.want)
		}
		if s.n != 0 || closed != 1 {
			t.Errorf("%d attempts, body closed %d times", s.n, closed)
		}
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// stalled never says another byte; Close ends the read.
type stalled struct{ done chan struct{} }

func (s *stalled) Read([]byte) (int, error) { <-s.done; return 0, io.ErrClosedPipe }
func (s *stalled) Close() error {
	select {
	case <-s.done:
	default:
		close(s.done)
	}
	return nil
}

func TestAnswersAreDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct{ length, read int64 }{{0, 0}, {1000, 1000}, {maxDrain, maxDrain}, {maxDrain * 2, maxDrain + 1}} {
			closed := 0
			b := &watched{Reader: bytes.NewReader(make([]byte, tt.length)), closed: &closed}
			first := refused(1)
			first.body = b
			tr, _, _ := told(t, Config{}, first, fine)
			resp, err := tr.RoundTrip(request(t, "GET", nil))
			expect(t, resp, err, 200)
			if b.read != tt.read || closed != 1 {
				t.Errorf("of %d bytes %d were read, closed %d times", tt.length, b.read, closed)
			}
		}
		first := refused(30)
		first.body = &stalled{make(chan struct{})}
		tr, _, _ := told(t, Config{}, first, fine)
		within(t, 30*time.Second, func() {
			resp, err := tr.RoundTrip(request(t, "GET", nil))
			expect(t, resp, err, 200)
		})
	})
}

var seedFlag = flag.Uint64("seed", 0, "replay the random tests from this seed")

// Whatever body a request has and whatever is read of it: no attempt sends a part of it
// that is not its beginning, and a later one sends all of it.
func TestNothingIsSentByHalves(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("replay: go test ./httpretry -run %s -seed %d", t.Name(), seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	synctest.Test(t, func(t *testing.T) {
		again := 0
		for range 2000 {
			text := strings.Repeat("abcdefghij", rnd.IntN(30))
			var steps []step
			for range 3 {
				steps = append(steps, step{status: 429, reads: 1 + rnd.Int64N(300), lines: []string{"Retry-After: 1"}})
			}
			tr, s, _ := told(t, Config{MaxBody: 200}, append(steps, fine)...)
			r := request(t, "POST", strings.NewReader(text))
			if rnd.IntN(2) == 0 {
				r.GetBody = nil
			}
			if rnd.IntN(3) == 0 && text != "" {
				r.ContentLength = -1
			}
			resp, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for i, b := range s.bodies {
				if !strings.HasPrefix(text, b) || int64(len(b)) < min(steps[min(i, 2)].reads, int64(len(text))) && i < 3 {
					t.Fatalf("seed %d: attempt %d sent %q of %q", seed, i+1, b, text)
				}
			}
			switch {
			case resp.StatusCode == 429 && s.n == 1:
			case resp.StatusCode == 200 && s.n == 4 && (text == "" || s.bodies[3] == text):
				again++
			default:
				t.Fatalf("seed %d: status %d after %d attempts, bodies %q", seed, resp.StatusCode, s.n, s.bodies)
			}
		}
		if again < 200 {
			t.Errorf("only %d were sent again", again)
		}
	})
}
