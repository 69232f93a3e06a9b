package cases

import (
	"context"

	"github.com/escapement-io/escapement"
)

// Backend starts stores to run cases on.
type Backend interface {
	// Cannot says in words why an operation of the format cannot happen to this kind of
	// store, or is empty.
	Cannot(op string) string
	// Unfit says in words why a case says nothing about this kind of store, or is empty.
	Unfit(c *Case) string
	// Start starts a store on the clocks of w.
	Start(w *World) (Session, error)
}

// Session is the store of one case.
type Session interface {
	Store() escapement.Store
	// Announce says that a plan replaces the older one of its name from now on.
	Announce(p *escapement.Plan)
	// Woken says that the machine was suspended until now.
	Woken()
	// Keys is how many keys the store holds.
	Keys() int64
	Close() error
}

// faulty is a Session whose server can be done something to.
type faulty interface {
	Fault(ctx context.Context, op string) error
}
