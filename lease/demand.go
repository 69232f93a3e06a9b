package lease

import (
	"math"

	"github.com/escapement-io/escapement/algo"
)

// demand measures what requests want, in units per nanosecond. It is an estimate that
// sizes asks: if it is wrong quota lies idle or requests wait, and no bound depends on
// it. Conversions to float64 around products keep every platform from fusing them with
// the next operation, so that a simulated world is the same everywhere.
type demand struct {
	units, requests int64   // since the last tick
	average         float64 // half of it the last interval
	rate            float64 // the larger of average and last interval
	quiet           int     // intervals without a request
	grow            int64   // what an instance without a history asks for next
	cost            float64 // of a request, in the last interval
}

func (d *demand) arrive(cost int64) {
	d.units += cost
	d.requests++
}

// close ends an interval that lasted elapsed.
func (d *demand) close(elapsed, interval algo.Mono) {
	if d.requests <= 2 && elapsed < interval {
		elapsed = interval // one or two requests in a first, partial interval are no rate
	}
	last := float64(d.units) / float64(elapsed)
	d.quiet++
	if d.requests > 0 {
		d.quiet = 0
		d.cost = float64(d.units) / float64(d.requests)
	}
	d.average = 0.5*d.average + 0.5*last
	d.rate = max(d.average, last)
	d.units, d.requests = 0, 0
}

// projected is the rate as this interval has it so far.
func (d *demand) projected(elapsed, interval algo.Mono) float64 {
	now := float64(d.units) / float64(elapsed+interval/8)
	if d.requests > 3 && now > d.rate {
		return now
	}
	return d.rate
}

// step is what an ask wants at least while there is no history: each further one in an
// interval eight times more.
func (d *demand) step(most int64) int64 {
	if d.average > 0 {
		d.grow = 1
		return 0
	}
	d.grow = min(max(1, d.grow)*8, most)
	return d.grow
}

// need is what arrives within a time, with a margin of its standard deviation.
func need(rate, cost float64, within algo.Mono) int64 {
	x := float64(rate * float64(max(0, within)))
	if x < 1e-3 {
		return 0
	}
	return int64(math.Ceil(x + spread(x, cost)))
}

func spread(x, cost float64) float64 { return math.Sqrt(float64(x * max(1, cost))) }
