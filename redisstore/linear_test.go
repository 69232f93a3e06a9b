package redisstore

import (
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/redistest"
)

// asked is what a client wanted of a window of 100 units, and got what it was answered.
type asked struct{ cost int64 }

type got struct {
	allowed bool
	left    int64
	unknown bool
}

// windowModel is a window that no client sees end: what is left of it.
var windowModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{int64(100)} },
	Step: func(state, input, output any) []any {
		left, in, out := state.(int64), input.(asked), output.(got)
		after := left
		if in.cost <= left {
			after = left - in.cost
		}
		switch {
		case out.unknown:
			return []any{left, after}
		case out.allowed == (in.cost <= left) && out.left == after:
			return []any{after}
		}
		return nil
	},
}

// Concurrent clients on one key, over two stores and a network that loses replies: what
// they were told is what one client after the other could have been told.
func TestConcurrentHistoriesAreLinear(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	var f faults
	stores := []*Store{open(t, Config{Addrs: []string{srv.Addr()}}), open(t, Config{Addrs: []string{srv.Addr()}, Dial: f.dial})}
	p := plan(t, yearly("linear", 100))
	for _, s := range stores {
		one(t, s, escapement.Claim{Plan: p, Key: "k", Mode: escapement.Peek})
	}
	var mu sync.Mutex
	var history []porcupine.Operation
	unknown := 0
	var wg sync.WaitGroup
	for client := range 12 {
		wg.Go(func() {
			for i := range 12 {
				if client == 1 && i == 4 {
					f.after.Store(true)
				}
				in := asked{int64(1 + (client+i)%3)}
				call := clock.Mono()
				var a [1]escapement.Answer
				stores[client%2].Decide(t.Context(), []escapement.Request{{Claims: []escapement.Claim{{Plan: p, Key: "k", Cost: in.cost}}}}, a[:])
				op := porcupine.Operation{ClientId: client, Input: in, Call: int64(call), Return: int64(clock.Mono())}
				switch a[0].Outcome {
				case escapement.Decided:
					op.Output = got{allowed: a[0].Admitted, left: a[0].Parts[0].Remaining()}
				case escapement.Unknown:
					// It may yet take effect, at any time.
					op.Output, op.Return = got{unknown: true}, int64(clock.Mono())+int64(time.Hour)
				case escapement.NotRun:
					continue
				}
				mu.Lock()
				if a[0].Outcome == escapement.Unknown {
					unknown++
					op.ClientId = 1000 + unknown
				}
				history = append(history, op)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("%d operations, %d of unknown outcome", len(history), unknown)
	if unknown == 0 || unknown > 10 {
		t.Errorf("%d outcomes are unknown; a lost reply makes 1 to 10", unknown)
	}
	if r := porcupine.CheckOperationsTimeout(windowModel.ToModel(), history, time.Minute); r != porcupine.Ok {
		t.Errorf("the history is %v", r)
	}
}
