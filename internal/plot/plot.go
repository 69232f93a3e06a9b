// Package plot draws step charts of rates over time beside the limit they were held to.
// The same chart gives the same bytes.
package plot

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Chart is steps over time.
type Chart struct {
	Title  string
	X, Y   string // what the axes show, with the unit
	Steps  []Steps
	Levels []Level
	Marks  []Mark
	Clock  bool // X is Unix seconds, shown as time of day in UTC
	Left   bool // the legend stands on the left, for lines that rise
}

// Steps is a series: Y[i] holds from X[i] to X[i+1], the last value for as long as the one
// before it.
type Steps struct {
	Name string
	X, Y []float64
}

// Level is a horizontal line, such as a limit.
type Level struct {
	Name string
	Y    float64
}

// Mark is a vertical line with its name at its foot, for something that happened at X.
type Mark struct {
	Name string
	X    float64
}

// Formats are the endings of file names that can be written.
var Formats = []string{".png", ".svg"}

// Format is the ending of a path if charts can be written as that.
func Format(path string) (string, error) {
	ext := strings.ToLower(filepath.Ext(path))
	for _, f := range Formats {
		if f == ext {
			return ext, nil
		}
	}
	return "", fmt.Errorf("plot: %s: cannot write %q; use a name that ends in .png or .svg", path, ext)
}

const (
	width  = 24 * vg.Centimeter
	height = 12 * vg.Centimeter // of a chart alone
	dpi    = 110
)

// The first colours that stay apart for the colour-blind, after Okabe and Ito.
var palette = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff},
	{0xcc, 0x79, 0xa7, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0x80, 0x80, 0x80, 0xff},
}

var levelColour = color.RGBA{0xd5, 0x5e, 0x00, 0xff}

// Write draws the chart in a format of Formats.
func (c *Chart) Write(w io.Writer, format string) error {
	return WriteGrid(w, format, 1, c)
}

// WriteGrid draws charts in rows of so many columns. The width of the picture stays the
// same.
func WriteGrid(w io.Writer, format string, columns int, charts ...*Chart) error {
	if columns < 1 || len(charts) == 0 {
		return fmt.Errorf("plot: %d charts in %d columns", len(charts), columns)
	}
	plots := make([]*plot.Plot, len(charts))
	for i, c := range charts {
		var err error
		if plots[i], err = c.draw(); err != nil {
			return err
		}
	}
	tiles := draw.Tiles{Cols: columns, Rows: (len(charts) + columns - 1) / columns}
	high := height
	if columns > 1 {
		high = width / vg.Length(columns) * 0.6 * vg.Length(tiles.Rows)
	}
	paint := func(canvas vg.CanvasSizer) {
		for i, p := range plots {
			p.Draw(inset(tiles.At(draw.New(canvas), i%columns, i/columns)))
		}
	}
	var err error
	switch format {
	case ".png":
		canvas := vgimg.NewWith(vgimg.UseWH(width, high), vgimg.UseDPI(dpi))
		paint(canvas)
		_, err = vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	case ".svg":
		canvas := vgsvg.New(width, high)
		paint(canvas)
		_, err = canvas.WriteTo(w)
	default:
		err = fmt.Errorf("plot: unknown format %q", format)
	}
	return err
}

// inset keeps the edges free, where labels would be cut.
func inset(c draw.Canvas) draw.Canvas {
	const edge = 10
	return draw.Crop(c, vg.Points(edge), vg.Points(-2*edge), vg.Points(edge), vg.Points(-edge))
}

func (c *Chart) draw() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, c.X, c.Y
	style(p)
	p.Legend.Left = c.Left
	if c.Clock {
		p.X.Tick.Marker = clockTicks{}
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xe8}, color.Gray{0xe8}
	p.Add(grid)
	lo, hi, top, bottom := math.Inf(1), math.Inf(-1), 0.0, 0.0
	for i, s := range c.Steps {
		if len(s.X) != len(s.Y) || len(s.X) == 0 {
			return nil, fmt.Errorf("plot: series %q has %d instants and %d values", s.Name, len(s.X), len(s.Y))
		}
		line, err := s.line()
		if err != nil {
			return nil, fmt.Errorf("plot: series %q: %w", s.Name, err)
		}
		line.Color, line.Width = palette[i%len(palette)], vg.Points(1.2)
		if i >= len(palette) {
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(2)}
		}
		p.Add(line)
		p.Legend.Add(s.Name, line)
		lo, hi = min(lo, line.XYs[0].X), max(hi, line.XYs[len(line.XYs)-1].X)
		for _, y := range s.Y {
			top, bottom = max(top, y), min(bottom, y)
		}
	}
	if len(c.Steps) == 0 {
		lo, hi = 0, 1
	}
	for _, l := range c.Levels {
		line, err := plotter.NewLine(plotter.XYs{{X: lo, Y: l.Y}, {X: hi, Y: l.Y}})
		if err != nil {
			return nil, fmt.Errorf("plot: level %q: %w", l.Name, err)
		}
		line.Color, line.Width = levelColour, vg.Points(1.2)
		line.Dashes = []vg.Length{vg.Points(6), vg.Points(3)}
		p.Add(line)
		p.Legend.Add(l.Name, line)
		top = max(top, l.Y)
	}
	// Room above for the legend, which would otherwise cover the busiest line.
	entries := float64(len(c.Steps) + len(c.Levels))
	if top == 0 && bottom == 0 {
		top = 1
	}
	p.X.Min, p.X.Max = lo, hi
	p.Y.Min, p.Y.Max = bottom*1.05, bottom+(top-bottom)*(1.05+0.07*entries)
	return p, c.mark(p)
}

// style is what all charts have in common.
func style(p *plot.Plot) {
	for _, f := range []*font.Font{
		&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font,
		&p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font,
	} {
		f.Variant, f.Size = "Sans", vg.Points(10)
	}
	p.Title.TextStyle.Font.Size = vg.Points(11)
	p.Title.Padding = vg.Points(6)
	p.Legend.Top, p.Legend.Padding = true, vg.Points(2)
	p.X.Tick.Marker, p.Y.Tick.Marker = roundTicks{}, roundTicks{}
	p.BackgroundColor = color.White
}

// line holds each value until the next; the last one as long as the step before it.
func (s *Steps) line() (*plotter.Line, error) {
	n := len(s.X)
	xys := make(plotter.XYs, 0, n+1)
	for i := range n {
		xys = append(xys, plotter.XY{X: s.X[i], Y: s.Y[i]})
	}
	last := 1.0
	if n > 1 {
		last = s.X[n-1] - s.X[n-2]
	}
	xys = append(xys, plotter.XY{X: s.X[n-1] + last, Y: s.Y[n-1]})
	line, err := plotter.NewLine(xys)
	if err == nil {
		line.StepStyle = plotter.PostStep
	}
	return line, err
}
