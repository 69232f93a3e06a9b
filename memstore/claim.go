package memstore

import (
	"fmt"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// valid reports whether a store can decide the claim at all.
func valid(c *escapement.Claim) bool {
	return c.Plan != nil && c.Plan.ID() != 0 && uint64(c.Cost) <= uint64(algo.MaxInt) && c.Mode <= escapement.Peek &&
		uint64(c.Receipt.Units) <= uint64(algo.MaxInt) && c.Receipt.At >= 0
}

// explain says why a claim is not valid.
func explain(c *escapement.Claim) error {
	if c.Plan == nil || c.Plan.ID() == 0 {
		return fmt.Errorf("%w: a claim has no compiled plan; use Limit.Compile", escapement.ErrRequest)
	}
	name := c.Plan.Limit().Name
	switch {
	case uint64(c.Cost) > uint64(algo.MaxInt):
		return fmt.Errorf("%w: %d for limit %s; use 0 to 2^53-1", escapement.ErrCost, c.Cost, name)
	case c.Mode > escapement.Peek:
		return fmt.Errorf("%w: limit %s: unknown mode %d", escapement.ErrRequest, name, c.Mode)
	case c.Receipt.At < 0:
		return fmt.Errorf("%w: limit %s: a receipt from before the epoch; use the one of a decision", escapement.ErrRequest, name)
	}
	return fmt.Errorf("%w: limit %s: a receipt for %d units; use the one of a decision", escapement.ErrCost, name, c.Receipt.Units)
}

// judge answers a claim as if it asked for total, what all claims on its record ask for
// together. The state is a copy, but its ring is not, and stays as it is.
func judge(core *algo.Plan, st algo.State, now algo.Store, c *escapement.Claim, total int64) algo.Verdict {
	switch c.Mode {
	case escapement.Take:
		if core.Algorithm() != algo.RollingWindow {
			whole := *c
			whole.Cost = total
			return whole.Ask(core, &st, now)
		}
	case escapement.TakeUpTo, escapement.Charge, escapement.Refund:
		return algo.Verdict{Admitted: true} // never refused
	case escapement.Peek:
	}
	return core.Peek(&st, now, total)
}

// sharing is what a claim becomes if it is refused although the sum of its record was
// admitted: a later claim on a pacing limit shares the turn of the first.
func sharing(c *escapement.Claim) escapement.Claim {
	shared := *c
	if c.Mode == escapement.Take {
		shared.Mode, shared.Receipt = escapement.Charge, algo.Receipt{}
	} else {
		shared.Cost = 0
	}
	return shared
}

// keeps reports whether the claim, put to a state as new, leaves something to remember.
func keeps(core *algo.Plan, st *algo.State, now algo.Store, c *escapement.Claim) bool {
	switch c.Mode {
	case escapement.Take, escapement.TakeUpTo:
		// TakeUpTo takes at least one unit from a state as new.
		if c.Cost == 0 {
			return false
		}
		if c.Mode == escapement.TakeUpTo || core.Algorithm() != algo.RollingWindow {
			return true
		}
		v := core.Peek(st, now, c.Cost)
		return v.Admitted
	case escapement.Charge:
		return c.Cost > 0
	case escapement.Refund, escapement.Peek:
	}
	return false
}
