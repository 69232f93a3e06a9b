package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// line is one row of the report.
type line struct {
	Peer        string   `json:"peer"`
	Workload    string   `json:"workload"`
	Procs       int      `json:"procs"`
	CPU         float64  `json:"cpu_ns"`
	Ratio       *float64 `json:"ratio"`
	Allocs      *float64 `json:"allocs_per_op"`
	BytesPerKey *float64 `json:"bytes_per_key"`
	KeptPerKey  *float64 `json:"kept_bytes_per_key,omitempty"` // mem10m: ten seconds later
	PeakMiB     *float64 `json:"peak_rss_mib,omitempty"`
	RPS         *float64 `json:"requests_per_s,omitempty"`
}

// report prints tables for people or lines for machines.
type report struct {
	json bool
	out  io.Writer
}

func (r *report) head(title string, w *workload) {
	if r.json {
		return
	}
	fmt.Fprintf(r.out, "\n### %s\n\n", title)
	if w != nil && w.memory > 0 {
		fmt.Fprintln(r.out, "| limiter | heap B/key | 10 s later | peak RSS MiB | CPU ns per first sight |\n| --- | --- | --- | --- | --- |")
		return
	}
	floor := "floor"
	if w != nil {
		floor = w.floor
	}
	fmt.Fprintf(r.out, "| limiter | CPU ns | × %s | allocs |\n| --- | --- | --- | --- |\n", floor)
}

func (r *report) add(l line) {
	if l.Allocs != nil {
		// The harness itself allocates a few times in millions of operations.
		*l.Allocs = math.Round(*l.Allocs*1000) / 1000
	}
	if r.json {
		must(json.NewEncoder(r.out).Encode(l))
		return
	}
	show := func(v *float64, format string) string {
		if v == nil {
			return "–"
		}
		return fmt.Sprintf(format, *v)
	}
	if l.BytesPerKey != nil {
		fmt.Fprintf(r.out, "| %s | %.0f | %s | %s | %.0f |\n", l.Peer, *l.BytesPerKey, show(l.KeptPerKey, "%.1f"), show(l.PeakMiB, "%.0f"), l.CPU)
		return
	}
	fmt.Fprintf(r.out, "| %s | %.1f | %s | %s |\n", l.Peer, l.CPU, show(l.Ratio, "%.2f"), show(l.Allocs, "%.2f"))
}

func (r *report) foot() {
	if !r.json {
		fmt.Fprintln(r.out)
	}
}
