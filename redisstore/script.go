package redisstore

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"slices"
	"strings"
)

//go:embed lua/*.lua
var sources embed.FS

// script is a text that servers know by its hash.
type script struct{ text, sha string }

// newScript joins files of lua/, where a part that is no file is taken as it stands.
func newScript(parts ...string) script {
	var b strings.Builder
	for _, part := range parts {
		if text, err := sources.ReadFile("lua/" + part + ".lua"); err == nil {
			part = string(text)
		}
		b.WriteString(strip(part))
	}
	sum := sha1.Sum([]byte(b.String()))
	return script{b.String(), hex.EncodeToString(sum[:])}
}

// strip takes out comments and indentation, which every server would keep.
func strip(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "--") {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// Parts of the scripts that convert records. The list makes what only shared records need
// when it meets one; scripts that share make it at once.
var (
	states = []string{"prelude", "bucket", "pacing", "fixed", "sliding", "ring", "log"}
	ahead  = []string{"tail", "lease_fixed", "lease_rolling", "lease_bucket", "lent"}

	lists  = slices.Concat(states, []string{"local function makeExtra()\n"}, ahead, []string{"extra", "end\n", "record"})
	shares = slices.Concat(states, ahead, []string{"local function makeExtra()\n", "extra", "end\n", "record"})
)

// The scripts. Claims that take, of one plan, have a short one per algorithm.
var (
	listScript    = newScript(slices.Concat(lists, []string{"claim", "list"})...)
	lendScript    = newScript(slices.Concat(shares, []string{"args", "lend"})...)
	collectScript = newScript(slices.Concat(shares, []string{"delayed", "args", "collect"})...)

	takeScripts = map[byte]script{
		'b': newScript("takes_bucket"),
		'p': takeScript("local kind, make, judge, patience = 'p', bucketPlan, takePacing, math.huge\n", "bucket", "pacing"),
		'f': takeScript("local kind, make, judge, patience = 'f', fixedPlan, takeFixed, nil\nif string.byte(ARGV[2]) == 99 then make = calendarPlan end\n", "fixed"),
		's': takeScript("local kind, make, judge, patience = 's', slidingPlan, takeSliding, nil\n", "sliding"),
		'r': newScript("takes_ring"),
		'l': takeScript("local kind, make, judge, patience = 'l', logPlan, takeLog, nil\n", "log"),
	}
)

func takeScript(choice string, files ...string) script {
	parts := append([]string{"prelude"}, files...)
	return newScript(append(parts, choice, "takes")...)
}
