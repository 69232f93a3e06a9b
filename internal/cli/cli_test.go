package cli

import (
	"net"
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

// An address that cannot be listened on is told apart from one that another process holds.
func TestGatewayAddresses(t *testing.T) {
	held, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	for address, want := range map[string]string{
		held.Addr().String(): "another process may hold the address",
		"8080":               "name addresses of this machine as HOST:PORT",
	} {
		_, stderr, exit := command(t, "gateway", "--demo", "--listen", address, "--admin", "127.0.0.1:0")
		if exit != ExitFailed || !strings.Contains(stderr, want) {
			t.Errorf("--listen %s: exit %d\n%s\nwant %q", address, exit, stderr, want)
		}
	}
}
