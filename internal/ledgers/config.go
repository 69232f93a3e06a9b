package ledgers

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// Options are what a user may choose. The zero Options are good.
type Options struct {
	// Instance tells processes that share a store apart: from 1 to 2^53-1, and never
	// used twice. Zero draws one.
	Instance int64
	// Phase, if not nil, is where all ticks of this instance fall within their interval
	// on the store's line. Nil spreads the ticks of instances and keys.
	Phase *time.Duration
	// MaxKeys caps the keys in memory; a claim of a new key is then not decided, and the
	// error wraps escapement.ErrFull. Zero means DefaultMaxKeys.
	MaxKeys int
	// MaxWait is how long a claim may wait for the store, in all. Zero means 20 ms. If
	// answers take longer under load the store works for requests that have given up: give
	// it the time that the store has for a decision.
	MaxWait time.Duration
	// Calls is how many calls may be under way at once. Zero means 8.
	Calls int
	// Deadline ends a call. Zero means 250 ms.
	Deadline time.Duration
	// Instances says how many instances share the store, for the bounds in a Snapshot;
	// nil or 0 is not known.
	Instances func() int
}

// Defaults of Options.
const (
	DefaultMaxKeys  = 1 << 20
	DefaultMaxWait  = 20 * time.Millisecond
	DefaultCalls    = 8
	DefaultDeadline = 250 * time.Millisecond
)

// CallKeys is how many keys a call syncs at most.
const CallKeys = 64

// Config is what a kind of ledger adds to the options.
type Config[M, R any] struct {
	Options
	Mode  escapement.SyncMode
	Basis escapement.Basis
	Call  Call[M, R]
	// Longest is how far the interval of a plan may stretch.
	Longest func(p *escapement.Plan) algo.Span
	// Spend charges what a ledger could not, at the store itself; nil if a ledger always can.
	Spend func(ctx context.Context, p *escapement.Plan, key string, units int64) (charged int64, err error)
	// PeekBehind has Peeks of keys that no ledger knows answered by the store behind.
	PeekBehind bool
}

func (o Options) filled() Options {
	if o.Instance <= 0 || o.Instance > algo.MaxInt {
		o.Instance = drawInstance()
	}
	if o.MaxKeys <= 0 {
		o.MaxKeys = DefaultMaxKeys
	}
	if o.MaxWait <= 0 {
		o.MaxWait = DefaultMaxWait
	}
	if o.Calls <= 0 {
		o.Calls = DefaultCalls
	}
	if o.Deadline <= 0 {
		o.Deadline = DefaultDeadline
	}
	return o
}

// drawInstance is a number that no other process has.
func drawInstance() int64 {
	var b [8]byte
	for {
		if _, err := rand.Read(b[:]); err != nil {
			panic(fmt.Sprintf("ledgers: no randomness to name this instance: %v", err)) // crypto/rand never fails
		}
		if n := int64(binary.LittleEndian.Uint64(b[:]) & uint64(algo.MaxInt)); n > 0 {
			return n
		}
	}
}
