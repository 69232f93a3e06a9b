package plot

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

var markColour = color.Gray{0x60}

// mark draws the marks over the whole height, names beside their lower ends.
func (c *Chart) mark(p *plot.Plot) error {
	if len(c.Marks) == 0 {
		return nil
	}
	names := plotter.XYLabels{}
	for _, m := range c.Marks {
		line, err := plotter.NewLine(plotter.XYs{{X: m.X, Y: p.Y.Min}, {X: m.X, Y: p.Y.Max}})
		if err != nil {
			return fmt.Errorf("plot: mark %q: %w", m.Name, err)
		}
		line.Color, line.Width = markColour, vg.Points(0.7)
		line.Dashes = []vg.Length{vg.Points(2), vg.Points(2)}
		p.Add(line)
		names.XYs = append(names.XYs, plotter.XY{X: m.X, Y: p.Y.Min})
		names.Labels = append(names.Labels, m.Name)
	}
	labels, err := plotter.NewLabels(names)
	if err != nil {
		return fmt.Errorf("plot: marks: %w", err)
	}
	labels.Offset.X, labels.Offset.Y = vg.Points(3), vg.Points(4)
	for i := range labels.TextStyle {
		labels.TextStyle[i].Color = markColour
		labels.TextStyle[i].Font.Variant = "Sans"
		labels.TextStyle[i].Font.Size = vg.Points(9)
	}
	p.Add(labels)
	return nil
}
