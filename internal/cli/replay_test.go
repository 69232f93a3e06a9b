package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// command runs the command line.
func command(t *testing.T, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	var o, e bytes.Buffer
	exit = run(t.Context(), args, &Output{Out: &o, Err: &e})
	return o.String(), e.String(), exit
}

const oneTrace = `time,key,cost
2026-11-30T00:00:00Z,alice,1
2026-11-30T00:00:00.5Z,alice,1
2026-11-30T00:00:00.6Z,alice,1
2026-11-30T00:00:00.1Z,bob,1
garbage
2026-11-30T00:00:03Z,"O'Hara, ""x""",2
2026-11-30T00:00:04Z,bob,1
2026-11-30T00:00:05Z,alice,x
`

func TestReplayTrace(t *testing.T) {
	path := write(t, "trace.csv", oneTrace)
	stdout, stderr, exit := command(t, "replay", path, "--limit", "token_bucket 1/1s burst 2", "--compare", "rolling_window 2/10s")
	const want = `trace.csv: 6 requests in 9 lines (csv), 3 keys
  2026-11-30T00:00:00Z to 2026-11-30T00:00:04Z, 4s; at most 4 units in a second (2026-11-30T00:00:00Z)
  broken and left out: 2 lines
    line 6: too few columns
    line 9: the cost is not a whole number from 0 to 2^53-1
  out of order, taken at the latest time so far: 1 line, by up to 500ms
    line 5: 500ms before line 4

                 token_bucket 1/1s burst 2   rolling_window 2/10s
admitted                                 5                      5
refused                                  1                      1
refused share                      16.67 %                16.67 %
refused units                            1                      1
busiest second                           3                      3

== token_bucket 1/1s burst 2

limit token_bucket: token_bucket, 1 per 1s, burst 2, by key
  admitted        5
  refused         1 (16.67 %), 1 of 3 keys
  first refusal   2026-11-30T00:00:00.6Z, line 4, alice
  last refusal    2026-11-30T00:00:00.6Z, line 4, alice
  closest         0 of 2 left (100.0 % used), 2026-11-30T00:00:00.5Z, line 3, alice
  refuses nobody  from a burst of 3 on; now 2
   refused   admitted   key
         1          2   alice

== rolling_window 2/10s

limit rolling_window: rolling_window, 2 per 10s, by key
  admitted       5
  refused        1 (16.67 %), 1 of 3 keys
  first refusal  2026-11-30T00:00:00.6Z, line 4, alice
  last refusal   2026-11-30T00:00:00.6Z, line 4, alice
  closest        0 of 2 left (100.0 % used), 2026-11-30T00:00:00.5Z, line 3, alice
   refused   admitted   key
         1          2   alice
`
	if d := cmp.Diff(want, strings.ReplaceAll(stdout, path, "trace.csv")); d != "" || stderr != "" || exit != ExitFine {
		t.Errorf("exit %d, standard error %q, -want +got\n%s", exit, stderr, d)
	}
}

func TestReplayTraceJSON(t *testing.T) {
	path := write(t, "trace.csv", oneTrace)
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write([]byte(oneTrace))
	w.Close()
	packed := write(t, "trace.csv.gz", z.String())
	plain, _, _ := command(t, "replay", path, "--json", "--limit", "fixed_window 2 align day")
	unpacked, _, exit := command(t, "replay", packed, "--json", "--algorithm", "fixed_window", "--count", "2", "--align", "day")
	if strings.ReplaceAll(plain, path, "x") != strings.ReplaceAll(unpacked, packed, "x") {
		t.Errorf("compressed and in flags:\n%s\nplain and in one line:\n%s", unpacked, plain)
	}
	var doc struct {
		Input struct{ Lines, Requests, Broken, OutOfOrder int64 }
		Sets  []struct {
			Admitted, Refused int64
			Limits            []struct {
				Enough *struct {
					Field string
					Value int64
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(plain), &doc); err != nil || exit != ExitFine || strings.Count(plain, "\n") != 1 {
		t.Fatal(err, exit, plain)
	}
	if s := doc.Sets[0]; s.Admitted != 5 || s.Refused != 1 || s.Limits[0].Enough.Value != 3 || doc.Input.Lines != 9 {
		t.Errorf("%+v", doc)
	}
}

func TestReplayConfig(t *testing.T) {
	cfg := write(t, "c.yaml", `listen: 127.0.0.1:8080
consumers: {header: X-Consumer, trusted: [127.0.0.0/8]}
limits:
  per-client: {algorithm: rolling_window, count: 2, per: 10s, key: [remote_addr]}
  per-user: {algorithm: fixed_window, count: 3, per: 1h, key: [consumer_name]}
  all: {algorithm: gcra, count: 10, per: 1s, key: [], shadow: true}
routes:
  - {id: a, uri: /a, limits: [per-client, all], upstream: {type: roundrobin, nodes: {"127.0.0.1:8081": 1}}}
  - {id: b, uri: /b, limits: [per-user], upstream: {type: roundrobin, nodes: {"127.0.0.1:8081": 1}}}
`)
	log := write(t, "access.log", strings.Repeat(`192.0.2.1 - - [30/Nov/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 1`+"\n", 5)+
		`192.0.2.2 - - [30/Nov/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 1`+"\n")
	_, stderr, exit := command(t, "replay", log, "-c", cfg)
	if exit != ExitUsage || !strings.Contains(stderr, "choose with --limit NAME or --route ID: per-client, per-user, all") {
		t.Errorf("exit %d, %s", exit, stderr)
	}
	stdout, stderr, exit := command(t, "replay", log, "-c", cfg, "--route", "a")
	if exit != ExitFine || stderr != "" || !strings.Contains(stdout, "admitted 3, refused 3") || !strings.Contains(stdout, "limit all: gcra, 10 per 1s, all together, shadow") {
		t.Errorf("exit %d, %s\n%s", exit, stderr, stdout)
	}
	stdout, stderr, exit = command(t, "replay", log, "-c", cfg, "--limit", "per-user")
	if exit != ExitFine || !strings.Contains(stderr, "counts by [consumer_name], which the trace does not have; its field remote_addr is taken instead") || !strings.Contains(stdout, "2 (33.33 %), 1 of 2 keys") {
		t.Errorf("exit %d, %s\n%s", exit, stderr, stdout)
	}
	broken := write(t, "broken.yaml", "limits: {x: {count: 0, per: 1s}}\n")
	stdout, stderr, exit = command(t, "replay", log, "-c", broken)
	if exit != ExitFinding || stdout != "" || !strings.Contains(stderr, "0 is below 1") {
		t.Errorf("exit %d, %s\n%s", exit, stderr, stdout)
	}
}

func TestReplayUsage(t *testing.T) {
	path := write(t, "trace.csv", oneTrace)
	for _, x := range []struct {
		args []string
		exit int
		want string
	}{
		{[]string{path}, ExitUsage, "no limit to try"},
		{[]string{path, "--limit", "fixed_window x"}, ExitUsage, "not a whole number"},
		{[]string{path, "--limit", "fixed_window 5/1s burst 7"}, ExitUsage, "only token_bucket and gcra have a burst"},
		{[]string{path, "--limit", "gcra 5/1s", "--key", "nope"}, ExitUsage, `there is no field "nope"; there are "time", "key", "cost"`},
		{[]string{path, "--limit", "gcra 5/1s", "--plot", "x.pdf"}, ExitUsage, ".png or .svg"},
		{[]string{path, "--limit", "gcra 5/1s", "--algorithm", "gcra"}, ExitUsage, "both --limit and --algorithm"},
		{[]string{path, "--limit", "gcra 5/1s", "--format", "xml"}, ExitUsage, "--format"},
		{[]string{path, "--limit", "gcra 5/1s", "--strict"}, ExitFinding, "line 6: too few columns"},
		{[]string{path + ".gone", "--limit", "gcra 5/1s"}, ExitFailed, "no such file"},
		{[]string{write(t, "empty", ""), "--limit", "gcra 5/1s"}, ExitFailed, "empty"},
		{[]string{write(t, "text", "once upon\na time\n"), "--limit", "gcra 5/1s"}, ExitFailed, "neither CSV, JSON lines nor an access log"},
		{[]string{path, "--format", "cases"}, ExitFailed, "line 1: not a JSON object"},
	} {
		stdout, stderr, exit := command(t, append([]string{"replay"}, x.args...)...)
		if exit != x.exit || !strings.Contains(stderr, x.want) || stdout != "" {
			t.Errorf("%q: exit %d, want %d\n%s%s", x.args[1:], exit, x.exit, stderr, stdout)
		}
	}
}

func TestReplayPlot(t *testing.T) {
	path, picture := write(t, "trace.csv", oneTrace), filepath.Join(t.TempDir(), "x.png")
	if _, stderr, exit := command(t, "replay", path, "--limit", "gcra 5/1s", "--plot", picture); exit != ExitFine {
		t.Fatal(stderr)
	}
	f, err := os.Open(picture)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := png.Decode(f); err != nil {
		t.Error(err)
	}
}

func TestReplayCases(t *testing.T) {
	const one = `{"id":"%s","algorithm":"fixed_window","limit":{"count":1,"window_ms":60000},"events":[{"t_ms":0}],"expect":[{"remaining":%d}]}` + "\n"
	good := write(t, "good.jsonl", "# two cases\n"+fmt.Sprintf(one, "a", 0)+`{"id":"b","events":[{"t_ms":0,"op":"failover"}]}`+"\n")
	stdout, stderr, exit := command(t, "replay", "--store", "memory", "--json", good)
	const want = `{"cases":2,"passed":1,"failed":[],"skipped":[{"id":"b","reason":"needs a real store fault: a failover to a replica"}]}` + "\n"
	if stdout != want || stderr != "" || exit != ExitFine {
		t.Errorf("exit %d, %s\n%s", exit, stderr, stdout)
	}
	bad := write(t, "bad.jsonl", fmt.Sprintf(one, "a", 1))
	stdout, _, exit = command(t, "replay", bad)
	if exit != ExitFinding || stdout != "1 cases: 0 passed, 1 failed, 0 skipped\n\nfailed\n  a: event 0: remaining: want 1, got 0\n" {
		t.Errorf("exit %d, %s", exit, stdout)
	}
	wrong := write(t, "wrong.jsonl", fmt.Sprintf(one, "a", 1)+`{"id":"c","events":[{"t_ms":0,"op":"fly"}]}`)
	stdout, stderr, exit = command(t, "replay", wrong)
	if exit != ExitFailed || stdout != "" || !strings.Contains(stderr, `line 2: event 0: unknown op "fly"`) {
		t.Errorf("exit %d, %s%s", exit, stderr, stdout)
	}
}

// TestReplayDocument runs the commands that docs/replay.md shows and compares what it says
// they print.
func TestReplayDocument(t *testing.T) {
	doc, err := os.ReadFile("../../docs/replay.md")
	if err != nil {
		t.Fatal(err)
	}
	picture := filepath.Join(t.TempDir(), "replay.png")
	t.Chdir("../..")
	shown := 0
	for _, block := range strings.Split(string(doc), "```console\n$ escapement ")[1:] {
		block, _, _ = strings.Cut(block, "```")
		line, want, _ := strings.Cut(block, "\n")
		stdout, stderr, exit := command(t, words(strings.Replace(line, "replay.png", picture, 1))...)
		if exit != ExitFine || stderr != "" {
			t.Errorf("%s: exit %d, %s", line, exit, stderr)
		}
		if d := cmp.Diff(want, stdout); want != "" && d != "" {
			t.Errorf("%s: -document +printed\n%s", line, d)
		}
		shown++
	}
	if shown != 2 {
		t.Errorf("%d commands in the document, want 2", shown)
	}
	drawn, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := os.ReadFile("docs/pictures/replay.png"); err != nil || !bytes.Equal(drawn, kept) {
		t.Errorf("docs/pictures/replay.png is not what the command draws (%v); draw it again", err)
	}
}

// words splits a command line at spaces that are not within double quotes.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}
