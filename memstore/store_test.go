package memstore

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/storetest"
)

// manual is a clock that a test moves.
type manual struct{ now atomic.Int64 }

func newManual() *manual {
	m := new(manual)
	m.now.Store(1_800_000_000_000_000)
	return m
}

func (m *manual) Now() algo.Store { return algo.Store(m.now.Load()) }

func (m *manual) Advance(d time.Duration) { m.now.Add(int64(d / time.Microsecond)) }

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (escapement.Store, storetest.Clock) {
		c := newManual()
		return newStore(t, WithClock(c)), c
	})
}

func TestConformanceWithKeys(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (escapement.Store, storetest.Clock) {
		c := newManual()
		return newStore(t, WithClock(c), WithKeys()), c
	})
}
