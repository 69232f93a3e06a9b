package escapement

// Observer is told of every decision a Limiter makes. Implementations must not block;
// they run on the caller's goroutine.
type Observer interface {
	// Decided reports an answer; with Basis Fallback err says why the store had none. What c
	// and d point to is used again: they must not be kept, but copies may.
	Decided(c *Claim, d *Decision, err error)
}
