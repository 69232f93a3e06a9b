package httpretry

import (
	"net/http"
	"strings"
	"time"
)

// longest is what longer waits are taken for. Whoever is told to come back in 300 years
// must not come back at once because a multiplication wrapped.
const longest = 100 * 365 * 24 * time.Hour

// parseSeconds reads delta seconds. A fraction, which some servers send against the
// standard, is rounded up. Signs, exponents and units are not seconds.
func parseSeconds(s string) (time.Duration, bool) {
	whole, fraction, dotted := strings.Cut(s, ".")
	n, ok := digits(whole)
	if !ok {
		return 0, false
	}
	if dotted {
		part, ok := digits(fraction)
		if !ok {
			return 0, false
		}
		if part > 0 {
			n++
		}
	}
	return toDuration(n), true
}

// digits reads a number without a sign, saturating far above longest.
func digits(s string) (int64, bool) {
	const most = 1 << 53
	if s == "" {
		return 0, false
	}
	var n int64
	for i := range len(s) {
		c := s[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+int64(c-'0'), most)
	}
	return n, true
}

// toDuration clamps seconds to 0 and longest before they are multiplied.
func toDuration(seconds int64) time.Duration {
	return time.Duration(max(0, min(seconds, int64(longest/time.Second)))) * time.Second
}

// retryAfter is the wait that Retry-After tells, the longest if there are several. A date
// is measured against the response's own Date, so neither clock has to be right; without
// one it says nothing.
func retryAfter(h http.Header) (wait time.Duration, ok bool) {
	for _, v := range h["Retry-After"] {
		v = strings.Trim(v, " \t")
		d, valid := parseSeconds(v)
		if !valid {
			d, valid = untilDate(v, h)
		}
		if valid {
			wait, ok = max(wait, d), true
		}
	}
	return wait, ok
}

// untilDate is how far an HTTP date lies after the response's own, 0 if before.
func untilDate(v string, h http.Header) (time.Duration, bool) {
	sent, ok := date(h)
	if !ok {
		return 0, false
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	return toDuration(at.Unix() - sent.Unix()), true
}

// date is when the server says that it answered.
func date(h http.Header) (time.Time, bool) {
	if len(h["Date"]) != 1 {
		return time.Time{}, false
	}
	t, err := http.ParseTime(strings.Trim(h["Date"][0], " \t"))
	return t, err == nil
}
