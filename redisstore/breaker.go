package redisstore

import "github.com/escapement-io/escapement/algo"

// breaker stops asking a server that failed several times in a row, and lets one probe
// at a time through. It is pure: instants come as arguments.
type breaker struct {
	failures int
	open     bool
	probing  bool
	next     algo.Mono
	wait     algo.Mono
}

const (
	breakAfter = 5
	firstProbe = algo.Mono(50_000_000)
	lastProbe  = algo.Mono(500_000_000)
)

// failed counts a failure; it reports whether the breaker opened by it.
func (b *breaker) failed(now algo.Mono) bool {
	b.failures++
	b.probing = false
	if b.open {
		b.wait = min(2*b.wait, lastProbe)
		b.next = now + b.wait
		return false
	}
	if b.failures < breakAfter {
		return false
	}
	b.open, b.wait, b.next = true, firstProbe, now+firstProbe
	return true
}

// answered counts a success; it reports whether the breaker closed by it.
func (b *breaker) answered() bool {
	was := b.open
	*b = breaker{}
	return was
}

// probe reports whether a probe is due, and takes it: only one is under way at a time.
func (b *breaker) probe(now algo.Mono) bool {
	if !b.open || b.probing || now < b.next {
		return false
	}
	b.probing = true
	return true
}
