package sim

import (
	"flag"
	"testing"
)

var worlds = flag.Int("worlds", 200, "how many random worlds to run")

// No promise is broken in any world.
func TestRandomWorlds(t *testing.T) {
	const seed = 1
	p, err := Prove(t.Context(), *worlds, seed, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range p.Found {
		t.Errorf("seed %d (replay: go run ./cmd/escapement simulate --runs 1 --seed %d): %q", f.Seed, f.Seed, f.Problems)
	}
	if p.Violations > 0 {
		t.Errorf("%d of %d worlds break a promise", p.Violations, p.Runs)
	}
}
