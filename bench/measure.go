package main

import (
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const nKeys = 1_000_000

// result is one measurement. CPU is processor nanoseconds per operation, which other load
// on the machine disturbs less than time on the wall.
type result struct{ CPU, Allocs, PerKey, Peak, Idle float64 }

// cpuTime is the processor time this process has used, in nanoseconds.
func cpuTime() float64 {
	var u syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Nano() + u.Stime.Nano())
}

func measure(p peer, w workload, procs int, dur time.Duration) result {
	runtime.GOMAXPROCS(procs)
	if w.memory > 0 {
		return memory(p, w)
	}
	m := open
	if w.name == "denied" {
		m = closed
	}
	keys := keysOf(w)
	seqs := make([][]int32, procs)
	for g := range seqs {
		seqs[g] = sequence(w, len(keys), int64(g)+1)
	}
	allow := p.build(m)
	for _, k := range keys {
		allow(k)
	}
	runtime.GC()
	var a, b runtime.MemStats
	var ops atomic.Int64
	var wg sync.WaitGroup
	runtime.ReadMemStats(&a)
	cpu0, start := cpuTime(), time.Now()
	for g := range procs {
		wg.Go(func() {
			seq := seqs[g]
			for i, n := 0, int64(0); ; n++ {
				for range 512 {
					allow(keys[seq[i]])
					i = (i + 1) & (sequenceLen - 1)
				}
				if time.Since(start) > dur {
					ops.Add((n + 1) * 512)
					return
				}
			}
		})
	}
	wg.Wait()
	cpu := cpuTime() - cpu0
	runtime.ReadMemStats(&b)
	n := float64(ops.Load())
	return result{CPU: cpu / n, Allocs: float64(b.Mallocs-a.Mallocs) / n}
}

// keysOf are the keys that a workload asks about, in no order.
func keysOf(w workload) []string {
	if !w.keyed {
		return []string{"client-0000000000"}
	}
	keys := make([]string, nKeys)
	for i := range keys {
		keys[i] = fmt.Sprintf("client-%09d", i)
	}
	rand.New(rand.NewSource(7)).Shuffle(nKeys, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}

const sequenceLen = 1 << 20

// sequence is the order in which one goroutine asks about n keys, over and over.
func sequence(w workload, n int, seed int64) []int32 {
	seq := make([]int32, sequenceLen)
	r := rand.New(rand.NewSource(seed))
	z := rand.NewZipf(r, 1.1, 1, uint64(n-1))
	for i := range seq {
		switch w.name {
		case "zipf":
			seq[i] = int32(z.Uint64())
		case "uniform":
			seq[i] = int32(r.Intn(n))
		}
	}
	return seq
}

// memory feeds distinct keys, each made fresh so that what the limiter keeps of it
// counts, and reports the live heap per key then and ten seconds later.
func memory(p peer, w workload) result {
	n := w.memory
	heap := func() float64 {
		runtime.GC()
		debug.FreeOSMemory()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return float64(s.HeapAlloc)
	}
	h0 := heap()
	m := closed // so that every key counts for an hour
	if w.late() {
		m = tenPS
	}
	allow := p.build(m)
	cpu0, start := cpuTime(), time.Now()
	for i := range n {
		allow("client-" + fmt.Sprintf("%09d", i))
		if i&4095 == 0 && time.Since(start) > time.Minute {
			n = i + 1
			break
		}
	}
	x := result{CPU: (cpuTime() - cpu0) / float64(n)}
	x.PerKey = (heap() - h0) / float64(n)
	if w.late() {
		time.Sleep(10 * time.Second)
		for i := range 1000 { // some libraries sweep only when used
			allow("late-" + strconv.Itoa(i&7))
		}
		x.Idle = (heap() - h0) / float64(n)
	}
	x.Peak = peakRSS()
	runtime.KeepAlive(allow)
	return x
}

func peakRSS() float64 {
	b, err := os.ReadFile("/proc/self/status")
	must(err)
	for _, l := range strings.Split(string(b), "\n") {
		if v, ok := strings.CutPrefix(l, "VmHWM:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(v)[0], 64)
			must(err)
			return kb / 1024
		}
	}
	return 0
}
