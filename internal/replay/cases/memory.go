package cases

import (
	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/memstore"
)

// Memory runs cases on in-memory stores.
type Memory struct{}

// Cannot implements Backend.
func (Memory) Cannot(op string) string { return cannotDo(op) }

// Unfit implements Backend.
func (Memory) Unfit(c *Case) string {
	if c.ExpectText == everyPath {
		return "needs a Redis server: its expectation is about keys as Redis holds them"
	}
	return ""
}

// Start implements Backend. The store is dated by the same kind of line as in a program,
// on the clocks of w.
func (Memory) Start(w *World) (Session, error) {
	line := clock.NewLineFrom(w)
	return &memory{line: line, store: memstore.New(memstore.WithClock(line))}, nil
}

type memory struct {
	line  *clock.Line
	store *memstore.Store
}

func (m *memory) Store() escapement.Store { return m.store }

func (m *memory) Announce(p *escapement.Plan) { m.store.Adopt(p) }

// Woken does what the store's own goroutine does four times a second.
func (m *memory) Woken() { m.line.Sync() }

func (m *memory) Keys() int64 { return m.store.Stats().Keys }

func (m *memory) Close() error { return m.store.Close() }
