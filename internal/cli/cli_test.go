package cli

import (
	"strings"
	"testing"
)

// A mistake in a command leads to the help of as much of it as was understood.
func TestUsageNamesTheHelp(t *testing.T) {
	for args, want := range map[string]string{
		"gatway":                    "run escapement --help",
		"gateway":                   "run escapement gateway --help",
		"drill":                     "run escapement drill --help",
		"drill retry-storm --stepp": "run escapement drill retry-storm --help",
	} {
		stdout, stderr, exit := command(t, strings.Fields(args)...)
		if exit != ExitUsage || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("%q: exit %d\n%s%s\nwant %q", args, exit, stdout, stderr, want)
		}
	}
}
