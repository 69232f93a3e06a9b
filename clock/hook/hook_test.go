package hook

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement/clock"
)

func step(size time.Duration) clock.Event {
	const at = int64(1_800_000_000_000_000_000)
	return clock.Event{Kind: clock.Step, Level: clock.Critical, Size: size, Width: 200, Cause: "the wall clock was set",
		Before: at, After: at + int64(size)}
}

// start runs a hook for the length of a test.
func start(t *testing.T, h *Hook) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { h.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
}

func must(t *testing.T, cfg Config) *Hook {
	t.Helper()
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// calls waits until the hook has made n calls.
func calls(t *testing.T, h *Hook, n uint64) Stats {
	t.Helper()
	for range 2000 {
		if s := h.Stats(); s.Called >= n {
			return s
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("no %d calls in ten seconds: %+v", n, h.Stats())
	return Stats{}
}

func TestWebhookGetsThePayload(t *testing.T) {
	got := make(chan Payload, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var p Payload
		if err := json.NewDecoder(r.Body).Decode(&p); err != nil || r.Method != http.MethodPost {
			t.Errorf("%s: %v", r.Method, err)
		}
		got <- p
	}))
	defer srv.Close()
	h := must(t, Config{Webhook: srv.URL})
	for range 4 { // before it runs: they wait, one of them
		h.Notify(step(time.Second))
	}
	h.Notify(step(-320 * time.Millisecond))
	start(t, h)
	p := <-got
	if p.Kind != clock.Step || p.Direction != "backward" || p.SizeMS != -320 || p.Suppressed != 4 || p.PID != os.Getpid() ||
		p.WallBefore != "2027-01-15T08:00:00Z" || p.WallAfter != "2027-01-15T07:59:59.68Z" {
		t.Errorf("payload %+v", p)
	}
	if s := calls(t, h, 1); s.Failed != 0 || s.Suppressed != 4 {
		t.Errorf("%+v", s)
	}
}

func TestEventsWithinThePauseAreReportedAfterIt(t *testing.T) {
	got := make(chan Payload, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var p Payload
		_ = json.NewDecoder(r.Body).Decode(&p)
		got <- p
	}))
	defer srv.Close()
	h := must(t, Config{Webhook: srv.URL, Every: 300 * time.Millisecond})
	start(t, h)
	h.Notify(step(time.Second))
	<-got
	for i := range 10 {
		h.Notify(step(time.Duration(i+1) * time.Minute))
	}
	if p := <-got; p.SizeMS != 600_000 || p.Suppressed != 9 {
		t.Errorf("after the pause: %+v, want the last of ten and nine suppressed", p)
	}
}

func TestOnlyWhatWasAskedForIsReported(t *testing.T) {
	h := must(t, Config{Webhook: "http://127.0.0.1:1", MinSize: 100 * time.Millisecond})
	h.Notify(step(99 * time.Millisecond))
	h.Notify(clock.Event{Kind: clock.Suspend, Size: time.Hour})
	if _, some := h.next(); some {
		t.Error("a small step or a suspend is waiting to be reported")
	}
	h = must(t, Config{Webhook: "http://127.0.0.1:1", Kinds: []clock.Kind{clock.Switched}})
	h.Notify(clock.Event{Kind: clock.Switched})
	if _, some := h.next(); !some {
		t.Error("an event without a size was left out for being small")
	}
}

func TestExecGetsEnvironmentAndInput(t *testing.T) {
	dir := t.TempDir()
	h := must(t, Config{Exec: []string{"sh", "-c", `cat >"$0/in"; env | grep ^ESCAPEMENT_CLOCK >"$0/env"`, dir}})
	start(t, h)
	h.Notify(step(-50 * time.Millisecond))
	if s := calls(t, h, 1); s.Failed != 0 {
		t.Fatalf("%+v", s)
	}
	in, err := os.ReadFile(filepath.Join(dir, "in"))
	if err != nil {
		t.Fatal(err)
	}
	var p Payload
	if err := json.Unmarshal(in, &p); err != nil || p.SizeMS != -50 {
		t.Errorf("%v, %+v", err, p)
	}
	env, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"KIND=step", "LEVEL=critical", "DIRECTION=backward", "SIZE_MS=-50", "CAUSE=the wall clock was set",
		"WALL_BEFORE=2027-01-15T08:00:00Z", "WALL_AFTER=2027-01-15T07:59:59.95Z", "SUPPRESSED=0"} {
		if !strings.Contains(string(env), "ESCAPEMENT_CLOCK_"+want+"\n") {
			t.Errorf("%s is missing in:\n%s", want, env)
		}
	}
}

func TestFailuresAreCountedAndExplained(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer refusing.Close()
	moved := httptest.NewServer(http.RedirectHandler(refusing.URL, http.StatusFound))
	defer moved.Close()
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer silent.Close()
	for _, c := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"a refusal", Config{Webhook: refusing.URL + "/?token=secret"}, "418"},
		{"a redirect", Config{Webhook: moved.URL}, "302"},
		{"silence", Config{Webhook: silent.URL + "/?token=secret", Timeout: 30 * time.Millisecond}, "deadline"},
		{"no such program", Config{Exec: []string{"no-such-program-here", "secret"}}, "no-such-program-here"},
		{"a failing program", Config{Exec: []string{"sh", "-c", "echo sorry; exit 3"}}, "exit status 3: sorry"},
		{"a program with children that hangs", Config{Exec: []string{"sh", "-c", "sleep 600 & sleep 600"}, Timeout: 30 * time.Millisecond}, "time allowed"},
	} {
		told := make(chan error, 1)
		c.cfg.Failed = func(err error) { told <- err }
		h := must(t, c.cfg)
		start(t, h)
		h.Notify(step(time.Second))
		s := calls(t, h, 1)
		if err := <-told; err.Error() != s.LastError {
			t.Errorf("%s: Failed was told %v, the last error is %s", c.name, err, s.LastError)
		}
		if s.Failed != 1 || !strings.Contains(s.LastError, c.want) {
			t.Errorf("%s: %+v, want an error with %q", c.name, s, c.want)
		}
		if strings.Contains(s.LastError, "secret") {
			t.Errorf("%s: the error tells a secret: %s", c.name, s.LastError)
		}
	}
}

func TestConfigReportsEveryProblemAtOnce(t *testing.T) {
	_, err := New(Config{Exec: []string{"x"}, Webhook: "ftp://host", Kinds: []clock.Kind{"freeze"}, Every: -1})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"either exec or webhook", "not an http", `"freeze"`, "every"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
}
