package httpretry

import (
	"net/http"
	"strings"
	"time"
)

// The most that is read of RateLimit fields. What is longer is ignored.
const (
	maxField   = 8 << 10
	maxMembers = 64
)

// rateLimit is the wait that RateLimit fields of any dialect tell a client that was
// refused: RateLimit (drafts 08 to 11) before the triple of draft 03 before its X- form.
// Malformed fields are ignored, and so is everything if a cache answered.
func rateLimit(h http.Header) (time.Duration, bool) {
	if _, cached := h["Age"]; cached {
		return 0, false
	}
	if v := h["Ratelimit"]; len(v) > 0 {
		if wait, ok := listWait(strings.Join(v, ", ")); ok {
			return wait, true
		}
	}
	if wait, ok := tripleWait(h, "Ratelimit-Remaining", "Ratelimit-Reset"); ok {
		return wait, true
	}
	return tripleWait(h, "X-Ratelimit-Remaining", "X-Ratelimit-Reset")
}

// listWait is the longest t of the limits of which nothing is left. If something is left
// of each, the request asked for more than that, of a limit that is not known: then it is
// the longest of all.
func listWait(field string) (time.Duration, bool) {
	if len(field) > maxField {
		return 0, false
	}
	members, ok := parseList(field)
	if !ok {
		return 0, false
	}
	var used, any time.Duration
	var isUsed, isAny bool
	for _, m := range members {
		r, hasR := m.integer("r")
		t, hasT := m.integer("t")
		if !m.named || !hasR || !hasT {
			continue
		}
		wait := toDuration(t)
		any, isAny = max(any, wait), true
		if r == 0 {
			used, isUsed = max(used, wait), true
		}
	}
	if isUsed {
		return used, true
	}
	return any, isAny
}

// epoch is the number from which a reset cannot be delta seconds and is taken for Unix
// time in seconds, as the X- form has it at some; from epochMillis on in milliseconds.
const (
	epoch       = 1_000_000_000
	epochMillis = 1_000_000_000_000
)

// tripleWait is the reset of a triple, if its remaining is a number too.
func tripleWait(h http.Header, remaining, reset string) (time.Duration, bool) {
	if len(h[remaining]) != 1 || len(h[reset]) != 1 {
		return 0, false
	}
	if _, ok := digits(strings.Trim(h[remaining][0], " \t")); !ok {
		return 0, false
	}
	v := strings.Trim(h[reset][0], " \t")
	if n, ok := digits(v); ok && n >= epoch {
		sent, ok := date(h)
		if !ok {
			return 0, false
		}
		if n >= epochMillis {
			n = (n + 999) / 1000
		}
		return toDuration(n - sent.Unix()), true
	}
	return parseSeconds(v)
}
