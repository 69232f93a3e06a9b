package clocktest

import (
	"context"
	"sync"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

// Reference is a clock.Reference that a test can make late, wrong or silent.
type Reference struct {
	name string
	m    *Machine

	mu     sync.Mutex
	offset time.Duration
	err    time.Duration
	fail   error
	asked  int
}

// Reference returns a reference that knows the true time of the machine to within 1 ms.
func (m *Machine) Reference(name string) *Reference {
	return &Reference{name: name, m: m, err: time.Millisecond}
}

// Set makes the reference run offset ahead of true time and claim an error of err. An
// offset within err is an honest reference, one beyond it a liar.
func (r *Reference) Set(offset, err time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.offset, r.err = offset, err
}

// Fail makes measurements fail with err until it is called with nil.
func (r *Reference) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = err
}

// Asked is how often the reference was measured.
func (r *Reference) Asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// Name implements clock.Reference.
func (r *Reference) Name() string { return r.name }

// Measure implements clock.Reference. It costs no time.
func (r *Reference) Measure(context.Context) (clock.Sample, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if r.fail != nil {
		return clock.Sample{}, r.fail
	}
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	return clock.Sample{
		At: algo.Mono(r.m.mono), Time: Epoch + r.m.truth + int64(r.offset), Err: r.err, N: 1,
	}, nil
}
