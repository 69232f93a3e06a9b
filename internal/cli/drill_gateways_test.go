package cli

import (
	"strings"
	"testing"
)

func TestTwoGatewaysUsage(t *testing.T) {
	for args, want := range map[string]string{
		"--instances 0":                        "0 instances",
		"--limit 0":                            "a limit of 0",
		"--per 1ms":                            "a window of 1ms",
		"--window round":                       `window "round"`,
		"--mode never":                         `mode "never"`,
		"--rate 9000":                          "9000 requests per second",
		"--for 1ms":                            "a run of 1ms",
		"--sync 0s":                            "an interval of 0s",
		"--window rolling --sync 700ms":        "sync",
		"--mode delayed --window rolling":      "sync",
		"--burst-from-idle --limit 40000":      "bursts of 80000",
		"--burst-from-idle --skew 1s":          "bursts and faults",
		"--skew 48h":                           "48h",
		"--kill-store 1h":                      "end of the store",
		"--kill-store 1s --kill-gateway 1s":    "gateway and store",
		"--failover 1s --step -320ms":          "wrong clocks",
		"--failover 1s --lag 2s":               "lags by 2s",
		"--instances 1 --kill-gateway 1s":      "the only gateway",
		"--plot x.pdf":                         ".pdf",
		"--window round --mode never --rate 0": "0 requests per second",
	} {
		stdout, stderr, exit := command(t, append([]string{"drill", "two-gateways"}, strings.Fields(args)...)...)
		if exit != ExitUsage || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("%q: exit %d\n%s%s\nwant %q", args, exit, stdout, stderr, want)
		}
	}
}
