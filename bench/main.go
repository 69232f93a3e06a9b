// Command bench measures our limiters beside other ones and beside the floors under
// them: each measurement in a fresh process, peers interleaved in every round.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/escapement-io/escapement/bench/stats"
)

// workload is one way of asking.
type workload struct {
	name   string
	floor  string // what its ratios are over
	keyed  bool
	coarse bool // ours on a clock that ticks each millisecond
	memory int  // distinct keys, each seen once
	procs  []int
	rounds int
}

// late workloads are looked at again after ten seconds.
func (w *workload) late() bool { return w.memory > nKeys }

var workloads = []workload{
	{name: "hot", floor: "nanotime + CAS", procs: []int{1, 2}, rounds: 5},
	{name: "hot-coarse", floor: "nanotime + CAS", coarse: true, procs: []int{1, 2}, rounds: 5},
	{name: "denied", floor: "nanotime + CAS", procs: []int{1, 2}, rounds: 5},
	{name: "zipf", floor: "map lookup + shard mutex", keyed: true, procs: []int{1, 2}, rounds: 3},
	{name: "uniform", floor: "map lookup + shard mutex", keyed: true, procs: []int{1, 2}, rounds: 3},
	{name: "mem1m", keyed: true, memory: 1_000_000, procs: []int{2}, rounds: 1},
	{name: "mem10m", keyed: true, memory: 10_000_000, procs: []int{2}, rounds: 1},
}

func main() {
	child := flag.String("child", "", "internal: number of the peer to measure")
	names := flag.String("workloads", "hot,hot-coarse,denied,zipf,uniform,mem1m,mem10m,gateway-pass,gateway-refuse", "what to measure, comma separated")
	procs := flag.Int("procs", 0, "internal: GOMAXPROCS of a child")
	rounds := flag.Int("rounds", 0, "repetitions; 0: five, three or one, by workload")
	dur := flag.Duration("dur", 200*time.Millisecond, "length of one measurement")
	only := flag.String("only", "", "regexp of peer names, besides the floors")
	asJSON := flag.Bool("json", false, "print JSON lines instead of tables")
	serveAs := flag.String("serve", "", "internal: serve HTTP as this")
	flag.Parse()
	if *serveAs != "" {
		serve(*serveAs)
		return
	}
	peers := append(append(append([]peer{}, floors...), ours...), others...)
	if *child != "" {
		n, err := strconv.Atoi(*child)
		must(err)
		w := find(*names)
		must(json.NewEncoder(os.Stdout).Encode(measure(peers[n], *w, *procs, *dur)))
		return
	}
	r := &report{json: *asJSON, out: os.Stdout}
	re := regexp.MustCompile(*only)
	for _, name := range strings.Split(*names, ",") {
		if strings.HasPrefix(name, "gateway-") {
			measureGateway(r, name, *rounds)
			continue
		}
		w := find(name)
		if w == nil {
			fmt.Fprintf(os.Stderr, "bench: no workload %q\n", name)
			os.Exit(2)
		}
		if *rounds > 0 {
			w.rounds = *rounds
		}
		for _, n := range w.procs {
			run(r, w, n, peers, re, *dur)
		}
	}
}

func find(name string) *workload {
	for i := range workloads {
		if workloads[i].name == name {
			return &workloads[i]
		}
	}
	return nil
}

// takesPart says whether a peer is measured under a workload.
func (p *peer) takesPart(w *workload) bool {
	switch {
	case p.floor:
		return p.name == w.floor
	case w.coarse:
		return p.coarse
	case p.coarse, p.memoryOnly && w.memory == 0:
		return false
	case w.memory == 10_000_000:
		return p.flood
	case w.keyed:
		return !p.oneKey
	case w.name == "denied" && p.noDeny:
		return false
	}
	return !p.keyed
}

func run(r *report, w *workload, procs int, peers []peer, only *regexp.Regexp, dur time.Duration) {
	results := map[int][]result{}
	var order []int
	for round := range w.rounds {
		for i := range peers {
			p := &peers[i]
			if !p.takesPart(w) || !p.floor && !only.MatchString(p.name) {
				continue
			}
			if round == 0 {
				order = append(order, i)
			}
			c := exec.Command(os.Args[0], "-child", strconv.Itoa(i), "-workloads", w.name, "-procs", strconv.Itoa(procs), "-dur", dur.String())
			c.Stderr = os.Stderr
			out, err := c.Output()
			must(err)
			var x result
			must(json.Unmarshal(out, &x))
			results[i] = append(results[i], x)
		}
	}
	var base []result
	for _, i := range order {
		if peers[i].floor {
			base = results[i]
		}
	}
	r.head(fmt.Sprintf("%s, GOMAXPROCS=%d", w.name, procs), w)
	for _, i := range order {
		r.add(row(&peers[i], w, procs, results[i], base))
	}
	r.foot()
}

func row(p *peer, w *workload, procs int, xs, base []result) line {
	col := func(f func(result) float64) float64 {
		var v []float64
		for _, x := range xs {
			v = append(v, f(x))
		}
		return stats.Median(v)
	}
	l := line{Peer: p.name, Workload: w.name, Procs: procs, CPU: col(func(x result) float64 { return x.CPU })}
	if w.memory > 0 {
		l.BytesPerKey = ptr(col(func(x result) float64 { return x.PerKey }))
		if w.late() {
			l.KeptPerKey = ptr(col(func(x result) float64 { return x.Idle }))
		}
		l.PeakMiB = ptr(col(func(x result) float64 { return x.Peak }))
		return l
	}
	l.Allocs = ptr(col(func(x result) float64 { return x.Allocs }))
	var ratios []float64
	for i, x := range xs {
		if i < len(base) {
			ratios = append(ratios, x.CPU/base[i].CPU)
		}
	}
	l.Ratio = ptr(stats.Median(ratios))
	return l
}

func ptr(v float64) *float64 { return &v }
