package httpretry

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement/internal/retry"
)

const sunday = "Sun, 06 Nov 1994 08:49:37 GMT" // Unix 784111777

// headers reads lines such as "Retry-After: 1".
func headers(lines ...string) http.Header {
	h := http.Header{}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		h.Add(name, value)
	}
	return h
}

// What a 429 with these fields tells to wait. -1 is nothing.
var forms = []struct {
	lines []string
	want  time.Duration
}{
	// Retry-After in seconds
	{[]string{"Retry-After: 0"}, 0},
	{[]string{"Retry-After: 1"}, time.Second},
	{[]string{"Retry-After: 058"}, 58 * time.Second},
	{[]string{"Retry-After:  7 \t"}, 7 * time.Second},
	{[]string{"Retry-After: 2952"}, 2952 * time.Second},
	{[]string{"Retry-After: 9223372036"}, longest},
	{[]string{"Retry-After: 9223372037"}, longest},
	{[]string{"Retry-After: 18446744073709551617"}, longest},
	{[]string{"Retry-After: " + strings.Repeat("9", 1000)}, longest},
	{[]string{"Retry-After: 0.499"}, time.Second},
	{[]string{"Retry-After: 1.0"}, time.Second},
	{[]string{"Retry-After: 1.5"}, 2 * time.Second},
	{[]string{"Retry-After: 1."}, -1},
	{[]string{"Retry-After: .5"}, -1},
	{[]string{"Retry-After: 1.2.3"}, -1},
	{[]string{"Retry-After: 1,5"}, -1},
	{[]string{"Retry-After: -1"}, -1},
	{[]string{"Retry-After: +1"}, -1},
	{[]string{"Retry-After: 1e3"}, -1},
	{[]string{"Retry-After: 0x10"}, -1},
	{[]string{"Retry-After: 1s"}, -1},
	{[]string{"Retry-After: 1 2"}, -1},
	{[]string{"Retry-After: ١"}, -1},
	{[]string{"Retry-After: soon"}, -1},
	{[]string{"Retry-After: "}, -1},
	{[]string{"Retry-After: 5", "Retry-After: 9"}, 9 * time.Second},
	{[]string{"Retry-After: soon", "Retry-After: 3"}, 3 * time.Second},

	// Retry-After as a date
	{[]string{"Date: " + sunday, "Retry-After: Sun, 06 Nov 1994 08:49:47 GMT"}, 10 * time.Second},
	{[]string{"Date: " + sunday, "Retry-After: Sunday, 06-Nov-94 08:49:47 GMT"}, 10 * time.Second},
	{[]string{"Date: " + sunday, "Retry-After: Sun Nov  6 08:49:47 1994"}, 10 * time.Second},
	{[]string{"Date: Sunday, 06-Nov-94 08:49:37 GMT", "Retry-After: Sun, 06 Nov 1994 08:50:37 GMT"}, time.Minute},
	{[]string{"Date: " + sunday, "Retry-After: " + sunday}, 0},
	{[]string{"Date: " + sunday, "Retry-After: Sun, 06 Nov 1994 08:49:36 GMT"}, 0},
	{[]string{"Date: " + sunday, "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"}, longest},
	{[]string{"Date: Fri, 31 Dec 9999 23:59:59 GMT", "Retry-After: " + sunday}, 0},
	{[]string{"Retry-After: Sun, 06 Nov 1994 08:49:47 GMT"}, -1}, // no Date to measure by
	{[]string{"Date: today", "Retry-After: Sun, 06 Nov 1994 08:49:47 GMT"}, -1},
	{[]string{"Date: " + sunday, "Date: " + sunday, "Retry-After: Sun, 06 Nov 1994 08:49:47 GMT"}, -1},
	{[]string{"Date: " + sunday, "Retry-After: Sun, 06 Nov 1994 08:49:47 UTC"}, -1},
	{[]string{"Date: " + sunday, "Retry-After: 1994-11-06T08:49:47Z"}, -1},
	{[]string{"Date: " + sunday, "Retry-After: Sun, 31 Feb 1994 08:49:47 GMT"}, -1},

	// RateLimit, drafts 08 to 11
	{[]string{`RateLimit: "default";r=0;t=30`}, 30 * time.Second},
	{[]string{`RateLimit: "default";r=0;t=0`}, 0},
	{[]string{`RateLimit: "a";r=56;t=12, "b";r=0;t=2952`}, 2952 * time.Second},
	{[]string{`RateLimit: "a";r=56;t=3000, "b";r=0;t=12`}, 12 * time.Second},
	{[]string{`RateLimit: "a";r=0;t=12`, `RateLimit: "b";r=0;t=13`}, 13 * time.Second},
	{[]string{`RateLimit: "cost-5";r=3;t=4`}, 4 * time.Second},
	{[]string{`RateLimit: "a\"b\\";r=0;pk=:cHJvZA==:;t=6`}, 6 * time.Second},
	{[]string{`RateLimit: "a"; r=0; t=6;x;y=?1;z=1.25;s="q";w=tok/en;d=@17;u=%"f%c3"`}, 6 * time.Second},
	{[]string{`RateLimit: "a";r=0;t=6;t=8`}, 8 * time.Second},
	{[]string{`RateLimit: "a";r=0;t=999999999999999`}, longest},
	{[]string{`RateLimit: "a";r=0;t=6, (1 "x";y);r=0;t=99, tok;r=0;t=99, 3;r=0;t=99`}, 6 * time.Second},
	{[]string{`RateLimit: "a";r=0`}, -1},
	{[]string{`RateLimit: "a";t=6`}, -1},
	{[]string{`RateLimit: "a";r=0;t=-6`}, -1},
	{[]string{`RateLimit: "a";r=0;t=1.5`}, -1},
	{[]string{`RateLimit: "a";r=0;t="6"`}, -1},
	{[]string{`RateLimit: "a";r=0;t=9999999999999999`}, -1}, // 16 digits
	{[]string{`RateLimit: "a";r=0;t=6,`}, -1},
	{[]string{`RateLimit: "a";r=0;t=6 "b"`}, -1},
	{[]string{`RateLimit: "a;r=0;t=6`}, -1},
	{[]string{`RateLimit: "a";r=0;t=6, "b";R=1`}, -1},
	{[]string{`RateLimit: limit=100, remaining=0, reset=6`}, -1}, // before draft 08
	{[]string{`RateLimit: "a";r=0;t=6`, "Age: 3"}, -1},           // from a cache
	{[]string{`RateLimit: "a";r=0;t=6` + strings.Repeat(" ", maxField)}, -1},
	{[]string{`RateLimit: ` + strings.Repeat(`"a";r=0;t=6,`, maxMembers) + `"a";r=0;t=6`}, -1},

	// the triples
	{[]string{"RateLimit-Limit: 10", "RateLimit-Remaining: 0", "RateLimit-Reset: 58"}, 58 * time.Second},
	{[]string{"RateLimit-Limit: 100, 100;w=60", "RateLimit-Remaining: 0", "RateLimit-Reset: 50"}, 50 * time.Second},
	{[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 58"}, 58 * time.Second},
	{[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 0.2"}, time.Second},
	{[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 784111787", "Date: " + sunday}, 784111787 * time.Second}, // too small for an instant
	{[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1796058010", "Date: Mon, 30 Nov 2026 17:00:00 GMT"}, 10 * time.Second},
	{[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1796058009001", "Date: Mon, 30 Nov 2026 17:00:00 GMT"}, 10 * time.Second},
	{[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1796057000", "Date: Mon, 30 Nov 2026 17:00:00 GMT"}, 0},
	{[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1796058010"}, -1},
	{[]string{"X-RateLimit-Reset: 58"}, -1},
	{[]string{"X-RateLimit-Remaining: -1", "X-RateLimit-Reset: 58"}, -1},
	{[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: -58"}, -1},
	{[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 58", "X-RateLimit-Reset: 59"}, -1},
	{[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 58", "Age: 0"}, -1},

	// one before the other
	{[]string{"Retry-After: 3", `RateLimit: "a";r=0;t=6`, "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 9"}, 3 * time.Second},
	{[]string{"Retry-After: soon", `RateLimit: "a";r=0;t=6`}, 6 * time.Second},
	{[]string{`RateLimit: "a";r=0;t=x y`, "RateLimit-Remaining: 0", "RateLimit-Reset: 7", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 9"}, 7 * time.Second},
	{[]string{"RateLimit-Remaining: 0", "RateLimit-Reset: never", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 9"}, 9 * time.Second},
	{[]string{"RateLimit-Policy: \"a\";q=10;w=60"}, -1},
	{nil, -1},
}

func TestForms(t *testing.T) {
	for _, f := range forms {
		h := headers(f.lines...)
		a := judge(context.Background(), &http.Response{StatusCode: 429, Header: h}, nil)
		got := time.Duration(-1)
		if a.Told {
			got = a.Wait
		}
		if got != f.want {
			t.Errorf("%.200q: %v, want %v", f.lines, got, f.want)
		}
		if _, promised := retryAfter(h); promised != (a.Kind == retry.Refused) {
			t.Errorf("%.200q: kind %v", f.lines, a.Kind)
		}
	}
	if len(forms) < 60 {
		t.Errorf("%d forms", len(forms))
	}
}

func TestKinds(t *testing.T) {
	after, fields := headers("Retry-After: 2"), headers(`RateLimit: "a";r=0;t=3`)
	for _, tt := range []struct {
		status int
		h      http.Header
		want   retry.Answer
	}{
		{200, after, retry.Answer{}},
		{301, after, retry.Answer{}},
		{400, after, retry.Answer{}},
		{404, after, retry.Answer{}},
		{500, after, retry.Answer{}},
		{501, nil, retry.Answer{}},
		{429, after, retry.Answer{Kind: retry.Refused, Told: true, Wait: 2 * time.Second}},
		{503, after, retry.Answer{Kind: retry.Refused, Told: true, Wait: 2 * time.Second}},
		{429, fields, retry.Answer{Kind: retry.Doubtful, Told: true, Wait: 3 * time.Second}},
		{503, fields, retry.Answer{Kind: retry.Doubtful, Told: true, Wait: 3 * time.Second}},
		{429, nil, retry.Answer{Kind: retry.Doubtful}},
		{503, nil, retry.Answer{Kind: retry.Doubtful}},
		{502, after, retry.Answer{Kind: retry.Doubtful, Told: true, Wait: 2 * time.Second}},
		{504, fields, retry.Answer{Kind: retry.Doubtful}},
	} {
		if got := judge(context.Background(), &http.Response{StatusCode: tt.status, Header: tt.h}, nil); got != tt.want {
			t.Errorf("%d %v: %+v, want %+v", tt.status, tt.h, got, tt.want)
		}
	}
}
