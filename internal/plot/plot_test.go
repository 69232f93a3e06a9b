package plot

import (
	"bytes"
	"image/png"
	"strings"
	"testing"
)

func chart() *Chart {
	return &Chart{Title: "admitted & refused", X: "time (UTC)", Y: "requests per second", Clock: true,
		Steps: []Steps{
			{Name: "offered", X: []float64{1.8e9, 1.8e9 + 1, 1.8e9 + 2}, Y: []float64{5, 40, 3}},
			{Name: "admitted", X: []float64{1.8e9, 1.8e9 + 1, 1.8e9 + 2}, Y: []float64{5, 10, 3}},
		},
		Levels: []Level{{Name: "limit", Y: 10}}}
}

func TestSameChartSameBytes(t *testing.T) {
	for _, format := range Formats {
		var a, b bytes.Buffer
		if err := chart().Write(&a, format); err != nil {
			t.Fatal(err)
		}
		if err := chart().Write(&b, format); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%s differs from one drawing to the next", format)
		}
	}
}

func TestPNG(t *testing.T) {
	var b bytes.Buffer
	if err := chart().Write(&b, ".png"); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	colours := map[any]bool{}
	r := img.Bounds()
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			cr, cg, cb, _ := img.At(x, y).RGBA()
			colours[[3]uint32{cr >> 8, cg >> 8, cb >> 8}] = true
		}
	}
	for _, want := range []any{[3]uint32{0x00, 0x72, 0xb2}, [3]uint32{0xe6, 0x9f, 0x00}, [3]uint32{0xd5, 0x5e, 0x00}} {
		if !colours[want] {
			t.Errorf("no pixel of colour %x", want)
		}
	}
}

func TestSVG(t *testing.T) {
	var b bytes.Buffer
	if err := chart().Write(&b, ".svg"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "offered", "admitted &amp; refused", "limit", "requests per second", "</svg>"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in the picture", want)
		}
	}
}

func TestWrongInput(t *testing.T) {
	c := &Chart{Steps: []Steps{{Name: "x", X: []float64{1}, Y: nil}}}
	if err := c.Write(&bytes.Buffer{}, ".png"); err == nil {
		t.Error("a series of unequal lengths was drawn")
	}
	if err := chart().Write(&bytes.Buffer{}, ".gif"); err == nil {
		t.Error("an unknown format was written")
	}
	if _, err := Format("a/b.pdf"); err == nil {
		t.Error("Format accepts .pdf")
	}
	if f, err := Format("x.PNG"); err != nil || f != ".png" {
		t.Errorf("Format(x.PNG) = %q, %v", f, err)
	}
}

// TestEmpty draws a chart of nothing: a trace without a single request.
func TestEmpty(t *testing.T) {
	if err := (&Chart{Levels: []Level{{Name: "limit", Y: 3}}}).Write(&bytes.Buffer{}, ".svg"); err != nil {
		t.Fatal(err)
	}
}

func TestClockTicks(t *testing.T) {
	for _, x := range []struct {
		lo, hi float64
		first  string
		count  int
	}{
		{1_795_996_800, 1_795_996_800 + 180, "00:00:00", 13},
		{1_795_996_801, 1_795_996_804, "00:00:01", 4},
		{1_795_996_800 + 1, 1_795_996_800 + 86_400, "02:00", 12},
		{1_795_996_800, 1_795_996_800 + 3*86_400, "11-30 00:00", 13},
		{1_795_996_800, 1_795_996_800 + 4000*86_400, "2027", 8},
	} {
		ticks := clockTicks{}.Ticks(x.lo, x.hi)
		if len(ticks) != x.count || !strings.HasPrefix(ticks[0].Label, x.first) {
			t.Errorf("%v to %v: %v", x.lo, x.hi, ticks)
		}
	}
}

func TestRoundTicks(t *testing.T) {
	for _, x := range []struct {
		lo, hi      float64
		first, last string
		count       int
	}{
		{0, 12, "0", "12", 13},
		{0, 13, "0", "12", 7},
		{-2.1, 0.4, "-2", "0", 5},
		{0, 1, "0", "1", 11},
		{0, 2650, "0", "2500", 6},
	} {
		ticks := roundTicks{}.Ticks(x.lo, x.hi)
		if len(ticks) == 0 || ticks[0].Label != x.first || ticks[len(ticks)-1].Label != x.last || len(ticks) != x.count {
			t.Errorf("%v to %v: %v", x.lo, x.hi, ticks)
		}
	}
}

func TestMarksAndValuesBelowZero(t *testing.T) {
	c := chart()
	c.Steps[0].Y[1], c.Marks, c.Clock = -7, []Mark{{Name: "step", X: 1.8e9 + 1}}, false
	var b bytes.Buffer
	if err := c.Write(&b, ".svg"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">step<", ">-6<"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in the picture", want)
		}
	}
	p, err := c.draw()
	if err != nil || p.Y.Min > -7 {
		t.Errorf("the axis begins at %v, %v", p.Y.Min, err)
	}
}

func TestGrid(t *testing.T) {
	var b bytes.Buffer
	if err := WriteGrid(&b, ".svg", 2, chart(), chart(), &Chart{Title: "the third"}); err != nil {
		t.Fatal(err)
	}
	if s := b.String(); strings.Count(s, "admitted &amp; refused") != 2 || !strings.Contains(s, "the third") {
		t.Error("not every chart was drawn")
	}
	if err := WriteGrid(&b, ".svg", 0, chart()); err == nil {
		t.Error("no columns are accepted")
	}
}
