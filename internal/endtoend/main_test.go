package endtoend

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/tools/skewrun"
)

// binary is the command under test.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "escapement")
	if err == nil {
		binary = filepath.Join(dir, "escapement")
		var out []byte
		if out, err = exec.Command("go", "build", "-o", binary, "../../cmd/escapement").CombinedOutput(); err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build of the command:", err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// upstream counts what a gateway let through, with the wall time of each arrival.
type upstream struct {
	*httptest.Server
	mu       sync.Mutex
	arrivals []time.Time
	byUser   map[string]int
}

func newUpstream(t *testing.T) *upstream {
	u := &upstream{byUser: map[string]int{}}
	u.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.arrivals = append(u.arrivals, clock.Wall())
		u.byUser[r.Header.Get("X-Consumer")]++
	}))
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) total() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.arrivals)
}

// windows counts the arrivals in each of so many windows of the wall clock.
func (u *upstream) windows(first time.Time, w time.Duration, windows int) []int {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := make([]int, windows)
	for _, at := range u.arrivals {
		if k := int(at.Sub(first) / w); !at.Before(first) && k < windows {
			n[k]++
		}
	}
	return n
}

// exactly says which window did not pass want. A request that is admitted at the end of a
// window may arrive in the next, never the other way round: so more than the windows up to
// one admit together fails the test at once.
func (u *upstream) exactly(t *testing.T, first time.Time, w time.Duration, windows, want int) (problem string) {
	t.Helper()
	sum := 0
	for k, n := range u.windows(first, w, windows) {
		t.Logf("window %d: %d", k+1, n)
		if sum += n; sum > want*(k+1) {
			t.Fatalf("%d windows passed %d, want at most %d", k+1, sum, want*(k+1))
		}
		if n != want {
			problem = fmt.Sprintf("window %d passed %d, want exactly %d", k+1, n, want)
		}
	}
	return problem
}

// patiently tries up to three times: a machine that is busy elsewhere makes the load fall
// behind, and what was not offered cannot pass.
func patiently(t *testing.T, try func() (problem string)) {
	t.Helper()
	var problem string
	for range 3 {
		if problem = try(); problem == "" {
			return
		}
		t.Log(problem)
	}
	t.Error(problem)
}

// gateway is a running gateway process.
type gateway struct {
	url, file string
	cmd       *exec.Cmd

	mu    sync.Mutex
	lines []string // of its log
}

func (g *gateway) log() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.lines, "\n")
}

func (g *gateway) keep(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lines = append(g.lines, line)
}

var serving = regexp.MustCompile(`^gateway on (http\S+)$`)

// skewed is a wall clock that processes can be run under, with flags of the tool's.
type skewed struct {
	tool, file string
	flags      []string
}

func (c *skewed) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, c.tool, slices.Concat([]string{"run"}, c.flags, []string{c.file, "--", name}, args)...)
}

func (c *skewed) step(ctx context.Context, d time.Duration) error {
	return skewrun.Control(ctx, c.tool, c.file, "step", fmt.Sprintf("%dms", d.Milliseconds()))
}

// start runs the gateway on a configuration in which UPSTREAM stands for u, under clk if
// there is one, and ends it with the test.
func start(t *testing.T, u *upstream, configuration string, clk *skewed) *gateway {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	configuration = strings.ReplaceAll(configuration, "UPSTREAM", strings.TrimPrefix(u.URL, "http://"))
	if err := os.WriteFile(file, []byte(configuration), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"gateway", "-c", file, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}
	ctx := context.Background()
	cmd := exec.CommandContext(ctx, binary, args...)
	if clk != nil {
		cmd = clk.command(ctx, binary, args...)
	}
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g := &gateway{cmd: cmd, file: file}
	lines := bufio.NewScanner(pipe)
	for g.url == "" && lines.Scan() {
		g.keep(lines.Text())
		if m := serving.FindStringSubmatch(lines.Text()); m != nil {
			g.url = m[1]
		}
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines.Scan() {
			g.keep(lines.Text())
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		<-drained
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Logf("gateway ended: %v\n%s", err, g.log())
		}
	})
	if g.url == "" {
		t.Fatalf("gateway did not start:\n%s", g.log())
	}
	return g
}

// offer sends requests of the consumers, in turn, at a fixed rate for d, whatever the
// answers, and returns how many were answered with each code.
func offer(t *testing.T, url string, rate int, d time.Duration, consumers ...string) map[uint16]int {
	t.Helper()
	var targets []vegeta.Target
	for _, c := range consumers {
		targets = append(targets, vegeta.Target{Method: "GET", URL: url, Header: http.Header{"X-Consumer": {c}}})
	}
	a := vegeta.NewAttacker(vegeta.MaxWorkers(256), vegeta.Timeout(10*time.Second))
	codes := map[uint16]int{}
	for r := range a.Attack(vegeta.NewStaticTargeter(targets...), vegeta.Rate{Freq: rate, Per: time.Second}, d, t.Name()) {
		codes[r.Code]++
		if r.Code == 0 {
			t.Logf("no answer: %s", r.Error)
		}
	}
	return codes
}

// answered fails the test if an answer is missing or is neither 200 nor 429. The load's
// own arithmetic may leave one in a thousand out; a request without an answer has code 0.
func answered(t *testing.T, codes map[uint16]int, offered int) {
	t.Helper()
	n := codes[200] + codes[429]
	if n < offered-1-offered/1000 || n > offered || len(codes) > 2 {
		t.Errorf("answers %v, want %d of 200 and 429", codes, offered)
	}
}

// boundary waits for the start of the next window of the wall clock and returns it.
func boundary(ctx context.Context, w time.Duration) time.Time {
	next := clock.Wall().Truncate(w).Add(w)
	for {
		wait := next.Sub(clock.Wall())
		if wait <= 0 {
			return next
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return next
		}
	}
}
