package retrystorm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/plot"
	"github.com/escapement-io/escapement/tools/skewrun"
)

var thousand = escapement.PerSecond(1000)

// served tells this binary, when a drill starts it, to be the process under drill.
const served = "serve-under-drill"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == served {
		if err := Serve(context.Background(), os.Args[2], thousand, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func options() Options {
	return Options{Limit: thousand, Rate: UsualRate(thousand), Clients: 100, Step: -320 * time.Millisecond, For: needed(time.Second),
		Child: func(limiter string) []string { return []string{os.Args[0], served, limiter} }}
}

// Real processes, a clock that is really stepped, real sockets. The drill's own bounds are
// what is expected. Machines are noisy: the best of three counts.
func TestStorm(t *testing.T) {
	var rep *Report
	for range 3 {
		var err error
		rep, err = run(t.Context(), options(), []setup{{Naive, AtOnce, true}, {Naive, Budget, true}, {Ours, AtOnce, true}})
		if errors.Is(err, skewrun.ErrUnsupported) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := rep.Text(&text); err != nil {
			t.Fatal(err)
		}
		t.Log(text.String())
		if ours := rep.Phases[2]; ours.Refused > sameWithin {
			rep.problem("ours refuses %.1f %%", ours.Refused)
		}
		if rep.Held() {
			break
		}
	}
	if !rep.Held() {
		t.Errorf("three times: %q", rep.Problems)
	}
}

func TestAProcessThatDoesNotStartIsAnError(t *testing.T) {
	o := options()
	o.Child = func(string) []string { return []string{os.Args[0], served, "sundial"} }
	_, err := run(t.Context(), o, all[:1])
	if errors.Is(err, skewrun.ErrUnsupported) {
		t.Skip(err)
	}
	if err == nil || !strings.Contains(err.Error(), `no limiter is called "sundial"`) {
		t.Errorf("got %v", err)
	}
}

func TestEverythingWrongIsReported(t *testing.T) {
	o := Options{Limit: escapement.Rate{Count: -1, Per: time.Hour}, Rate: 100_000, Clients: -1, Step: 48 * time.Hour, For: time.Hour}
	_, err := Run(t.Context(), o)
	for _, want := range []string{"count", "a limit per", "100000 requests a second", "-1 clients", "a step of", "phases of"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no mention of %q: %v", want, err)
		}
	}
	for want, change := range map[string]func(*Options){
		"under a limit of 1000":         func(o *Options) { o.Rate = 1000 },
		"use 74 or more":                func(o *Options) { o.Clients = 73 },
		"a step of 0s":                  func(o *Options) { o.Step = 0 },
		"599 requests in a period of":   func(o *Options) { o.Rate = 599 },
		"phases of 3.599s; use 3.6s":    func(o *Options) { o.For -= time.Millisecond },
		"a limit per 0s":                func(o *Options) { o.Limit.Per = 0 },
		"0 requests a second; use 1 to": func(o *Options) { o.Rate = 0 },
	} {
		o := options()
		if err := o.Check(); err != nil {
			t.Fatal(err)
		}
		if change(&o); o.Check() == nil || !strings.Contains(o.Check().Error(), want) {
			t.Errorf("%v, want %q", o.Check(), want)
		}
	}
}

// The step falls where the server's clock is a tenth of a period into a half of one, when
// the counters of a whole period are filled.
func TestWhenTheStepIsMade(t *testing.T) {
	for _, per := range []time.Duration{500 * time.Millisecond, time.Second, 7 * time.Second} {
		o := Options{Limit: escapement.Rate{Count: 1, Per: per}}
		before := clock.Wall()
		d := o.stepAfter()
		passed := clock.Wall().Sub(before)
		into := time.Duration(before.Add(d).UnixNano()) % (per / 2)
		if d < settled(per) || d >= settled(per)+per/2 || passed < 0 || into > per/10 || into < per/10-passed {
			t.Errorf("per %v: after %v, %v into a half period", per, d, into)
		}
	}
}

func TestCharts(t *testing.T) {
	o := options()
	rep := Judge(&o, []Phase{phase(Naive, AtOnce, back, refusedWithin(0, 200*milli, 429, 200)), phase(Ours, Budget, back, fine), phase(Ours, Budget, 0, fine)})
	var b strings.Builder
	if err := plot.WriteGrid(&b, ".svg", Columns, rep.Charts()...); err != nil {
		t.Fatal(err)
	}
	for want, times := range map[string]int{"naive, immediate": 1, "escapement, httpretry": 1, "-320ms": 2, "attempts": 2, "admitted": 2, ">limit<": 2, "per 50ms": 2} {
		if n := strings.Count(b.String(), want); n != times {
			t.Errorf("%q stands %d times in the picture, want %d", want, n, times)
		}
	}
	c := rep.Charts()[0]
	for i, want := range []float64{2700, 2500} {
		s, total := c.Steps[i], 0.0
		for _, y := range s.Y {
			total += y
		}
		if total != want || len(s.X) != 50 || s.X[0] != -0.5 {
			t.Errorf("%s: %v in %d bins from %v s on, want %v", s.Name, total, len(s.X), s.X[0], want)
		}
	}
	if c.Levels[0].Y != 50 {
		t.Errorf("the limit is %v per bin", c.Levels[0].Y)
	}
}

// A client that retries at once makes as many attempts as the other at most, and none after
// an answer that is no refusal.
func TestAtOnce(t *testing.T) {
	for _, tt := range []struct{ answers, want int }{{1, 1}, {2, 2}, {4, 4}, {9, 4}} {
		n := 0
		var r Request
		send(t.Context(), atOnce{noting{answers(func(w http.ResponseWriter) {
			if n++; n < tt.answers {
				w.WriteHeader(http.StatusTooManyRequests)
			}
		})}}, "http://server/", &r)
		status := 200
		if tt.answers > attempts {
			status = 429
		}
		if n != tt.want || len(r.Attempts) != n || r.last() != status || r.Done < r.Attempts[n-1].Sent {
			t.Errorf("admitted at attempt %d: %+v", tt.answers, r)
		}
	}
	var r Request
	send(t.Context(), atOnce{noting{broken{}}}, "http://server/", &r)
	if len(r.Attempts) != 1 || r.last() != 0 || r.Done == 0 {
		t.Errorf("no answer: %+v", r)
	}
}

// answers is a transport that asks a function.
type answers func(http.ResponseWriter)

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	a(w)
	return w.Result(), nil
}

type broken struct{}

func (broken) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("reset") }
