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

func TestDrillSaysWhatIsMissing(t *testing.T) {
	t.Setenv("CC", "no-such-compiler")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, stderr, exit := command(t, "drill", "clock-step", "--step", "-1h")
	if exit != ExitFailed || !strings.Contains(stderr, "replay") {
		t.Errorf("exit %d\n%s", exit, stderr)
	}
}
