package redisstore

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/redistest"
)

// faults is a network that can be told to cut connections.
type faults struct {
	before, after atomic.Bool // cut the next script call before or after it is written
	dials         atomic.Int64
}

func (f *faults) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	f.dials.Add(1)
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &faultConn{Conn: c, faults: f}, nil
}

type faultConn struct {
	net.Conn
	faults *faults
	deaf   atomic.Bool
}

// isTake tells decisions from the samples of the line.
func isTake(b []byte) bool {
	return bytes.Contains(b, []byte(takeScripts['f'].sha)) || bytes.Contains(b, []byte(listScript.sha))
}

func (c *faultConn) Write(b []byte) (int, error) {
	switch {
	case isTake(b) && c.faults.before.CompareAndSwap(true, false):
		c.Close()
		return 0, errors.New("cut before the write")
	case isTake(b) && c.faults.after.CompareAndSwap(true, false):
		c.deaf.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *faultConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.deaf.Load() {
		c.Close()
		return 0, errors.New("cut after the write")
	}
	return n, err
}

func one(t *testing.T, s *Store, c escapement.Claim) escapement.Answer {
	t.Helper()
	var a [1]escapement.Answer
	s.Decide(context.Background(), []escapement.Request{{Claims: []escapement.Claim{c}}}, a[:])
	return a[0]
}

// used is how many of a limit's units are taken.
func used(t *testing.T, s *Store, p *escapement.Plan, key string) int64 {
	t.Helper()
	var d escapement.Decision
	redistest.Eventually(t, "the store answers", func() bool {
		a := one(t, s, escapement.Claim{Plan: p, Key: key, Mode: escapement.Peek})
		if a.Outcome == escapement.Decided {
			d = a.Parts[0]
		}
		return a.Outcome == escapement.Decided
	})
	return d.Limit() - d.Remaining()
}

// yearly is a limit that gives nothing back while a test runs.
func yearly(name string, n int64) escapement.Limit {
	return escapement.Limit{Name: name, Algorithm: escapement.FixedWindow, Align: escapement.FirstUse, Rate: escapement.Rate{Count: n, Per: 1000 * time.Hour}}
}

// A reply that is lost leaves the outcome unknown, and the call is not sent again.
func TestALostReply(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	for _, c := range []struct {
		name  string
		arm   func(f *faults)
		taken int64
	}{
		{"cut after the write", func(f *faults) { f.after.Store(true) }, 2},
		{"cut before the write", func(f *faults) { f.before.Store(true) }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f faults
			s := open(t, Config{Addrs: []string{srv.Addr()}, Dial: f.dial})
			p := plan(t, yearly("lost", 1000))
			take(t, s, p, c.name, 1)
			c.arm(&f)
			a := one(t, s, escapement.Claim{Plan: p, Key: c.name, Cost: 1})
			if a.Outcome != escapement.Unknown || !errors.Is(a.Err, escapement.ErrStoreUnavailable) {
				t.Errorf("outcome %d, %v; want unknown", a.Outcome, a.Err)
			}
			if n := used(t, s, p, c.name); n != c.taken {
				t.Errorf("%d units are taken, want %d", n, c.taken)
			}
		})
	}
}

// A caller whose time is up does not cut the connection of its neighbour.
func TestANeighboursShortDeadline(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	var f faults
	s := open(t, Config{Addrs: []string{srv.Addr()}, Dial: f.dial})
	p := plan(t, yearly("shared", 1000))
	take(t, s, p, "k", 1)
	dials := f.dials.Load()
	srv.Stop()
	short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		var a [1]escapement.Answer
		s.Decide(short, []escapement.Request{{Claims: []escapement.Claim{{Plan: p, Key: "k", Cost: 1}}}}, a[:])
		if a[0].Outcome != escapement.Unknown || !errors.Is(a[0].Err, context.DeadlineExceeded) {
			t.Errorf("short: outcome %d, %v", a[0].Outcome, a[0].Err)
		}
		time.AfterFunc(50*time.Millisecond, srv.Continue)
	})
	if a := one(t, s, escapement.Claim{Plan: p, Key: "k", Cost: 1}); a.Outcome != escapement.Decided {
		t.Errorf("the neighbour: outcome %d, %v", a.Outcome, a.Err)
	}
	wg.Wait()
	if n := used(t, s, p, "k"); n != 3 {
		t.Errorf("%d units are taken, want 3", n)
	}
	if n := f.dials.Load(); n != dials {
		t.Errorf("%d connections were opened anew", n-dials)
	}
}

// A store that falls silent for 3 s: callers are answered in time, nothing piles up, what
// was reported as not run is not charged, and service resumes by itself.
func TestASilentStore(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	s := open(t, Config{Addrs: []string{srv.Addr()}, Deadline: 50 * time.Millisecond})
	p := plan(t, yearly("silent", 1_000_000_000))
	redistest.Eventually(t, "a decision", func() bool {
		return one(t, s, escapement.Claim{Plan: p, Key: "k", Cost: 1}).Outcome == escapement.Decided
	})
	base := used(t, s, p, "k")
	idle := runtime.NumGoroutine()
	var decided, unknown, notRun, slow, most atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				start := clock.Mono()
				a := one(t, s, escapement.Claim{Plan: p, Key: "k", Cost: 1})
				if clock.Since(start) > 2*time.Second {
					slow.Add(1)
				}
				switch a.Outcome {
				case escapement.Decided:
					decided.Add(1)
				case escapement.Unknown:
					unknown.Add(1)
				case escapement.NotRun:
					notRun.Add(1)
					time.Sleep(time.Millisecond)
				}
				raise(&most, int64(runtime.NumGoroutine()))
			}
		})
	}
	srv.Stop()
	time.Sleep(3 * time.Second)
	silent := decided.Load()
	srv.Continue()
	redistest.Eventually(t, "decisions again", func() bool { return decided.Load() > silent+100 })
	close(stop)
	wg.Wait()
	charged := used(t, s, p, "k") - base
	t.Logf("%d decided, %d unknown, %d not run, %d charged, at most %d goroutines over %d", decided.Load(), unknown.Load(), notRun.Load(), charged, most.Load(), idle)
	if charged < decided.Load() || charged > decided.Load()+unknown.Load() {
		t.Errorf("%d were charged, want %d to %d more by what is unknown", charged, decided.Load(), unknown.Load())
	}
	if unknown.Load() > 2*inFlight {
		t.Errorf("%d outcomes are unknown: more was sent to a silent store than may be under way", unknown.Load())
	}
	if slow.Load() > 0 {
		t.Errorf("%d decisions took over 2 s under a deadline of 50 ms", slow.Load())
	}
	if over := most.Load() - int64(idle); over > 200 {
		t.Errorf("%d goroutines more than at rest, for 64 callers", over)
	}
}

// Nothing is sent twice, whatever connections live through.
func TestChargedOnceUnderLoad(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	s := open(t, Config{Addrs: []string{srv.Addr()}, Connections: 4})
	p := plan(t, yearly("once", 1_000_000))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 200 {
				take(t, s, p, "k", 1)
			}
		})
	}
	wg.Wait()
	if n := used(t, s, p, "k"); n != 3200 {
		t.Errorf("%d units are taken, want 3200", n)
	}
}

func TestARestartedStore(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	s := open(t, Config{Addrs: []string{srv.Addr()}, Deadline: time.Second})
	p := plan(t, yearly("restart", 1000))
	take(t, s, p, "k", 1)
	srv.Kill()
	for range 20 {
		if a := one(t, s, escapement.Claim{Plan: p, Key: "k", Cost: 1}); a.Outcome == escapement.Decided || a.Err == nil {
			t.Fatalf("decided by nobody: %+v", a)
		}
	}
	if snap := s.Snapshot(); !snap.Primaries[0].Open {
		t.Errorf("the breaker is closed after 20 failures: %+v", snap.Primaries[0])
	}
	srv.Restart(t)
	if n := used(t, s, p, "k"); n != 0 {
		t.Errorf("%d units are taken in an empty store", n)
	}
	if snap := s.Snapshot(); snap.Primaries[0].Open || !snap.Known {
		t.Errorf("after the restart: %+v", snap)
	}
}

// A demoted primary refuses: nothing was charged, and trying again may help.
func TestAReplicaRefuses(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	s := open(t, Config{Addrs: []string{srv.Addr()}})
	p := plan(t, yearly("replica", 1000))
	take(t, s, p, "k", 1)
	srv.Must(t, "REPLICAOF", "127.0.0.1", "1")
	a := one(t, s, escapement.Claim{Plan: p, Key: "k", Cost: 1})
	if a.Outcome != escapement.NotRun || !errors.Is(a.Err, escapement.ErrStoreUnavailable) || !strings.Contains(a.Err.Error(), "READONLY") {
		t.Errorf("outcome %d, %v", a.Outcome, a.Err)
	}
	srv.Must(t, "REPLICAOF", "NO", "ONE")
	if n := used(t, s, p, "k"); n != 1 {
		t.Errorf("%d units are taken, want 1", n)
	}
}

// A full server refuses the first write of a script, so nothing is charged by halves.
func TestAFullServer(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	s := open(t, Config{Addrs: []string{srv.Addr()}})
	p, q := plan(t, yearly("full", 1000)), plan(t, yearly("fuller", 1000))
	take(t, s, p, "k", 1)
	srv.Must(t, "CONFIG", "SET", "maxmemory", "1")
	var a [1]escapement.Answer
	s.Decide(context.Background(), []escapement.Request{{Claims: []escapement.Claim{{Plan: p, Key: "k", Cost: 1}, {Plan: q, Key: "k", Cost: 1}}}}, a[:])
	if a[0].Outcome != escapement.NotRun || a[0].Err == nil {
		t.Errorf("outcome %d, %v", a[0].Outcome, a[0].Err)
	}
	srv.Must(t, "CONFIG", "SET", "maxmemory", "0")
	if n, m := used(t, s, p, "k"), used(t, s, q, "k"); n != 1 || m != 0 {
		t.Errorf("%d and %d units are taken, want 1 and 0", n, m)
	}
}

func TestRefusalsProveThatNothingRan(t *testing.T) {
	for text, want := range map[string]bool{
		"NOSCRIPT No matching script. Please use EVAL.":                                       true,
		"MOVED 3999 127.0.0.1:6381":                                                           true,
		"ASK 3999 127.0.0.1:6381":                                                             true,
		"TRYAGAIN Multiple keys request during rehashing of slot":                             true,
		"CLUSTERDOWN The cluster is down":                                                     true,
		"LOADING Redis is loading the dataset in memory":                                      true,
		"READONLY You can't write against a read only replica. script: x, on @user_script:1.": true,
		"ERR Error running script (call to f_x): @user_script:40: @user_script: 40: -OOM command not allowed when used memory": true,
		"BUSY Redis is busy running a script.":                                    true,
		"ERR Error running script (call to f_x): @user_script:3: something broke": false,
		"UNBLOCKED client unblocked via CLIENT UNBLOCK":                           false,
	} {
		if got := refused(text); got != want {
			t.Errorf("%q: refused %v, want %v", text, got, want)
		}
	}
}

// Where scripts may not ask for the time, the caller's own clock dates decisions if it is
// known well enough, by its lower bound; else nothing is run.
func TestTimeForbidden(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	srv.Must(t, "ACL", "SETUSER", "limited", "on", ">secret", "~*", "+@all", "-time")
	at := algo.Wall(1_780_000_000_000_000_000)
	wide := atomic.Int64{}
	bound := func() clock.Interval {
		return clock.Interval{Earliest: at, Latest: at + algo.Wall(wide.Load()), State: clock.Synchronised}
	}
	cfg := Config{Addrs: []string{srv.Addr()}, Username: "limited", Password: "secret", Bound: bound}
	s := open(t, cfg)
	if f := s.Findings(); len(f) != 1 || !strings.Contains(f[0], "TIME") {
		t.Errorf("findings: %q", f)
	}
	p := plan(t, escapement.Limit{Name: "own", Rate: escapement.PerSecond(10)})
	wide.Store(int64(10 * time.Millisecond))
	if d := take(t, s, p, "k", 1); int64(d.At()) != int64(at)/1000 {
		t.Errorf("dated %d, want the lower bound %d", d.At(), int64(at)/1000)
	}
	wide.Store(int64(11 * time.Millisecond))
	if a := one(t, s, escapement.Claim{Plan: p, Key: "k", Cost: 1}); a.Outcome != escapement.NotRun {
		t.Errorf("an error above a tenth of the emission interval: %+v", a)
	}
	cfg.Bound = nil
	if a := one(t, open(t, cfg), escapement.Claim{Plan: p, Key: "k", Cost: 1}); a.Outcome != escapement.NotRun {
		t.Errorf("without bounds: %+v", a)
	}
}

func TestUserAndDatabase(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	srv.Must(t, "ACL", "SETUSER", "app", "on", ">secret", "~esc:*", "+@all")
	s := open(t, Config{Addrs: []string{srv.Addr()}, Username: "app", Password: "secret", DB: 3})
	take(t, s, plan(t, perHour("login", 3)), "k", 1)
	if n := srv.Must(t, "INFO", "keyspace"); !strings.Contains(n, "db3:keys=3") {
		t.Errorf("keyspace: %q", n)
	}
	if _, err := Open(Config{Addrs: []string{srv.Addr()}, Username: "app", Password: "wrong"}); err == nil {
		t.Error("a wrong password is accepted")
	}
}

func raise(to *atomic.Int64, n int64) {
	for old := to.Load(); n > old && !to.CompareAndSwap(old, n); old = to.Load() {
	}
}
