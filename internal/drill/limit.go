package drill

import (
	"fmt"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/naive"
)

// Limit is the token bucket that is drilled: Count units per Per, at most Burst at once.
type Limit struct {
	Count int64
	Per   time.Duration
	Burst int64
}

const (
	maxCount = 1_000_000
	maxLevel = 1 << 61 // of an exact bucket: room for what is earned before it is capped
)

// String is the limit as --limit of replay takes it.
func (l Limit) String() string {
	return fmt.Sprintf("token_bucket %d/%v burst %d", l.Count, l.Per, l.Burst)
}

func (l Limit) limit() escapement.Limit {
	return escapement.Limit{Name: "drill", Algorithm: escapement.TokenBucket, Rate: escapement.Rate{Count: l.Count, Per: l.Per}, Burst: l.Burst}
}

func (l Limit) check() error {
	if l.Count < 1 || l.Count > maxCount || l.Burst < 1 || l.Burst > maxCount {
		return fmt.Errorf("drill: count %d and burst %d; use 1 to %d for each", l.Count, l.Burst, maxCount)
	}
	if l.Per <= 0 || int64(l.Per) > maxLevel/l.Burst {
		return fmt.Errorf("drill: a burst of %d per %v; use a period of 1 µs to %v", l.Burst, l.Per, time.Duration(maxLevel/l.Burst))
	}
	_, err := l.limit().Compile()
	return err
}

// exact is the bucket that says what is right: integers, and instants of CLOCK_MONOTONIC.
// It shares no code with the limiter it judges. A unit is Per credits and a nanosecond
// earns Count, so nothing is rounded.
type exact struct {
	Limit
	level, at int64
	begun     bool
}

func (e *exact) take(ns int64) bool {
	full := e.Burst * int64(e.Per)
	if !e.begun {
		e.begun, e.level, e.at = true, full, ns
	}
	if passed := ns - e.at; passed > 0 {
		if passed > (full-e.level)/e.Count {
			e.level = full
		} else {
			e.level += passed * e.Count
		}
		e.at = ns
	}
	if e.level < int64(e.Per) {
		return false
	}
	e.level -= int64(e.Per)
	return true
}

// recipe is a limiter in circulation that runs beside ours.
type recipe struct {
	name string
	naive.Recipe
}

// recipes are the same limit in each form.
func recipes(l Limit) []recipe {
	perSecond := float64(l.Count) / l.Per.Seconds()
	return []recipe{
		{"bucket", naive.Rounding(float64(l.Burst), perSecond)},
		{"window", &naive.Window{Limit: max(1, int64(perSecond+0.5))}},
		{"spacing", &naive.Spacing{Interval: max(1, l.Per.Microseconds()/l.Count)}},
	}
}

// Recipes says what the recipes are, by name.
var Recipes = map[string]string{
	"bucket":  "token bucket dated by the wall clock, three decimals",
	"window":  "two half-second counters in a ring found by the wall clock",
	"spacing": "one unit per interval since the last, by the wall clock",
}
