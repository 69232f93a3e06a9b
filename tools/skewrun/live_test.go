package skewrun_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/tools/skewrun"
)

// child tells this binary, when it is started under skewrun, to watch its clocks.
const child = "SKEWRUN_TEST_WATCH"

func TestMain(m *testing.M) {
	if os.Getenv(child) != "" {
		if err := watch(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// watch prints every event as a line of JSON until its input ends, and then the tally.
func watch() error {
	g, err := clock.NewGuard(clock.Config{})
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	g.Subscribe(func(e clock.Event) { _ = out.Encode(e) })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	back := time.Duration(0)
	go func() {
		defer close(done)
		for last := g.Now(); ctx.Err() == nil; {
			for range 1000 {
				now := g.Now()
				back = max(back, time.Duration(last-now))
				last = now
			}
			time.Sleep(time.Millisecond)
		}
	}()
	running := make(chan struct{})
	go func() { g.Run(ctx); close(running) }()
	fmt.Println(`{"kind":"ready"}`)
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
	}
	cancel()
	<-running
	<-done
	if back > 0 {
		return fmt.Errorf("guarded time went back by %v", back)
	}
	return nil
}

// A guard in a real process, whose wall and boot clock are really changed, sees each change
// once and as large as it was.
func TestGuardSeesWhatReallyHappens(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("skewrun is for linux/amd64")
	}
	dir := t.TempDir()
	path, err := skewrun.Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	ctl := filepath.Join(dir, "ctl")
	if err := skewrun.Control(t.Context(), path, ctl, "set", "0"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "run", "-s", ctl, "--", os.Args[0])
	cmd.Env = append(os.Environ(), child+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	events := bufio.NewScanner(out)
	next := func() clock.Event {
		t.Helper()
		for events.Scan() {
			var e clock.Event
			if err := json.Unmarshal(events.Bytes(), &e); err != nil {
				t.Fatalf("%s: %v", events.Bytes(), err)
			}
			if e.Kind != clock.Unclear { // a busy machine; the next check tells
				return e
			}
		}
		t.Fatalf("no more events: %v, %v", events.Err(), ctx.Err())
		return clock.Event{}
	}
	if e := next(); e.Kind != "ready" {
		t.Fatalf("first came %v", e)
	}
	for _, c := range []struct {
		verb, value string
		kind        clock.Kind
		size        time.Duration
	}{
		{"step", "+320ms", clock.Step, 320 * time.Millisecond},
		{"step", "-50ms", clock.Step, -50 * time.Millisecond},
		{"step", "-3600s", clock.Step, -time.Hour},
		{"suspend", "90s", clock.Suspend, 90 * time.Second},
		{"step", "+3600s", clock.Step, time.Hour},
		{"step", "+2ms", clock.Step, 2 * time.Millisecond},
	} {
		if err := skewrun.Control(ctx, path, ctl, c.verb, c.value); err != nil {
			t.Fatal(err)
		}
		if e := next(); e.Kind != c.kind || (e.Size-c.size).Abs() > time.Millisecond {
			t.Errorf("%s %s was seen as %v", c.verb, c.value, e)
		} else {
			t.Logf("%s %s: %v", c.verb, c.value, e)
		}
	}
	in.Close()
	for events.Scan() {
		t.Errorf("without a cause: %s", events.Bytes())
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
