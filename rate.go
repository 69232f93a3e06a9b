package escapement

import (
	"fmt"
	"time"
)

// Rate is a quantity per period: 100 per minute is Rate{100, time.Minute}. The pair is
// kept as written: 6000 per hour is the same speed and a different text.
type Rate struct {
	Count int64
	Per   time.Duration
}

// PerSecond is n units a second.
func PerSecond(n int64) Rate { return Rate{n, time.Second} }

// PerMinute is n units a minute.
func PerMinute(n int64) Rate { return Rate{n, time.Minute} }

// PerHour is n units an hour.
func PerHour(n int64) Rate { return Rate{n, time.Hour} }

// Every is one unit each d.
func Every(d time.Duration) Rate { return Rate{1, d} }

// String reads as "100 per 1m0s".
func (r Rate) String() string { return fmt.Sprintf("%d per %v", r.Count, r.Per) }
