package cli

import (
	"fmt"
	"sync"
	"time"
)

// Progress is drawn from the second second on: what ends before that needs none.
const (
	progressEvery = 250 * time.Millisecond
	progressAfter = 8
)

// progress keeps one line on a terminal up to date until stop is called, which wipes it.
// Elsewhere it does nothing. text is called from another goroutine.
func (o *Output) progress(text func() string) (stop func()) {
	if !o.Terminal() {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(progressEvery)
		defer t.Stop()
		drawn := false
		for n := 0; ; n++ {
			select {
			case <-t.C:
				if n >= progressAfter {
					fmt.Fprintf(o.Err, "\r\x1b[K%s", text())
					drawn = true
				}
			case <-quit:
				if drawn {
					fmt.Fprint(o.Err, "\r\x1b[K")
				}
				return
			}
		}
	}()
	return sync.OnceFunc(func() { close(quit); <-done })
}
