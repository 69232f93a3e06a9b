package main

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/escapement-io/escapement/bench/stats"
)

// The gateway against what it stands on: the bare ReverseProxy with the same buffer pool,
// and net/http that does nothing but answer 429. wrk is the client; everything shares
// the machine, and each case follows its floor directly.

var body = strings.Repeat("x", 128)

// serve is a child that listens on a free loopback port and prints it.
func serve(as string) {
	kind, upstream, _ := strings.Cut(as, "@")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	var h http.Handler
	switch kind {
	case "backend":
		h = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) })
	case "proxy":
		to, err := url.Parse("http://" + upstream)
		must(err)
		h = &httputil.ReverseProxy{
			Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(to); r.SetXForwarded() },
			Transport:  &http.Transport{MaxIdleConns: 512, MaxIdleConnsPerHost: 512, DisableCompression: true},
			BufferPool: &pool{},
			ErrorLog:   log.New(io.Discard, "", 0), // wrk drops its last requests
		}
	case "refuser":
		h = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, `{"type":"about:blank","title":"Quota exceeded","status":429}`)
		})
	default:
		fmt.Fprintln(os.Stderr, "bench: no server", kind)
		os.Exit(2)
	}
	fmt.Println(l.Addr())
	must(http.Serve(l, h))
}

type pool struct{ p sync.Pool }

func (p *pool) Get() []byte {
	if b, ok := p.p.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 32<<10)
}

func (p *pool) Put(b []byte) { p.p.Put(&b) }

// server is a child process under load.
type server struct {
	name, addr string
	cmd        *exec.Cmd
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

func spawn(name string, cmd *exec.Cmd, addr func(io.Reader) string) *server {
	out, err := cmd.StdoutPipe()
	must(err)
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	must(cmd.Start())
	return &server{name: name, addr: addr(out), cmd: cmd}
}

func self(as string) *server {
	return spawn(as, exec.Command(os.Args[0], "-serve", as), func(r io.Reader) string {
		var addr string
		_, err := fmt.Fscanln(r, &addr)
		must(err)
		return addr
	})
}

const gatewayConfig = `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
consumers: {header: X-Client, trusted: [127.0.0.0/8]}
limits:
  per-client: {algorithm: token_bucket, count: %d, per: 1h, key: [consumer_name]}
routes:
  - uri: /*
    limits: [per-client]
    upstream: {type: roundrobin, nodes: {"%s": 1}}
`

func measureGateway(r *report, name string, rounds int) {
	if _, err := exec.LookPath("wrk"); err != nil {
		fmt.Fprintln(os.Stderr, "bench: the gateway workloads need wrk (Debian package wrk)")
		os.Exit(1)
	}
	if rounds == 0 {
		rounds = 3
	}
	backend := self("backend")
	defer backend.stop()
	floor, limit := "proxy@"+backend.addr, 1_000_000_000
	if name == "gateway-refuse" {
		floor, limit = "refuser", 1
	}
	bare := self(floor)
	defer bare.stop()
	bare.name, _, _ = strings.Cut(bare.name, "@")
	bare.name = map[string]string{"proxy": "ReverseProxy + buffer pool", "refuser": "net/http answering 429"}[bare.name]
	our := startGateway(fmt.Sprintf(gatewayConfig, limit, backend.addr))
	defer our.stop()
	var cpu, rps [2][]float64
	for range rounds {
		for i, s := range []*server{bare, our} {
			c, q := wrk(s)
			cpu[i], rps[i] = append(cpu[i], c), append(rps[i], q)
		}
	}
	r.head(name+", wrk with 64 connections", nil)
	for i, s := range []*server{bare, our} {
		var ratios []float64
		for k := range cpu[i] {
			ratios = append(ratios, cpu[i][k]/cpu[0][k])
		}
		r.add(line{Peer: s.name, Workload: name, Procs: 2, CPU: stats.Median(cpu[i]), Ratio: ptr(stats.Median(ratios)), RPS: ptr(stats.Median(rps[i]))})
	}
	r.foot()
}

// startGateway builds the command once and starts it.
func startGateway(config string) *server {
	dir, err := os.MkdirTemp("", "bench")
	must(err)
	defer os.RemoveAll(dir)
	must(os.WriteFile(dir+"/gateway.yaml", []byte(config), 0o600))
	// In its own module: what the command needs is no business of this one.
	top, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/escapement-io/escapement").Output()
	must(err)
	build := exec.Command("go", "build", "-o", dir+"/escapement", "./cmd/escapement")
	build.Dir, build.Stderr = strings.TrimSpace(string(top)), os.Stderr
	must(build.Run())
	cmd := exec.Command(dir+"/escapement", "gateway", "-c", dir+"/gateway.yaml")
	pipe, err := cmd.StderrPipe()
	must(err)
	must(cmd.Start())
	s := &server{name: "escapement", cmd: cmd}
	lines := bufio.NewScanner(pipe)
	var log strings.Builder
	for s.addr == "" && lines.Scan() {
		fmt.Fprintln(&log, lines.Text())
		if addr, ok := strings.CutPrefix(lines.Text(), "gateway on http://"); ok {
			s.addr = addr
		}
	}
	if s.addr == "" {
		must(fmt.Errorf("the gateway did not start (%v):\n%s", cmd.Wait(), &log))
	}
	go io.Copy(io.Discard, pipe)
	return s
}

// wrk loads a server for two seconds and returns its processor nanoseconds per request
// and requests per second.
func wrk(s *server) (cpu, rps float64) {
	const secs = 2
	before := processorTime(s.cmd.Process.Pid)
	out, err := exec.Command("wrk", "-t2", "-c64", fmt.Sprintf("-d%ds", secs), "-H", "X-Client: one", "http://"+s.addr+"/").Output()
	must(err)
	used := processorTime(s.cmd.Process.Pid) - before
	m := regexp.MustCompile(`Requests/sec:\s+([\d.]+)`).FindSubmatch(out)
	if m == nil {
		must(fmt.Errorf("wrk said\n%s", out))
	}
	rps, err = strconv.ParseFloat(string(m[1]), 64)
	must(err)
	return used / (rps * secs) * 1e9, rps
}

// processorTime is the seconds (user and system) a process has used.
func processorTime(pid int) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(err)
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	u, err := strconv.ParseFloat(f[11], 64)
	must(err)
	y, err := strconv.ParseFloat(f[12], 64)
	must(err)
	return (u + y) / 100 // ticks of 10 ms on Linux
}
