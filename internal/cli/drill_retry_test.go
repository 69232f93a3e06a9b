package cli

import (
	"strings"
	"testing"
)

func TestRetryStormUsage(t *testing.T) {
	for args, wants := range map[string][]string{
		"--limit many":        {"--limit many", "write it as 1000/1s"},
		"--limit 1000":        {"use a period"},
		"--limit 1000/1h":     {"a limit per 1h0m0s"},
		"--rate 1000":         {"under a limit of 1000"},
		"--clients 10":        {"use 74 or more"},
		"--step 0s":           {"a step of 0s"},
		"--for 1s":            {"phases of 1s; use 3.6s"},
		"--plot x.pdf":        {".pdf"},
		"--limit x --rate -1": {"--limit x", "-1 requests a second"},
		"--plot x.pdf --limit 10 --step -1us --for 1h --clients 0 --rate 9000": {
			".pdf", "use a period", "a step of -1µs", "phases of 1h", "0 clients", "9000 requests a second"},
	} {
		stdout, stderr, exit := command(t, append([]string{"drill", "retry-storm"}, strings.Fields(args)...)...)
		for _, want := range wants {
			if exit != ExitUsage || !strings.Contains(stderr, want) || stdout != "" {
				t.Errorf("%q: exit %d\n%s%s\nwant %q", args, exit, stdout, stderr, want)
			}
		}
	}
}

func TestRetryStormSaysWhatIsMissing(t *testing.T) {
	t.Setenv("CC", "no-such-compiler")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, stderr, exit := command(t, "drill", "retry-storm")
	if exit != ExitFailed || !strings.Contains(stderr, "install gcc") || !strings.Contains(stderr, "TestHerd") {
		t.Errorf("exit %d\n%s", exit, stderr)
	}
}
