package retry

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var seedFlag = flag.Uint64("seed", 0, "replay the random tests from this seed")

// seeded is a new seed, or that of the flag.
func seeded(t *testing.T) uint64 {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("replay: go test ./internal/retry -run %s -seed %d", t.Name(), seed)
	return seed
}
