package replay

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/replay/trace"
)

var (
	count = flag.Int64("lines", 200_000, "lines of the generated trace; 10000000 for the long run")
	keyed = flag.Int("keys", 10_000, "keys of the generated trace")
	form  = flag.String("form", "csv", "its format: csv, json or log")
)

// generated is a trace that is made while it is read: some 100 requests a millisecond
// from keys of which some are far busier than others.
type generated struct {
	left, at int64
	keys     []string
	zipf     *rand.Zipf
	form     string
	buf      []byte
}

const seed = 20261130

func generate(n int64, keys int, form string) *generated {
	g := &generated{left: n, at: 1_800_000_000_000_000, form: form,
		zipf: rand.NewZipf(rand.New(rand.NewPCG(seed, 1)), 1.1, 8, uint64(keys-1))}
	for i := range keys {
		g.keys = append(g.keys, fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255))
	}
	return g
}

func (g *generated) Read(p []byte) (int, error) {
	for len(g.buf) < len(p) && g.left > 0 {
		g.left--
		g.at += 10
		key := g.keys[g.zipf.Uint64()]
		switch g.form {
		case "csv":
			g.buf = strconv.AppendInt(g.buf, g.at/1000, 10)
			g.buf = append(append(append(g.buf, ','), key...), ",1\n"...)
		case "json":
			g.buf = append(g.buf, `{"time":`...)
			g.buf = strconv.AppendInt(g.buf, g.at/1000, 10)
			g.buf = append(append(append(g.buf, `,"path":"/api/v1/items","key":"`...), key...), "\"}\n"...)
		case "log":
			g.buf = append(append(g.buf, key...), " - - ["...)
			g.buf = time.UnixMicro(g.at).UTC().AppendFormat(g.buf, "02/Jan/2006:15:04:05 -0700")
			g.buf = append(g.buf, "] \"GET /api/v1/items?page=2 HTTP/1.1\" 200 2326 \"-\" \"curl/8.5.0\"\n"...)
		}
	}
	n := copy(p, g.buf)
	g.buf = append(g.buf[:0], g.buf[n:]...)
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// TestMillions replays a long trace: every line is decided once, and memory grows with
// keys and not with lines. The long form is
//
//	go test ./internal/replay -run TestMillions -v -lines 10000000
func TestMillions(t *testing.T) {
	plan, err := escapement.Limit{Name: "per-client", Rate: escapement.PerSecond(50), Burst: 100}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	peak := uint64(0)
	start := clock.Mono()
	in, err := trace.Open(generate(*count, *keyed, *form), trace.Auto)
	if err != nil {
		t.Fatal(err)
	}
	layout, err := in.Shape.Layout(trace.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	r, err := Run(t.Context(), in, layout, []Set{{Name: "a", Limits: []Counted{{Plan: plan}}}}, Options{Top: 10, Progress: func(int64, int64) {
		if blocks++; blocks%64 == 0 {
			runtime.ReadMemStats(&after)
			peak = max(peak, after.HeapAlloc)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Duration(clock.Mono() - start)
	s := r.Sets[0]
	if r.Input.Requests != *count || s.Admitted+s.Refused != *count || r.Input.Broken != 0 || r.Input.OutOfOrder != 0 {
		t.Errorf("%d lines: %+v, admitted %d, refused %d (seed %d)", *count, r.Input, s.Admitted, s.Refused, seed)
	}
	if s.Refused == 0 {
		t.Error("nothing was refused")
	}
	runtime.ReadMemStats(&after)
	allocs := after.Mallocs - before.Mallocs
	t.Logf("%d lines of %s, %d keys: %.0f lines/s, heap up to %.1f MB, %.4f allocations a line",
		*count, *form, r.Input.Keys, float64(*count)/took.Seconds(), float64(peak)/1e6, float64(allocs)/float64(*count))
	// Per key: its text twice, its place in the table, its record. Per run: the blocks.
	if bound := uint64(before.HeapAlloc) + 64<<20 + uint64(*keyed)*400; peak > bound {
		t.Errorf("heap of %d bytes, want at most %d", peak, bound)
	}
	if most := uint64(*keyed)*8 + 20_000; allocs > most {
		t.Errorf("%d allocations, want at most %d: some are per line", allocs, most)
	}
}
