package replay

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// ParseSpec reads a limit in one line: an algorithm, a rate, and words with a value each.
//
//	token_bucket 100/1s burst 200
//	fixed_window 1000 align day zone Europe/Berlin
//	pacing 5/1s max_delay 2s
//
// The words are burst, max_delay, align, zone, buckets, headroom and name; without a
// name the limit has none yet.
func ParseSpec(text string) (escapement.Limit, error) {
	var l escapement.Limit
	words := strings.Fields(text)
	bad := func(format string, args ...any) (escapement.Limit, error) {
		return l, fmt.Errorf("replay: limit %q: %s", text, fmt.Sprintf(format, args...))
	}
	if len(words) < 2 {
		return bad("want an algorithm and a rate, such as token_bucket 100/1s burst 200")
	}
	var ok bool
	if l.Algorithm, ok = algo.ParseAlgorithm(words[0]); !ok {
		return bad("unknown algorithm %q; use token_bucket, gcra, fixed_window, sliding_window, rolling_window or pacing", words[0])
	}
	var err error
	if l.Rate, err = ParseRate(words[1]); err != nil {
		return bad("%v", err)
	}
	words = words[2:]
	for ; len(words) >= 2; words = words[2:] {
		if err := set(&l, words[0], words[1]); err != nil {
			return bad("%s %s: %v", words[0], words[1], err)
		}
	}
	if len(words) == 1 {
		return bad("%q has no value", words[0])
	}
	return l, nil
}

func set(l *escapement.Limit, word, value string) (err error) {
	switch word {
	case "burst":
		l.Burst, err = whole(value)
	case "max_delay":
		l.MaxDelay, err = ParseSpan(value)
	case "align":
		var ok bool
		if l.Align, ok = escapement.ParseAlign(value); !ok {
			err = fmt.Errorf("use epoch, first_use, day, week or month")
		}
	case "zone":
		l.Zone, err = time.LoadLocation(value)
	case "buckets":
		l.Buckets, err = strconv.Atoi(value)
	case "headroom":
		l.Headroom, err = strconv.Atoi(strings.TrimSuffix(value, "%"))
	case "name":
		l.Name = value
	default:
		err = fmt.Errorf("unknown word; use burst, max_delay, align, zone, buckets, headroom or name")
	}
	return err
}

// ParseRate reads 100/1s or 100/s; a bare count is for calendar windows.
func ParseRate(text string) (escapement.Rate, error) {
	count, per, found := strings.Cut(text, "/")
	n, err := whole(count)
	if err != nil || !found {
		return escapement.Rate{Count: n}, err
	}
	d, err := ParseSpan(per)
	return escapement.Rate{Count: n, Per: d}, err
}

func whole(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number", s)
	}
	return n, nil
}

// ParseSpan reads a duration such as 1m30s, 10s, s, or 7d.
func ParseSpan(s string) (time.Duration, error) {
	text := s
	if text != "" && (text[0] < '0' || text[0] > '9') {
		text = "1" + text
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 32)
		if err != nil || n > int64(escapement.Never/(24*time.Hour)) {
			return 0, fmt.Errorf("%q is not a number of days", s)
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 10s, 1m30s, 24h or 7d", s)
	}
	return d, nil
}
