package cases

import (
	"context"

	"github.com/escapement-io/escapement"
)

// Backend starts stores to run cases on.
type Backend interface {
	// Cannot says in words why an operation of the format, or a fault by its name, cannot
	// happen to this kind of store, or is empty.
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
	// Back waits until the store decides again.
	Back(ctx context.Context) error
}

// aging is a Session whose keys do not know the clocks of the case.
type aging interface {
	// Age lets so many ms pass for them.
	Age(ctx context.Context, by int64) error
}
