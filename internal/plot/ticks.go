package plot

import (
	"math"
	"strconv"
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

// roundTicks marks multiples of 1, 2 or 5 times a power of ten, at most maxTicks of them.
type roundTicks struct{}

// Ticks implements plot.Ticker.
func (roundTicks) Ticks(lo, hi float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/maxTicks)))
	for _, f := range []float64{1, 2, 5, 10} {
		if (hi-lo)/(step*f) <= maxTicks {
			step *= f
			break
		}
	}
	var ticks []plot.Tick
	for n := math.Ceil(lo/step) + 0; n*step <= hi; n++ { // + 0: no minus before a zero
		ticks = append(ticks, plot.Tick{Value: n * step, Label: strconv.FormatFloat(n*step, 'g', 6, 64)})
	}
	return ticks
}
