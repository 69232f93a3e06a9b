package escapement_test

import (
	"context"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
)

// What was spent elsewhere counts, beyond the capacity too: the debt is worked off before
// anybody is admitted.
func TestChargeGoesIntoDebt(t *testing.T) {
	ctx := context.Background()
	lim, clk := limiter(t, escapement.Limit{Rate: escapement.PerSecond(5)})
	if d, err := lim.Charge(ctx, "k", 7, 0); err != nil || !d.Allowed || d.Units() != 7 || d.Remaining() != 0 {
		t.Fatalf("charge: %v, %d units, %d remaining, %v", d.Allowed, d.Units(), d.Remaining(), err)
	}
	if d, err := lim.Take(ctx, "k", 1); err != nil || d.Allowed || d.RetryAfter() != 600*time.Millisecond {
		t.Fatalf("two units in debt: %v, retry %v, %v", d.Allowed, d.RetryAfter(), err)
	}
	clk.set(600*time.Millisecond - time.Microsecond)
	if d, _ := lim.Take(ctx, "k", 1); d.Allowed {
		t.Error("admitted a microsecond before the debt was paid")
	}
	clk.set(600 * time.Millisecond)
	if d, _ := lim.Take(ctx, "k", 1); !d.Allowed {
		t.Error("refused although the debt was paid")
	}
	if _, err := lim.Charge(ctx, "k", -1, 0); err == nil {
		t.Error("a negative charge was taken")
	}
	if d, _ := lim.Take(ctx, "other", 1); !d.Allowed {
		t.Error("another key was charged")
	}
}
