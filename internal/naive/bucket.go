package naive

import "math"

// Bucket is a token bucket in floats and whole milliseconds that writes the instant on
// refusals too. The zero value of what is not exported is a new key.
type Bucket struct {
	Capacity, PerSecond float64
	Decimals            bool    // tokens are rounded to three decimals on each write
	Epsilon             float64 // and compared with this much slack
	Tokens              float64

	at int64 // milliseconds; 0 is a new key
}

// Rounding is the form that rounds, with its epsilon of 1e-9.
func Rounding(capacity, perSecond float64) *Bucket {
	return &Bucket{Capacity: capacity, PerSecond: perSecond, Decimals: true, Epsilon: 1e-9}
}

// Ask takes a cost at an instant in milliseconds. Beside the answer it returns the wait in
// milliseconds that a refused caller is told.
func (b *Bucket) Ask(ms int64, cost float64) (admitted bool, retry float64) {
	if b.at == 0 {
		b.Tokens, b.at = b.Capacity, ms
	}
	elapsed := max(0, ms-b.at)
	b.Tokens = min(b.Capacity, b.Tokens+float64(elapsed)/1000*b.PerSecond)
	admitted = b.Tokens+b.Epsilon >= cost
	if admitted {
		b.Tokens -= cost
	}
	if b.Decimals {
		b.Tokens = math.Floor(b.Tokens*1000+0.5) / 1000
	}
	b.at = ms
	return admitted, math.Ceil((cost - b.Tokens) / b.PerSecond * 1000)
}

// Take implements Recipe.
func (b *Bucket) Take(us int64) bool {
	admitted, _ := b.Ask(us/1000, 1)
	return admitted
}
