package cases

import (
	"errors"
	"fmt"
	"time"

	"github.com/escapement-io/escapement"
)

// logMax is up to how many units a rolling_window keeps exact instants.
const logMax = 64

// errInexact says that no algorithm of ours gives the exact answers of a log this long.
var errInexact = errors.New("an exact log of more than 64 units is not offered; rolling_window above that is cut into buckets")

// compile translates to a limit of package escapement. algorithm stands where the limit
// itself names none.
func (l *Limit) compile(name, algorithm string) (*escapement.Plan, error) {
	if l.Algorithm != "" {
		algorithm = l.Algorithm
	}
	out := escapement.Limit{Name: name, Shadow: l.Shadow}
	var per int64
	switch algorithm {
	case "token_bucket":
		out.Algorithm, out.Burst, out.Rate.Count, per = escapement.TokenBucket, l.Capacity, l.RefillTokens, l.RefillPeriodMS
		if l.Capacity == 0 { // ours would take it for "as the count"
			return nil, errors.New("capacity 0 admits nothing; remove what it guards instead")
		}
	case "gcra":
		out.Algorithm, out.Burst, out.Rate.Count, per = escapement.GCRA, l.Burst, l.Count, l.PeriodMS
		if l.Burst == 0 {
			return nil, errors.New("burst 0 admits nothing; remove what it guards instead")
		}
	case "fixed_window":
		out.Algorithm, out.Rate.Count, per = escapement.FixedWindow, l.Count, l.WindowMS
		if err := l.align(&out); err != nil {
			return nil, err
		}
	case "sliding_window":
		out.Rate.Count, per = l.Count, l.WindowMS
		switch l.Variant {
		case "weighted":
			out.Algorithm = escapement.SlidingWindow
		case "log":
			out.Algorithm = escapement.RollingWindow
			if l.Count > logMax {
				return nil, errInexact
			}
		default:
			return nil, fmt.Errorf("variant %q of sliding_window, want log or weighted", l.Variant)
		}
	default:
		return nil, fmt.Errorf("unknown algorithm %q, want token_bucket, gcra, fixed_window or sliding_window", algorithm)
	}
	if per > int64(escapement.Never/time.Millisecond) {
		return nil, fmt.Errorf("a period of %d ms is longer than 292 years", per)
	}
	out.Rate.Per = time.Duration(per) * time.Millisecond
	return out.Compile()
}

func (l *Limit) align(out *escapement.Limit) error {
	switch l.Align {
	case "first_request":
		out.Align = escapement.FirstUse
	case "", "epoch":
	default:
		return fmt.Errorf("align %q, want epoch or first_request", l.Align)
	}
	if l.Calendar == "" {
		return nil
	}
	align, ok := escapement.ParseAlign(l.Calendar)
	if !ok || align < escapement.Day {
		return fmt.Errorf("calendar %q, want day, week or month", l.Calendar)
	}
	zone, err := time.LoadLocation(l.TZ)
	if err != nil {
		return fmt.Errorf("tz: %w", err)
	}
	out.Align, out.Zone = align, zone
	return nil
}

// period is the length that windows of the limit are multiples of, in ms; 0 for none.
func (l *Limit) period() int64 { return max(l.WindowMS, 0) }
