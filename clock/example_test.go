package clock_test

import (
	"fmt"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/clocktest"
)

// Cache forgets entries a fixed time after they were put. What matters is how long ago that
// was, so it dates them on a Line, which no step of the wall clock reaches.
type Cache struct {
	line    *clock.Line
	life    algo.Span
	entries map[string]entry
}

type entry struct {
	value string
	until algo.Store
}

func NewCache(line *clock.Line, life time.Duration) *Cache {
	return &Cache{line: line, life: algo.Span(life.Microseconds()), entries: map[string]entry{}}
}

func (c *Cache) Put(key, value string) {
	c.entries[key] = entry{value, c.line.Now() + algo.Store(c.life)}
}

func (c *Cache) Get(key string) (string, bool) {
	e, ok := c.entries[key]
	if !ok || c.line.Now() >= e.until {
		delete(c.entries, key)
		return "", false
	}
	return e.value, true
}

// A cache whose entries live for a minute, on a machine whose wall clock is set forward,
// then far back. In a program of your own, NewLine takes the place of NewLineFrom.
func ExampleLine_cache() {
	machine := clocktest.NewMachine()
	cache := NewCache(clock.NewLineFrom(machine), time.Minute)
	cache.Put("session", "alice")

	show := func(when string) {
		_, ok := cache.Get("session")
		fmt.Printf("%s: %v\n", when, ok)
	}
	machine.Step(time.Hour)
	show("the wall clock is set an hour forward")
	machine.Step(-24 * time.Hour)
	machine.Advance(59 * time.Second)
	show("59 s later, the wall clock a day back")
	machine.Advance(2 * time.Second)
	show("61 s later")
	// Output:
	// the wall clock is set an hour forward: true
	// 59 s later, the wall clock a day back: true
	// 61 s later: false
}

func ExampleGuard() {
	machine := clocktest.NewMachine()
	guard, err := clock.NewGuard(clock.Config{Source: machine}) // without Source: this machine
	if err != nil {
		fmt.Println(err)
		return
	}
	guard.Subscribe(func(e clock.Event) {
		fmt.Println(e.Kind, e.Direction(), e.Size.Round(time.Millisecond), e.Level)
	})
	before := guard.Now()
	machine.Step(-320 * time.Millisecond)
	guard.Check() // in a program: go guard.Run(ctx)
	fmt.Println("guarded time went back:", guard.Now() < before)
	// Output:
	// step backward -320ms critical
	// guarded time went back: false
}

func ExampleSince() {
	began := clock.Mono()
	// … work …
	took := clock.Since(began)
	fmt.Println(took >= 0)
	// Output: true
}
