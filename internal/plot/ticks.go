package plot

import (
	"math"
	"time"

	"gonum.org/v1/plot"
)

// clockTicks marks Unix seconds at round times of day in UTC.
type clockTicks struct{}

// Between two ticks lie as many seconds as one of these, the first that leaves at most
// maxTicks.
var clockSteps = []int64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400}

const maxTicks = 12

// Ticks implements plot.Ticker.
func (clockTicks) Ticks(lo, hi float64) []plot.Tick {
	step := int64(1)
	for _, step = range clockSteps {
		if (hi-lo)/float64(step) <= maxTicks {
			break
		}
	}
	for (hi-lo)/float64(step) > maxTicks {
		step *= 2
	}
	layout := "15:04:05"
	switch {
	case step >= 86400:
		layout = "2006-01-02"
	case hi-lo > 86400:
		layout = "01-02 15:04"
	case step >= 60:
		layout = "15:04"
	}
	var ticks []plot.Tick
	for at := int64(math.Ceil(lo/float64(step))) * step; float64(at) <= hi; at += step {
		ticks = append(ticks, plot.Tick{Value: float64(at), Label: time.Unix(at, 0).UTC().Format(layout)})
	}
	return ticks
}
