package replay

import (
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/replay/trace"
)

// maxShown is how many broken lines, and lines out of order, are named.
const maxShown = 5

// Input is what was read.
type Input struct {
	File       string `json:"file"`
	Format     string `json:"format"`
	Lines      int64  `json:"lines"`
	Requests   int64  `json:"requests"`
	Broken     int64  `json:"broken"`
	BrokenAt   []Line `json:"broken_at"` // the first few
	OutOfOrder int64  `json:"out_of_order"`
	BackMost   string `json:"back_most"` // how far before the latest instant the worst of them lies
	OrderAt    []Line `json:"out_of_order_at"`
	Damage     string `json:"damage,omitempty"` // why the input could not be read to its end
	From       string `json:"from"`
	To         string `json:"to"`
	Keys       int64  `json:"keys"`
	Peak       Peak   `json:"peak_per_second"`

	First, Last algo.Store `json:"-"`
	back        algo.Span
}

// Line is a line and what is wrong with it.
type Line struct {
	Line    int64  `json:"line"`
	Problem string `json:"problem"`
}

func (in *Input) broken(b *trace.Block) {
	in.Broken += b.Faults
	for _, x := range b.Broken {
		if len(in.BrokenAt) < maxShown {
			in.BrokenAt = append(in.BrokenAt, Line{x.Line, x.Fault.String()})
		}
	}
}

func (in *Input) outOfOrder(at, last moment) {
	in.OutOfOrder++
	back := algo.Span(last.time - at.time)
	in.back = max(in.back, back)
	if len(in.OrderAt) < maxShown {
		in.OrderAt = append(in.OrderAt, Line{at.line, span(back) + " before line " + number(last.line)})
	}
}

func span(s algo.Span) string { return (time.Duration(s) * time.Microsecond).String() }

func instant(t algo.Store) string {
	return time.UnixMicro(int64(t)).UTC().Format(time.RFC3339Nano)
}
