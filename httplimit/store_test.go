package httplimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// lineStore is a store whose line is set by hand, so that every field is known.
type lineStore struct {
	now    algo.Store
	states map[string]algo.State
	err    error // if set, nothing is decided
}

func newLineStore() *lineStore {
	return &lineStore{now: 1_000_000_000_000_000, states: map[string]algo.State{}}
}

func (s *lineStore) advance(d time.Duration) { s.now += algo.Store(d / time.Microsecond) }

func (s *lineStore) Decide(_ context.Context, requests []escapement.Request, answers []escapement.Answer) {
	for i, q := range requests {
		a := &answers[i]
		a.Parts = a.Parts[:0]
		if s.err != nil {
			a.Outcome, a.Err = escapement.NotRun, s.err
			continue
		}
		a.Outcome, a.Admitted = escapement.Decided, true
		trial := map[string]algo.State{}
		for _, c := range q.Claims {
			id := c.Plan.Limit().Name + " " + c.Key
			state, seen := trial[id]
			if !seen {
				state = s.states[id]
				state.Ring = append(make([]uint32, 0, c.Plan.Core().Slots()), state.Ring...)[:c.Plan.Core().Slots()]
			}
			v := s.one(&state, c)
			trial[id] = state
			a.Admitted = a.Admitted && (v.Admitted || c.Plan.Limit().Shadow)
			a.Parts = append(a.Parts, escapement.Decide(c.Plan, v, escapement.Exact))
		}
		if a.Admitted {
			for id, state := range trial {
				s.states[id] = state
			}
		}
	}
}

func (s *lineStore) one(state *algo.State, c escapement.Claim) algo.Verdict {
	switch c.Mode {
	case escapement.Refund:
		return c.Plan.Core().Refund(state, s.now, c.Receipt)
	case escapement.Peek:
		return c.Plan.Core().Peek(state, s.now, c.Cost)
	case escapement.Take:
		return c.Plan.Core().Take(state, s.now, c.Cost)
	case escapement.TakeUpTo, escapement.Charge:
	}
	panic(fmt.Sprintf("lineStore: mode %d is not needed here", c.Mode))
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
