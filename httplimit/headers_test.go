package httplimit

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/escapement-io/escapement"
)

func fields(style Style, ds ...Named) http.Header {
	h := http.Header{}
	WriteHeaders(h, style, ds...)
	return h
}

func TestIETFOnTheWire(t *testing.T) {
	monthly := escapement.Limit{Algorithm: escapement.FixedWindow, Rate: escapement.Rate{Count: 1000}, Align: escapement.Month}
	tests := []struct {
		name          string
		limit         escapement.Limit
		take          []int64
		policy, state string
	}{
		{"bucket", escapement.Limit{Rate: escapement.PerMinute(60)}, []int64{10},
			`"test";q=60;w=60`, `"test";r=50;t=10`},
		{"burst above the rate", escapement.Limit{Rate: escapement.PerSecond(50), Burst: 100}, []int64{1},
			`"test";q=100;w=2`, `"test";r=99;t=1`},
		{"refused: t is the wait of the claim", escapement.Limit{Rate: escapement.PerMinute(60)}, []int64{60, 5},
			`"test";q=60;w=60`, `"test";r=0;t=5`},
		{"refused although some is left", escapement.Limit{Rate: escapement.PerMinute(60)}, []int64{58, 5},
			`"test";q=60;w=60`, `"test";r=2;t=3`},
		{"no wait helps", escapement.Limit{Rate: escapement.PerMinute(60)}, []int64{61},
			`"test";q=60;w=60`, `"test";r=60`},
		{"headroom is taken off", escapement.Limit{Algorithm: escapement.FixedWindow, Rate: escapement.PerSecond(2000), Headroom: 20}, []int64{1},
			`"test";q=1600;w=1`, `"test";r=1599;t=1`},
		{"untouched", escapement.Limit{Rate: escapement.PerMinute(60)}, []int64{0},
			`"test";q=60;w=60`, `"test";r=60;t=0`},
		{"half a second has no w", escapement.Limit{Algorithm: escapement.RollingWindow, Rate: escapement.Rate{Count: 5, Per: 500 * time.Millisecond}}, []int64{1},
			`"test";q=5`, `"test";r=4;t=1`},
		{"refill in no whole number of seconds has no w", escapement.Limit{Rate: escapement.PerSecond(3), Burst: 10}, []int64{3},
			`"test";q=10`, `"test";r=7;t=1`},
		{"a month has no w", monthly, []int64{1},
			`"test";q=1000`, `"test";r=999;t=1894400`},
		{"rolling", escapement.Limit{Algorithm: escapement.RollingWindow, Rate: escapement.Rate{Count: 5, Per: 10 * time.Second}}, []int64{3, 3},
			`"test";q=5;w=10`, `"test";r=2;t=10`},
		{"pacing", escapement.Limit{Algorithm: escapement.Pacing, Rate: escapement.PerSecond(2), MaxDelay: 2 * time.Second}, []int64{1},
			`"test";q=5`, `"test";r=4;t=1`},
		{"16 digits do not fit", escapement.Limit{Algorithm: escapement.FixedWindow, Rate: escapement.PerSecond(1<<53 - 1)}, []int64{1},
			`"test";q=999999999999999;w=1`, `"test";r=999999999999999;t=1`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			lim := limiter(t, newLineStore(t), tt.limit)
			var d *escapement.Decision
			for _, n := range tt.take {
				d = decision(t, lim, n)
			}
			h := fields(IETF, Named{Decision: d})
			if got := h.Get("RateLimit-Policy"); got != tt.policy {
				t.Errorf("policy %s, want %s", got, tt.policy)
			}
			if got := h.Get("RateLimit"); got != tt.state {
				t.Errorf("state %s, want %s", got, tt.state)
			}
		})
	}
}

func TestSeveralLimitsInARefusal(t *testing.T) {
	store := newLineStore(t)
	slow := limiter(t, store, escapement.Limit{Name: "slow", Rate: escapement.PerHour(100)})
	fast := limiter(t, store, escapement.Limit{Name: "fast", Rate: escapement.PerSecond(1)})
	shadow := limiter(t, store, escapement.Limit{Name: "shadow", Rate: escapement.PerHour(1), Shadow: true})
	decision(t, shadow, 1)
	decision(t, fast, 1)
	ds := []Named{
		{Decision: decision(t, slow, 1)}, {Decision: decision(t, fast, 1)},
		{Decision: decision(t, shadow, 1)}, {Decision: &escapement.Decision{}}, {},
	}
	h := fields(IETF, ds...)
	// The slow limit is as new in 36 s, but whoever comes back after a second is served.
	if got, want := h.Get("RateLimit"), `"slow";r=99, "fast";r=0;t=1`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := h.Get("RateLimit-Policy"), `"slow";q=100;w=3600, "fast";q=1;w=1`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if w := Wait(ds...); w != time.Second {
		t.Errorf("wait %v, want 1s", w)
	}
	h = fields(Draft03, ds...)
	if want := (http.Header{"Ratelimit-Limit": {"1"}, "Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {"1"}}); !reflect.DeepEqual(h, want) {
		t.Errorf("draft03: %v, want that of fast, %v", h, want)
	}
}

func TestTriples(t *testing.T) {
	lim := limiter(t, newLineStore(t), escapement.Limit{Rate: escapement.PerMinute(60)})
	d := Named{Decision: decision(t, lim, 10)}
	never := Named{Decision: decision(t, lim, 61)}
	custom := http.Header{}
	Triple{Limit: "X-Quota", Reset: "X-Quota-Reset"}.Write(custom, d)
	prefixed := http.Header{}
	XTriple("Jack").Write(prefixed, d)
	tests := []struct {
		name      string
		got, want http.Header
	}{
		{"draft03", fields(Draft03, d), http.Header{"Ratelimit-Limit": {"60"}, "Ratelimit-Remaining": {"50"}, "Ratelimit-Reset": {"10"}}},
		{"x", fields(X, d), http.Header{"X-Ratelimit-Limit": {"60"}, "X-Ratelimit-Remaining": {"50"}, "X-Ratelimit-Reset": {"10"}}},
		{"x prefixed", prefixed, http.Header{"X-Jack-Ratelimit-Limit": {"60"}, "X-Jack-Ratelimit-Remaining": {"50"}, "X-Jack-Ratelimit-Reset": {"10"}}},
		{"own names", custom, http.Header{"X-Quota": {"60"}, "X-Quota-Reset": {"10"}}},
		{"no wait helps", fields(X, never), http.Header{"X-Ratelimit-Limit": {"60"}, "X-Ratelimit-Remaining": {"50"}, "X-Ratelimit-Reset": {"10"}}},
		{"none", fields(None, d), http.Header{}},
		{"nothing decided", fields(X), http.Header{}},
	}
	for _, tt := range tests {
		if !reflect.DeepEqual(tt.got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

func TestWhatNoStoreAnswered(t *testing.T) {
	store := newLineStore(t)
	lim := limiter(t, store, escapement.Limit{Rate: escapement.PerMinute(60)})
	store.err = errAway
	d := Named{Decision: decision(t, lim, 1)}
	if h := fields(IETF, d); h.Get("RateLimit-Policy") != `"test";q=60;w=60` || h.Values("RateLimit") != nil {
		t.Errorf("ietf: %v", h)
	}
	if h := fields(X, d); len(h) != 0 {
		t.Errorf("x: %v", h)
	}
}

func TestOneNameTwice(t *testing.T) {
	store := newLineStore(t)
	a := limiter(t, store, escapement.Limit{Name: "a", Rate: escapement.PerMinute(60)})
	b := limiter(t, store, escapement.Limit{Name: "b", Rate: escapement.PerMinute(30)})
	da, db := decision(t, a, 1), decision(t, b, 1)
	for _, ds := range [][]Named{{{"n", da}, {"n", db}}, {{"n", db}, {"n", da}}, {{"n", db}, {"n", db}}} {
		if got, want := fields(IETF, ds...).Get("RateLimit"), `"n";r=29;t=2`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestLinesOfTwoLayersAddUp(t *testing.T) {
	lim := limiter(t, newLineStore(t), escapement.Limit{Rate: escapement.PerMinute(60)})
	h := http.Header{}
	WriteHeaders(h, IETF, Named{"outer", decision(t, lim, 1)})
	WriteHeaders(h, IETF, Named{"inner", decision(t, lim, 1)})
	if list, err := parseList(h.Values("RateLimit")); err != nil || len(list) != 2 {
		t.Errorf("%v: %v, %v", h, list, err)
	}
}

func TestStyleNames(t *testing.T) {
	for _, s := range []Style{IETF, Draft03, X, None} {
		if back, ok := ParseStyle(s.String()); !ok || back != s {
			t.Errorf("%v is read as %v, %v", s, back, ok)
		}
	}
	if _, ok := ParseStyle("draft-03"); ok {
		t.Error("an unknown name was read")
	}
	if s := Style(9).String(); s != "style(9)" {
		t.Error(s)
	}
}

// Any name comes out as a list that parses, and different names as different strings.
func TestNamesAreStrings(t *testing.T) {
	lim := limiter(t, newLineStore(t), escapement.Limit{Rate: escapement.PerMinute(60)})
	d := decision(t, lim, 1)
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.SliceOfN(rapid.Byte(), 1, 20)
		a, b := string(bytes.Draw(t, "a")), string(bytes.Draw(t, "b"))
		h := fields(IETF, Named{a, d}, Named{b, d})
		for _, field := range []string{"RateLimit", "RateLimit-Policy"} {
			list, err := parseList(h.Values(field))
			if err != nil {
				t.Fatalf("%s: %v", h.Get(field), err)
			}
			switch {
			case a == b && len(list) != 1, a != b && (len(list) != 2 || list[0].name == list[1].name):
				t.Fatalf("%q and %q became %v", a, b, list)
			}
		}
	})
}

func TestPlainNamesStayAsTheyAre(t *testing.T) {
	for name, want := range map[string]string{
		"per-client_2": `"per-client_2"`,
		`say "hi"\`:    `"say \"hi\"\\"`,
		"50 %":         `"50 %25"`,
		"größe\r\n":    `"gr%C3%B6%C3%9Fe%0D%0A"`,
	} {
		if got := string(appendName(nil, name)); got != want {
			t.Errorf("%q became %s, want %s", name, got, want)
		}
	}
}

// Over random limits and histories the fields parse, agree with the decision, and in a
// refusal no t lies beyond Retry-After.
func TestFieldsAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		store := newLineStore(t)
		var lims []*escapement.Limiter
		for _, name := range []string{"a", "b"} {
			lims = append(lims, limiter(t, store, drawLimit(rt, name)))
		}
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			store.advance(time.Duration(rapid.Int64Range(0, 5_000_000).Draw(rt, "µs")) * time.Microsecond)
			var ds []Named
			for _, l := range lims {
				ds = append(ds, Named{Decision: decision(t, l, rapid.Int64Range(0, 12).Draw(rt, "cost"))})
			}
			agree(rt, ds)
		}
	})
}

func drawLimit(t *rapid.T, name string) escapement.Limit {
	l := escapement.Limit{
		Name:      name,
		Algorithm: rapid.SampledFrom([]escapement.Algorithm{escapement.TokenBucket, escapement.FixedWindow, escapement.SlidingWindow, escapement.RollingWindow, escapement.Pacing}).Draw(t, "algorithm"),
		Rate: escapement.Rate{
			Count: rapid.Int64Range(1, 10).Draw(t, "count"),
			Per:   time.Duration(rapid.Int64Range(1, 40).Draw(t, "per")) * 250 * time.Millisecond,
		},
	}
	if l.Algorithm == escapement.Pacing {
		l.MaxDelay = time.Duration(rapid.Int64Range(0, 4).Draw(t, "max delay")) * time.Second
	}
	return l
}

func agree(t *rapid.T, ds []Named) {
	h := fields(IETF, ds...)
	wait := Wait(ds...)
	WriteRetryAfter(h, wait)
	list, err := parseList(h.Values("RateLimit"))
	if err != nil || len(list) != len(ds) {
		t.Fatalf("%v: %v", h, err)
	}
	policies, err := parseList(h.Values("RateLimit-Policy"))
	if err != nil || len(policies) != len(ds) {
		t.Fatalf("%v: %v", h, err)
	}
	for i, it := range list {
		d := ds[i].Decision
		if it.params["r"] != d.Remaining() || policies[i].params["q"] != d.Limit() {
			t.Fatalf("%v beside remaining %d, limit %d", h, d.Remaining(), d.Limit())
		}
		reset, has := it.params["t"]
		if !d.Allowed && d.RetryAfter() != escapement.Never && !has {
			t.Fatalf("%v: a refusal says no t", h)
		}
		if !has {
			continue
		}
		if wait > 0 && wait != escapement.Never && reset > max(1, seconds(wait)) {
			t.Fatalf("%v: t is beyond Retry-After", h)
		}
		if !d.Allowed && time.Duration(reset)*time.Second < d.RetryAfter() {
			t.Fatalf("%v: t is before the wait of %v", h, d.RetryAfter())
		}
	}
	if wait == escapement.Never && h.Get("Retry-After") != "" || strings.HasPrefix(h.Get("Retry-After"), "0") {
		t.Fatalf("%v beside a wait of %v", h, wait)
	}
}
