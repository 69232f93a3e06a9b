//go:build unix

package redisstore

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/redistest"
)

var hostPause = flag.Duration("pause", 2*time.Second, "how long TestAWholeHostPauses stops the host")

// process is an instance in a process of its own.
type process struct {
	cmd    *exec.Cmd
	others []string // what it said but that it admitted
	end    func()
}

func startProcess(t *testing.T, addr string, a *admissions) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^$")
	cmd.Env = append(os.Environ(), instanceOf+"="+addr)
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
	p := &process{cmd: cmd}
	said := make(chan struct{})
	go func() {
		defer close(said)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if lines.Text() == "admitted" {
				a.add()
			} else {
				p.others = append(p.others, lines.Text())
			}
		}
	}()
	p.end = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = in.Close()
		<-said
		_ = cmd.Wait()
	})
	t.Cleanup(p.end)
	return p
}

// Both instances and their Redis are stopped and continued together: what passed while
// nobody ran is kept up to the capacity, nothing more is minted, and admission goes on at
// once.
func TestAWholeHostPauses(t *testing.T) {
	patiently(t, func() string { return pauseHost(t, *hostPause) })
}

func pauseHost(t *testing.T, pause time.Duration) (problem string) {
	srv := redistest.Start(t, redistest.Options{})
	var a admissions
	var ps [2]*process
	for i := range ps {
		ps[i] = startProcess(t, srv.Addr(), &a)
	}
	count := func() int { a.mu.Lock(); defer a.mu.Unlock(); return len(a.at) }
	redistest.Eventually(t, "somebody is admitted", func() bool { return count() > 0 })
	time.Sleep(time.Second)
	for _, p := range ps {
		if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	srv.Stop()
	time.Sleep(pause)
	srv.Continue()
	for _, p := range ps {
		if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(1500 * time.Millisecond)
	ended := clock.Mono()
	for _, p := range ps {
		p.end()
		if len(p.others) > 0 {
			t.Errorf("an instance said %q", p.others)
		}
	}
	a.began, a.ended = a.at[0], ended
	a.at = slices.DeleteFunc(a.at, func(at algo.Mono) bool { return at > ended }) // while they ended
	extra, gap := a.extra(), a.gap()
	least := 10 - int64(pause/(100*time.Millisecond)) - 5 // the pause less a capacity
	t.Logf("pause %v: %+d beyond right, longest gap %v", pause, extra, gap)
	if extra > 3 {
		t.Errorf("%+d admitted beyond right, want +3 at most", extra)
	}
	if extra < least || gap > pause+300*time.Millisecond {
		return fmt.Sprintf("%+d admitted beyond right and a gap of %v; want %+d at least and %v at most", extra, gap, least, pause+300*time.Millisecond)
	}
	return ""
}
