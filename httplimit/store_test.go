package httplimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/memstore"
)

// lineStore is a memory store whose line is set by hand, so that every field is known.
type lineStore struct {
	*memstore.Store
	line  atomic.Int64
	err   error    // if set, nothing is decided
	asked []string // the keys of single claims
}

func newLineStore(t testing.TB) *lineStore {
	s := &lineStore{}
	s.line.Store(1_000_000_000_000_000)
	s.Store = memstore.New(memstore.WithClock(s))
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Now dates the store's records.
func (s *lineStore) Now() algo.Store { return algo.Store(s.line.Load()) }

func (s *lineStore) advance(d time.Duration) { s.line.Add(d.Microseconds()) }

func (s *lineStore) Decide(ctx context.Context, requests []escapement.Request, answers []escapement.Answer) {
	if s.err == nil {
		s.Store.Decide(ctx, requests, answers)
		return
	}
	for i := range answers {
		answers[i] = escapement.Answer{Outcome: escapement.NotRun, Err: s.err}
	}
}

func (s *lineStore) DecideOne(ctx context.Context, c escapement.Claim) (escapement.Decision, error) {
	s.asked = append(s.asked, c.Key)
	if s.err != nil {
		return escapement.Decision{}, s.err
	}
	return s.Store.DecideOne(ctx, c)
}

func (s *lineStore) TakeOne(ctx context.Context, p *escapement.Plan, key string, cost int64) (escapement.Decision, error) {
	return s.DecideOne(ctx, escapement.Claim{Plan: p, Key: key, Cost: cost})
}

var errAway = fmt.Errorf("%w: gone for lunch", escapement.ErrStoreUnavailable)

func limiter(t testing.TB, s escapement.Store, l escapement.Limit) *escapement.Limiter {
	t.Helper()
	if l.Name == "" {
		l.Name = "test"
	}
	if l.Algorithm == 0 {
		l.Algorithm = escapement.TokenBucket
	}
	lim, err := escapement.New(s, l)
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

// decision is the answer of lim to a claim of n units; the key is always the same.
func decision(t testing.TB, lim *escapement.Limiter, n int64) *escapement.Decision {
	t.Helper()
	d, err := lim.Take(context.Background(), "k", n)
	if err != nil && !errors.Is(err, escapement.ErrStoreUnavailable) {
		t.Fatal(err)
	}
	return &d
}

// request is what a client at addr sends; headers are pairs of name and value.
func request(addr string, headers ...string) *http.Request {
	r := httptest.NewRequest("GET", "http://example.org/", nil)
	r.RemoteAddr = addr
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte("hello"))
})

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
