//go:build unix

package clock_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/escapement-io/escapement/clock"
)

var stormFor = flag.Duration("storm", 20*time.Second, "how long a process is starved; the long form is 10m")

// stormChild tells this binary to watch its clocks while it is being stopped.
const stormChild = "CLOCK_TEST_STORM"

func TestMain(m *testing.M) {
	if os.Getenv(stormChild) != "" {
		if err := endure(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// endure watches until its input ends, then prints what it has seen.
func endure() error {
	g, err := clock.NewGuard(clock.Config{CheckEvery: 5 * time.Millisecond})
	if err != nil {
		return err
	}
	var events []clock.Event
	g.Subscribe(func(e clock.Event) {
		if e.Kind != clock.Unclear {
			events = append(events, e)
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	running := make(chan struct{})
	go func() { g.Run(ctx); close(running) }()
	fmt.Println("ready")
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
	}
	cancel()
	<-running
	return json.NewEncoder(os.Stdout).Encode(struct {
		Events []clock.Event
		Tally  clock.Tally
	}{events, g.Snapshot().Tally})
}

// A process that is stopped and continued all the time, for up to 200 ms each, sees no step.
func TestStormOfStopsHasNoEvents(t *testing.T) {
	t.Parallel()
	d := *stormFor
	if testing.Short() {
		d = min(d, 2*time.Second)
	}
	seed := seedOf(t)
	r := rand.New(rand.NewPCG(seed, 9))
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), stormChild+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(pipe)
	if line, err := out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("it said %q, %v", line, err)
	}
	stops := 0
	for began := clock.Mono(); clock.Since(began) < d; stops++ {
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(r.Int64N(int64(200 * time.Millisecond))))
		if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(r.Int64N(int64(30 * time.Millisecond))))
	}
	in.Close()
	var seen struct {
		Events []clock.Event
		Tally  clock.Tally
	}
	if err := json.NewDecoder(out).Decode(&seen); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d stops in %v: %d checks, %d unclear", stops, d, seen.Tally.Checks, seen.Tally.Unclear)
	for _, e := range seen.Events {
		t.Errorf("without a cause: %v", e)
	}
	if seen.Tally.Checks < 10 {
		t.Error("hardly a check was made: nothing was shown")
	}
}
