package drill

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/httplimit"
	"github.com/escapement-io/escapement/memstore"
)

func ceiling() CeilingOptions {
	return CeilingOptions{URL: "http://127.0.0.1:1/", Limit: Limit{Count: 100, Per: time.Second, Burst: 100}, Rate: 300, For: 10 * time.Second, Refused: 429}
}

// load is what a limiter that admits so many at so many instants would answer.
func load(o CeilingOptions, admits func(at algo.Mono) bool) []answer {
	var out []answer
	for i := range int(o.For.Seconds()) * o.Rate {
		a := answer{sent: algo.Mono(i) * algo.Mono(time.Second) / algo.Mono(o.Rate), status: 200}
		if !admits(a.sent) {
			a.status = o.Refused
		}
		out = append(out, a)
	}
	return out
}

// window admits n in each second, from its start on, after a burst.
func window(n, burst int) func(algo.Mono) bool {
	left, second := burst, algo.Mono(0)
	return func(at algo.Mono) bool {
		if s := at / algo.Mono(time.Second); s != second {
			second, left = s, n
		}
		left--
		return left >= 0
	}
}

func TestCeilingIsJudged(t *testing.T) {
	o := ceiling()
	bucket := exact{Limit: o.Limit}
	for _, c := range []struct {
		name   string
		admits func(algo.Mono) bool
		want   string // of a problem; empty: none
	}{
		{"a bucket", func(at algo.Mono) bool { return bucket.take(int64(at)) }, ""},
		{"windows", window(100, 100), ""},
		{"3 % too many", window(103, 103), ""},
		{"4 % too many", window(104, 104), "are right"},
		{"4 % too few", window(96, 96), "are right"},
		{"no limit", func(algo.Mono) bool { return true }, "none refused"},
		{"a limit that holds too late", window(100, 100_000), ""},
		{"nobody", func(algo.Mono) bool { return false }, "0 admitted"},
	} {
		got := o.judge(load(o, c.admits), algo.Mono(o.For))
		if got.Held() != (c.want == "") || !strings.Contains(strings.Join(got.Problems, "\n"), c.want) {
			t.Errorf("%s: %+v, want %q", c.name, got, c.want)
		}
	}
	failing := load(o, window(100, 100))
	for i := range failing {
		if i%50 == 0 {
			failing[i].status = 502
		}
	}
	if got := o.judge(failing, algo.Mono(o.For)); got.Held() || got.Failed != 60 || !strings.Contains(got.Problems[0], "60 of 3000") {
		t.Errorf("%+v", got)
	}
}

func TestCeilingOptionsAreChecked(t *testing.T) {
	for want, change := range map[string]func(*CeilingOptions){
		"not one of a gateway":  func(o *CeilingOptions) { o.URL = "gateway" },
		"requests a second":     func(o *CeilingOptions) { o.Rate = 100_000 },
		"hardly exceed":         func(o *CeilingOptions) { o.Rate = 110 },
		"at least 1.75s":        func(o *CeilingOptions) { o.For = time.Second },
		"status 200":            func(o *CeilingOptions) { o.Refused = 200 },
		"count 0":               func(o *CeilingOptions) { o.Limit.Count = 0 },
		"and at most 10m0s":     func(o *CeilingOptions) { o.For = time.Hour },
		"at least 50m0.5s":      func(o *CeilingOptions) { o.Limit.Per = 40 * time.Minute; o.Limit.Burst = 150; o.Rate = 300 },
		"a burst of 100 per 0s": func(o *CeilingOptions) { o.Limit.Per = 0 },
	} {
		o := ceiling()
		change(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A gateway under a limit of a hundred a second is measured to have one, and one of another
// limit not.
func TestCeilingOfAServer(t *testing.T) {
	store := memstore.New()
	defer store.Close()
	limiter, err := escapement.New(store, Limit{Count: 100, Per: time.Second, Burst: 20}.limit())
	if err != nil {
		t.Fatal(err)
	}
	byName := func(r *http.Request) (string, bool) { return r.Header.Get("X-Consumer"), true }
	srv := httptest.NewServer(httplimit.New(limiter, byName)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer srv.Close()
	for count, held := range map[int64]bool{100: true, 50: false} {
		o := ceiling()
		o.URL, o.For, o.Limit = srv.URL, 3500*time.Millisecond, Limit{Count: count, Per: time.Second, Burst: 20}
		o.Header = http.Header{"X-Consumer": {time.Duration(count).String()}}
		got, err := MeasureCeiling(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if got.Held() != held || got.Failed != 0 || got.Counted < 2 {
			t.Errorf("drilled as %d/s: %+v", count, got)
		}
	}
}
