package httpretry

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A wait is never negative nor longer than longest, and whole seconds.
func checkWait(t *testing.T, what string, d time.Duration, ok bool) {
	t.Helper()
	if d < 0 || d > longest || d%time.Second != 0 || !ok && d != 0 {
		t.Errorf("%q: %v, %v", what, d, ok)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, form := range forms {
		h := headers(form.lines...)
		f.Add(h.Get("Retry-After"), h.Get("Date"))
	}
	f.Fuzz(func(t *testing.T, value, date string) {
		d, ok := retryAfter(http.Header{"Retry-After": {value}, "Date": {date}})
		checkWait(t, value+"|"+date, d, ok)
		if n, err := strconv.ParseUint(strings.Trim(value, " \t"), 10, 31); err == nil && !strings.ContainsAny(value, "+_") {
			if want := time.Duration(n) * time.Second; !ok || d != min(want, longest) {
				t.Errorf("%q: %v, %v, want %v", value, d, ok, want)
			}
		}
		if _, err := http.ParseTime(strings.Trim(date, " \t")); err != nil {
			if _, number := parseSeconds(strings.Trim(value, " \t")); ok != number {
				t.Errorf("%q without a date: %v", value, ok)
			}
		}
	})
}

func FuzzRateLimit(f *testing.F) {
	for _, form := range forms {
		h := headers(form.lines...)
		f.Add(h.Get("RateLimit"), h.Get("X-RateLimit-Remaining"), h.Get("X-RateLimit-Reset"), h.Get("Date"))
	}
	f.Fuzz(func(t *testing.T, field, remaining, reset, date string) {
		d, ok := rateLimit(http.Header{"Ratelimit": {field}, "X-Ratelimit-Remaining": {remaining}, "X-Ratelimit-Reset": {reset}, "Date": {date}})
		checkWait(t, field, d, ok)
		members, ok := parseList(field)
		if len(members) > maxMembers || !ok && members != nil {
			t.Errorf("%q: %d members", field, len(members))
		}
		if ok && len(members) > 0 && len(members) < maxMembers {
			// A list stays one with another member at its end.
			more, ok := parseList(strings.TrimRight(field, " ") + `, "z";r=0;t=7`)
			if !ok || len(more) != len(members)+1 {
				t.Errorf("%q: %d members and %d with another one", field, len(members), len(more))
			}
		}
		a := judge(context.Background(), &http.Response{StatusCode: 429, Header: http.Header{"Ratelimit": {field}}}, nil)
		checkWait(t, field, a.Wait, a.Told)
	})
}
