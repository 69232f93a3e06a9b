package clock

import (
	"time"

	"github.com/escapement-io/escapement/algo"
)

// Reading is one look at the clocks of a machine, each enclosed by two monotonic readings:
// M0, Wall, M1, Boot, M2 were taken in this order. What happened between two of them, a
// garbage collection or an hour in a stopped process, shows as the width of the bracket
// instead of passing for an error of a clock.
type Reading struct {
	M0   algo.Mono
	Wall int64 // Unix time in nanoseconds
	M1   algo.Mono
	Boot int64 // nanoseconds, counting suspends; meaningless unless HasBoot
	M2   algo.Mono

	// HasBoot says whether this machine has a clock that counts suspends.
	HasBoot bool
}

// Source is where clocks are read: the machine (see Machine) or a script (see package
// clocktest). Mono is called for every reading of guarded time and must be cheap; Read is
// called a few times a second.
type Source interface {
	Mono() algo.Mono
	Read() Reading
}

// Machine is the source that reads the clocks of this machine.
func Machine() Source { return machine{} }

type machine struct{}

func (machine) Mono() algo.Mono { return Mono() }

// Read relies on time.Now taking the wall reading before the monotonic one, which makes
// its monotonic part the closing side of the first bracket. Were the order the other way
// round, the bracket would be too narrow by a few nanoseconds.
func (machine) Read() Reading {
	m0 := Mono()
	t := time.Now()
	boot, has := readBoot()
	m2 := Mono()
	return Reading{M0: m0, Wall: t.UnixNano(), M1: algo.Mono(t.Sub(base)), Boot: boot, M2: m2, HasBoot: has}
}

const (
	tries       = 8                              // readings per attempt
	narrow      = int64(20 * time.Microsecond)   // a bracket this narrow is taken at once
	widest      = int64(200 * time.Microsecond)  // a wider one says nothing
	suspendUnit = int64(1000 * time.Microsecond) // growth of boot minus mono that counts as a suspend
)

// look reads the source until both brackets are narrow, at most tries times. It returns the
// narrowest reading, and false if even that was wider than widest.
func look(src Source) (Reading, bool) {
	var best Reading
	width := int64(-1)
	for range tries {
		r := src.Read()
		w := r.width()
		if width < 0 || w < width {
			best, width = r, w
		}
		if w <= narrow {
			break
		}
	}
	return best, width <= widest
}

// width is the wider of the two brackets.
func (r Reading) width() int64 { return int64(max(r.M1-r.M0, r.M2-r.M1)) }

// frozen reports a monotonic clock that did not move across a system call. It is not the
// machine's, it is that of a testing/synctest bubble, and says nothing about suspends.
func (r Reading) frozen() bool { return r.M2 == r.M1 }

// mid is the monotonic instant of the wall reading, to within half the bracket.
func (r Reading) mid() algo.Mono { return r.M0 + (r.M1-r.M0)/2 }

// slept is boot time minus monotonic time, to within half the bracket.
func (r Reading) slept() int64 { return r.Boot - int64(r.M1+(r.M2-r.M1)/2) }
