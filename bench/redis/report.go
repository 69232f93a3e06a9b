package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/escapement-io/escapement/bench/stats"
)

// row is a way under a number of callers.
type row struct {
	Peer      string  `json:"peer"`
	Workload  string  `json:"workload"`
	PerSecond float64 `json:"decisions_per_s"`
	Redis     float64 `json:"redis_us"`
	Script    float64 `json:"script_us"`
	P50       float64 `json:"p50_us"`
	Errors    int64   `json:"errors"`
}

// goal is a figure and what it is to be.
type goal struct {
	Name     string  `json:"goal"`
	Workload string  `json:"workload"`
	Want     float64 `json:"want"`
	AtLeast  bool    `json:"at_least"` // otherwise at most
	Got      float64 `json:"got"`
	Low      float64 `json:"low"` // of all rounds
	High     float64 `json:"high"`
	Met      bool    `json:"met"`
}

func newGoal(name string, want float64, atLeast bool, all []float64) goal {
	g := goal{Name: name, Workload: "redis", Want: want, AtLeast: atLeast, Got: stats.Median(all), Low: slices.Min(all), High: slices.Max(all)}
	g.Met = g.Got <= want
	if atLeast {
		g.Met = g.Got >= want
	}
	return g
}

func goals(m measurements, shares map[int][]float64) []goal {
	perSecond := func(x sample) float64 { return x.perSecond }
	redis := func(x sample) float64 { return x.redis }
	p50 := func(x sample) float64 { return x.p50 }
	all := []goal{
		newGoal("64 callers, decisions/s over the minimal script's", 1.5, true, m.ratios(bucket, minimal, 64, perSecond)),
		newGoal("64 callers, decisions/s over redis_rate's", 3.5, true, m.ratios(bucket, rate, 64, perSecond)),
		newGoal("64 callers, Redis time over the minimal script's", 0.65, false, m.ratios(bucket, minimal, 64, redis)),
		newGoal("64 callers, rolling window: Redis time over the minimal script's", 1.4, false, m.ratios(rolling, minimal, 64, redis)),
		newGoal("one caller, rolling window: Redis time over the minimal script's", 1.4, false, m.ratios(rolling, minimal, 1, redis)),
		newGoal("one caller, p50 over PING's", 1.7, false, m.ratios(bucket, ping, 1, p50)),
	}
	for _, ride := range rides {
		all = append(all, newGoal(fmt.Sprintf("witness, share of script time, %d decisions a call", ride), 0.02, false, shares[ride]))
	}
	return append(all,
		newGoal("errors on one hot key", 0, false, []float64{float64(m.errors(hotKey))}),
		newGoal("errors at all", 0, false, []float64{float64(m.errors(""))}))
}

// report prints tables for people or lines for machines.
type report struct {
	json bool
	out  io.Writer
	err  error
}

func (r *report) line(v any) {
	if err := json.NewEncoder(r.out).Encode(v); err != nil && r.err == nil {
		r.err = err
	}
}

func (r *report) rows(m measurements, callers int) {
	if !r.json {
		fmt.Fprintf(r.out, "\n### redis, callers: %d\n\n| | decisions/s | Redis µs | of it script µs | p50 µs | errors |\n| --- | --- | --- | --- | --- | --- |\n", callers)
	}
	for i := range ways {
		n := ways[i].name
		x := row{
			Peer: n, Workload: fmt.Sprintf("redis-%d", callers),
			PerSecond: m.median(n, callers, func(x sample) float64 { return x.perSecond }),
			Redis:     m.median(n, callers, func(x sample) float64 { return x.redis }),
			Script:    m.median(n, callers, func(x sample) float64 { return x.script }),
			P50:       m.median(n, callers, func(x sample) float64 { return x.p50 }),
		}
		for _, s := range m[key(n, callers)] {
			x.Errors += s.errors
		}
		if r.json {
			r.line(x)
			continue
		}
		fmt.Fprintf(r.out, "| %s | %.0f | %.2f | %.2f | %.0f | %d |\n", x.Peer, x.PerSecond, x.Redis, x.Script, x.P50, x.Errors)
	}
}

func (r *report) goals(all []goal) {
	if !r.json {
		fmt.Fprint(r.out, "\n### redis, goals\n\n| | goal | median | rounds | met |\n| --- | --- | --- | --- | --- |\n")
	}
	for _, g := range all {
		if r.json {
			r.line(g)
			continue
		}
		sign, met := "≤", "no"
		if g.AtLeast {
			sign = "≥"
		}
		if g.Met {
			met = "yes"
		}
		fmt.Fprintf(r.out, "| %s | %s %g | %.3g | %.3g to %.3g | %s |\n", g.Name, sign, g.Want, g.Got, g.Low, g.High, met)
	}
}
