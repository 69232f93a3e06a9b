package clock

import (
	"time"

	"github.com/escapement-io/escapement/algo"
)

// patience is how long a large error must stand, unchallenged, before a majority that is
// not confirmed is followed.
const patience = 10 * time.Minute

// act is what is to be done about the error of guarded time.
type act int

const (
	keep   act = iota // nothing: go on as before
	slew              // approach at a bounded rate
	rebase            // go there: forward at once, backward at half speed
)

// aim decides what to do about an error of guarded time. confirmed means that two
// independent references agree on it, held for how long an unconfirmed error has stood.
//
// An error of up to a second is slewed away. A larger one would take too long, and may be a
// mistake of the reference: it is followed if it is confirmed or has stood long enough, and
// until then nothing changes.
func aim(err int64, confirmed bool, held time.Duration) act {
	switch {
	case abs(err) <= slewable:
		return slew
	case confirmed || held >= patience:
		return rebase
	}
	return keep
}

// toward is the stretch that follows cur at m0 and brings guarded time, which stands at g0
// there, to where it is err further.
//
// Guarded time never goes back. To keep is to finish what cur has begun, if only from a
// later start after a suspend. A rebase forward jumps; a rebase backward goes on at half
// speed until the truth has caught up.
func toward(cur stretch, a act, m0 algo.Mono, g0, err int64) stretch {
	switch {
	case a == slew:
		return slewing(m0, g0, err, slewRate(err))
	case a == rebase && err > 0:
		return slewing(m0, g0+err, 0, 0)
	case a == rebase:
		return slewing(m0, g0, err, slewHalf)
	}
	return slewing(m0, g0, cur.rest(m0), cur.ppb)
}
