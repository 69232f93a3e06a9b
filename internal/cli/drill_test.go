package cli

import (
	"slices"
	"strings"
	"testing"
)

func TestNumbersBelowZeroAreValues(t *testing.T) {
	got := joinNegative([]string{"drill", "clock-step", "--step", "-3600s", "--json", "--step", "+1s", "--step=-.5s", "--", "--step", "-x", "-1"})
	want := []string{"drill", "clock-step", "--step=-3600s", "--json", "--step", "+1s", "--step=-.5s", "--", "--step", "-x", "-1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDrillUsage(t *testing.T) {
	for args, want := range map[string]string{
		"":                               "--step",
		"--step soon":                    "expected duration",
		"--step -1h --limit many":        "not a whole number",
		"--step -1h --limit 100":         "use a period",
		"--step -1h --rate 100000":       "100000 requests a second",
		"--step -1h --phase 1ms":         "phases of 1ms",
		"--step -1h --plot x.pdf":        ".pdf",
		"--step 1us --step 1h --rate -1": "a step of 1µs",
	} {
		stdout, stderr, exit := command(t, append([]string{"drill", "clock-step"}, strings.Fields(args)...)...)
		if exit != ExitUsage || !strings.Contains(stderr, want) || strings.Contains(stdout, "phases") {
			t.Errorf("%q: exit %d\n%s%s\nwant %q", args, exit, stdout, stderr, want)
		}
	}
}

func TestCeilingUsage(t *testing.T) {
	for args, want := range map[string]string{
		"":                                      "--url",
		"--url gateway":                         "not one of a gateway",
		"--url http://h --header X":             "NAME:VALUE",
		"--url http://h --limit 100":            "use a period",
		"--url http://h --rate 1":               "hardly exceed",
		"--url http://h --for 1s":               "at least",
		"--url http://h --refused 200":          "status 200",
		"--url http://h --limit 2000000/1s":     "count 2000000",
		"--url http://h --limit 1000/1s":        "3000 requests a second",
		"--url http://h --burst -1":             "burst -1",
		"--url http://h --rate -5 --for -3600s": "-5 requests a second",
	} {
		stdout, stderr, exit := command(t, append([]string{"drill", "ceiling"}, strings.Fields(args)...)...)
		if exit != ExitUsage || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("%q: exit %d\n%s%s\nwant %q", args, exit, stdout, stderr, want)
		}
	}
}

// Nothing listens: no answer is no refusal.
func TestCeilingOfNothing(t *testing.T) {
	stdout, stderr, exit := command(t, "drill", "ceiling", "--url", "http://127.0.0.1:1/", "--for", "2s", "--limit", "20/1s", "--burst", "1", "--json")
	if exit != ExitFinding || !strings.Contains(stdout, `"failed":120`) || !strings.Contains(stdout, "120 of 120 requests failed") {
		t.Errorf("exit %d\n%s%s", exit, stdout, stderr)
	}
}

func TestDrillSaysWhatIsMissing(t *testing.T) {
	t.Setenv("CC", "no-such-compiler")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, stderr, exit := command(t, "drill", "clock-step", "--step", "-1h")
	if exit != ExitFailed || !strings.Contains(stderr, "replay") {
		t.Errorf("exit %d\n%s", exit, stderr)
	}
}
