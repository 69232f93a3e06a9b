package cases

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/fallback"
	"github.com/escapement-io/escapement/httplimit"
	"github.com/escapement-io/escapement/memstore"
)

// sentence checks an expectation that is stated in words. It returns what was found
// instead, empty if the words hold.
type sentence func(ctx context.Context, c *Case, b Backend) (found string, err error)

// sentences are the expectations in words that can be checked on any store. Others are
// skipped: to guess at a meaning would be to pass what nobody checked.
var sentences = map[string]sentence{
	"Each is rejected as an invalid cost (HTTP 400 or gRPC InvalidArgument) or handled exactly; state unchanged on rejection; not counted as store failure.":                   invalidCosts,
	"All configured headers present on each answer; RateLimit-Remaining: 0 present; reset >= 1 while limited.":                                                                 headersOnEach,
	"10,000-byte and invalid UTF-8 keys: a normal decision; two long keys that differ in the last byte are different clients.":                                                 hostileKeys,
	"After 1,000,000 one-shot keys and two idle periods: entries back to near 0, heap back within 20 %; the key that was used up before the flood is still refused during it.": floodOfKeys,
	"Third refused; exactly one key in the store.":                                               routeTemplate,
	"Request at 2100 allowed; the state of the old definition is ignored and expires by itself.": newWindow,
	everyPath: lifetimes,
	noKeyLeft: nothingLeft,
	"Start-up check reports it; the configured fail policy decides requests; no silent use of node time.":                         noTime,
	"policy closed admits 0 of 100; local admits at most the node's local capacity; open admits 100 and each is marked degraded.": silent,
	"10 of 1000 pass; the health call answers SERVING within its deadline throughout.":                                            nil,
	"Either the sixth request passes, or the documentation says that sleep is not counted; never more than 5 in one window.":      nil,
}

const noKeyLeft = "At 180000 ms no key of the limiter is left in the store."

func (c *Case) sentence() sentence { return sentences[c.ExpectText] }

// unchecked says why an expectation in words is not checked.
func (c *Case) unchecked() string {
	text := strings.ToLower(c.ExpectText)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	switch {
	case text == "":
		return "states nothing that could be checked"
	case has("pttl", "ttl ", " db "):
		return "needs a Redis server: its expectation is about keys as Redis holds them"
	case c.Kind == "service_ops", has("ready", "serving"):
		return "needs the running service with its readiness and health endpoints"
	case c.Store == "redis", c.Kind == "redis_failure", has("script"):
		return "needs a Redis server: its expectation, in words, is about how one is spoken to"
	}
	return "its expectation is in words that no check is written for"
}

// begin starts a store for a limit of the check's own.
func begin(b Backend, c *Case, l escapement.Limit) (*World, Session, *escapement.Limiter, error) {
	w, err := newWorld(c)
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := b.Start(w)
	if err != nil {
		return nil, nil, nil, err
	}
	limiter, err := escapement.New(s.Store(), l)
	return w, s, limiter, err
}

// end closes the store of a check.
func end(s Session, err *error) { *err = errors.Join(*err, s.Close()) }

// without asks 100 times by one policy, and counts the answers that do not say that the
// store did not decide.
func without(ctx context.Context, s escapement.Store, policy escapement.OnFailure, capacity int64) (admitted, unmarked int64, err error) {
	local := memstore.New()
	defer func() { err = errors.Join(err, local.Close()) }()
	l, err := escapement.New(fallback.New(s, fallback.NewPolicy(local, fallback.Fixed(1))),
		escapement.Limit{Name: "policy-" + strings.ReplaceAll(policy.String(), "_", "-"), Rate: escapement.PerHour(capacity), OnFailure: policy})
	for range 100 {
		if err != nil {
			break
		}
		var d escapement.Decision
		if d, err = l.Take(ctx, "k", 1); d.Allowed {
			admitted++
		}
		if d.Basis() != escapement.Fallback {
			unmarked++
		}
	}
	return admitted, unmarked, err
}

// outages counts decisions that a store failed to make.
type outages struct{ n int }

func (o *outages) Decided(_ *escapement.Claim, d *escapement.Decision, _ error) {
	if d.Basis() == escapement.Fallback {
		o.n++
	}
}

func invalidCosts(ctx context.Context, c *Case, b Backend) (found string, err error) {
	w, s, l, err := begin(b, c, escapement.Limit{Name: "costs", Rate: escapement.PerMinute(10)})
	if err != nil {
		return "", err
	}
	defer end(s, &err)
	var out outages
	l = escapement.NewLimiter(s.Store(), l.Plan(), escapement.WithObserver(&out))
	for i := range c.Events {
		e := &c.Events[i]
		w.at(e.TMS, e)
		// What is not a whole number cannot be said to the library at all: its costs are
		// integers. What reads costs from text refuses it with the same error.
		a := failed(escapement.ErrCost)
		if !e.Cost.Bad {
			_, err := l.Take(ctx, "k", e.Cost.Units)
			if err == nil {
				return fmt.Sprintf("event %d: a cost of %d was accepted", i, e.Cost.Units), nil
			}
			a = failed(err)
		}
		if a.err != "invalid_cost" {
			return fmt.Sprintf("event %d: %s", i, a.err), nil
		}
		d, err := l.Peek(ctx, "k")
		if err != nil || d.Remaining() != 10 {
			return fmt.Sprintf("event %d: %d of 10 left, error %v", i, d.Remaining(), err), nil
		}
	}
	if out.n > 0 {
		return fmt.Sprintf("%d counted as failures of the store", out.n), nil
	}
	return "", nil
}

func headersOnEach(_ context.Context, c *Case, b Backend) (found string, err error) {
	w, s, l, err := begin(b, c, escapement.Limit{Name: "h", Algorithm: escapement.FixedWindow, Rate: escapement.PerSecond(1)})
	if err != nil {
		return "", err
	}
	defer end(s, &err)
	h := httplimit.New(l, httplimit.Everyone, httplimit.WithStyle(httplimit.Draft03))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, x := range []struct {
		t      int64
		status int
	}{{0, 200}, {999, 429}, {1000, 200}} {
		w.at(x.t, &Event{})
		r := httptest.NewRecorder()
		h.ServeHTTP(r, httptest.NewRequest("GET", "/", nil))
		if r.Code != x.status {
			return fmt.Sprintf("at %d: status %d, want %d", x.t, r.Code, x.status), nil
		}
		reset, _ := strconv.Atoi(r.Header().Get("RateLimit-Reset"))
		if r.Header().Get("RateLimit-Limit") != "1" || r.Header().Get("RateLimit-Remaining") != "0" || reset < 1 {
			return fmt.Sprintf("at %d: header %v", x.t, r.Header()), nil
		}
	}
	return "", nil
}

func hostileKeys(ctx context.Context, c *Case, b Backend) (found string, err error) {
	_, s, l, err := begin(b, c, escapement.Limit{Name: "keys", Algorithm: escapement.FixedWindow, Rate: escapement.PerMinute(1)})
	if err != nil {
		return "", err
	}
	defer end(s, &err)
	long := strings.Repeat("k", 9_999)
	for _, key := range []string{long + "a", long + "b", "\xff\xfe", "\xff", "a\r\nb", ""} {
		for i, want := range []bool{true, false} {
			if d, err := l.Take(ctx, key, 1); err != nil || d.Allowed != want {
				return fmt.Sprintf("attempt %d with a key of %d bytes, %.10q: allowed %v, error %v", i+1, len(key), key, d.Allowed, err), nil
			}
		}
	}
	return "", nil
}

func routeTemplate(_ context.Context, c *Case, b Backend) (found string, err error) {
	w, s, l, err := begin(b, c, escapement.Limit{Name: "verify", Algorithm: escapement.FixedWindow, Rate: escapement.PerMinute(2)})
	if err != nil {
		return "", err
	}
	defer end(s, &err)
	pattern := func(r *http.Request) (string, bool) { return r.Pattern, r.Pattern != "" }
	key := httplimit.Composite(pattern, httplimit.RemoteAddr(httplimit.Clients{}))
	mux := http.NewServeMux()
	mux.Handle("/verify/{code}", httplimit.New(l, key)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	for i := range c.Events {
		e := &c.Events[i]
		w.at(e.TMS, e)
		r := httptest.NewRecorder()
		mux.ServeHTTP(r, httptest.NewRequest("GET", e.Path, nil))
		if refused := r.Code == http.StatusTooManyRequests; refused != (i >= 2) {
			return fmt.Sprintf("event %d: status %d", i, r.Code), nil
		}
	}
	if n := s.Keys(); n != 1 {
		return fmt.Sprintf("%d keys in the store", n), nil
	}
	return "", nil
}

var countPer = regexp.MustCompile(`^count (\d+) per (\d+)$`)

// newWindow runs events whose notes change the limit: "count 10 per 1000", in ms.
func newWindow(ctx context.Context, c *Case, b Backend) (found string, err error) {
	w, s, l, err := begin(b, c, escapement.Limit{Name: "w", Algorithm: escapement.FixedWindow, Rate: escapement.PerMinute(1)})
	if err != nil {
		return "", err
	}
	defer end(s, &err)
	for i := range c.Events {
		e := &c.Events[i]
		for j := range e.Times {
			w.at(e.TMS+j*e.EveryMS, e)
			if m := countPer.FindStringSubmatch(e.Config); m != nil {
				count, _ := strconv.ParseInt(m[1], 10, 32)
				per, _ := strconv.ParseInt(m[2], 10, 32)
				p, err := escapement.Limit{Name: "w", Algorithm: escapement.FixedWindow,
					Rate: escapement.Rate{Count: count, Per: time.Duration(per) * time.Millisecond}}.Compile()
				if err != nil {
					return err.Error(), nil
				}
				s.Announce(p)
				l = escapement.NewLimiter(s.Store(), p)
			}
			if e.Op != "allow" {
				continue
			}
			if d, err := l.Take(ctx, "k", 1); err != nil || !d.Allowed {
				return fmt.Sprintf("event %d: refused, error %v", i, err), nil
			}
		}
	}
	return "", nil
}

// The store's own goroutine sweeps in real time, a cycle in 4 seconds.
const (
	sweepEvery = 50 * time.Millisecond
	sweepTries = 600
)

// shrunk waits until the store holds at most n keys, and gives up after 30 seconds.
func shrunk(ctx context.Context, s Session, n int64) bool {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for range sweepTries {
		if s.Keys() <= n {
			return true
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
	return false
}

func nothingLeft(ctx context.Context, c *Case, b Backend) (found string, err error) {
	w, err := newWorld(c)
	if err != nil {
		return "", err
	}
	s, err := b.Start(w)
	if err != nil {
		return "", err
	}
	defer end(s, &err)
	k := &course{c: c, w: w, s: s, limiters: map[string]*escapement.Limiter{}}
	if f := k.compile(); f != nil {
		return f.String(), nil
	}
	for i := range c.Events {
		if a, ok := s.(aging); ok && i > 0 {
			if err := a.Age(ctx, c.Events[i].TMS-c.Events[i-1].TMS); err != nil {
				return "", err
			}
		}
		if _, err := k.event(ctx, &c.Events[i]); err != nil {
			return err.Error(), nil
		}
	}
	if !shrunk(ctx, s, 0) {
		return fmt.Sprintf("%d keys left", s.Keys()), nil
	}
	return "", nil
}

const (
	floodKeys = 1_000_000
	heapSlack = 4 << 20 // bytes that the process itself comes and goes by
)

func floodOfKeys(ctx context.Context, c *Case, b Backend) (found string, err error) {
	w, s, l, err := begin(b, c, escapement.Limit{Name: "flood", Rate: escapement.PerMinute(10)})
	if err != nil {
		return "", err
	}
	defer end(s, &err)
	before := heap()
	if d, err := l.Take(ctx, "used up", 10); err != nil || !d.Allowed {
		return fmt.Sprintf("before the flood: allowed %v, error %v", d.Allowed, err), nil
	}
	for i := range floodKeys {
		w.at(int64(i)/1000, &Event{})
		if d, err := l.Take(ctx, strconv.Itoa(i), 1); err != nil || !d.Allowed {
			return fmt.Sprintf("key %d of the flood: allowed %v, error %v", i, d.Allowed, err), nil
		}
		if i%1000 != 0 {
			continue
		}
		if d, err := l.Take(ctx, "used up", 1); err != nil || d.Allowed {
			return fmt.Sprintf("the used-up key during the flood: allowed %v, error %v", d.Allowed, err), nil
		}
	}
	w.at(180_000, &Event{})
	if !shrunk(ctx, s, 100) {
		return fmt.Sprintf("%d keys left", s.Keys()), nil
	}
	if after := heap(); after > before+before/5+heapSlack {
		return fmt.Sprintf("heap of %d bytes before, %d after", before, after), nil
	}
	return "", nil
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
