package drill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement/tools/skewrun"
)

// served tells this binary, when the drill starts it, to be the process under drill.
const served = "ESCAPEMENT_TEST_SERVE"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && (os.Args[1] == "shared" || os.Args[1] == "skewed") {
		if err := ServeShared(context.Background(), perfect, os.Args[2], os.Args[1] == "skewed", os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	switch os.Getenv(served) {
	case "":
		os.Exit(m.Run())
	case "naive":
		if err := Serve(context.Background(), perfect, true, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "broken":
		fmt.Fprintln(os.Stderr, "out of order")
		os.Exit(1)
	}
}

// A real process whose clock is really stepped admits what it should, and its guard sees
// each step; the recipes beside it do not. Machines are noisy: the best of three counts.
func TestClockStep(t *testing.T) {
	t.Setenv(served, "naive")
	o := Options{Limit: perfect, Rate: 300, Phase: time.Second, Naive: true, Cache: t.TempDir(), Child: []string{os.Args[0]},
		Changes: []Change{{Step: -time.Hour}, {Step: time.Hour}, {Suspend: 300 * time.Millisecond}, {Drift: 200}}}
	var problems []string
	for range 3 {
		r, err := ClockStep(t.Context(), o)
		if errors.Is(err, skewrun.ErrUnsupported) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		rep := Judge(r)
		var text strings.Builder
		if err := rep.Text(&text); err != nil {
			t.Fatal(err)
		}
		t.Log(text.String())
		problems = rep.Problems
		if bucket := rep.Naive[0].Phases[2]; bucket.Ratio < 1.5 {
			problems = append(problems, fmt.Sprintf("the bucket on the wall clock minted nothing: %+v", bucket))
		}
		if spacing := rep.Naive[2].Phases[1]; spacing.Ratio > 0.5 {
			problems = append(problems, fmt.Sprintf("spacing by the wall clock was not starved: %+v", spacing))
		}
		if len(problems) == 0 {
			return
		}
	}
	t.Errorf("three times: %q", problems)
}

func TestAProcessThatDoesNotStartIsAnError(t *testing.T) {
	t.Setenv(served, "broken")
	o := Options{Limit: perfect, Rate: 300, Phase: time.Second, Cache: t.TempDir(), Child: []string{os.Args[0]}, Changes: []Change{{Step: time.Second}}}
	_, err := ClockStep(t.Context(), o)
	if errors.Is(err, skewrun.ErrUnsupported) {
		t.Skip(err)
	}
	if err == nil || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("got %v", err)
	}
}
