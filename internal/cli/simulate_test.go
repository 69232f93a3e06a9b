package cli

import (
	"bytes"
	goflag "flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/escapement-io/escapement/internal/sim"
)

var updateSimulated = goflag.Bool("update-simulated", false, "write what the commands print into docs/sync-and-leases.md, and draw its picture")

const simulated = "docs/sync-and-leases.md"

var consoleBlock = regexp.MustCompile("(?s)```console\n\\$ escapement (simulate [^\n]*)\n(.*?)```")

// TestSimulateDocument runs the commands that the document shows and compares what it says
// they print.
func TestSimulateDocument(t *testing.T) {
	t.Chdir("../..")
	data, err := os.ReadFile(simulated)
	if err != nil {
		t.Fatal(err)
	}
	doc, shown := string(data), 0
	replaced := consoleBlock.ReplaceAllStringFunc(doc, func(block string) string {
		m := consoleBlock.FindStringSubmatch(block)
		stdout, stderr, exit := command(t, strings.Fields(m[1])...)
		if exit != ExitFine || stderr != "" {
			t.Errorf("%s: exit %d, %s", m[1], exit, stderr)
		}
		_, stdout, _ = strings.Cut(stdout, "\n\n") // the title stands in the command's file
		stdout, _, _ = strings.Cut(stdout, "\n\n") // the legend in the text
		if stdout += "\n"; m[2] != stdout && !*updateSimulated {
			t.Errorf("%s: -document +printed\n%s", m[1], cmp.Diff(m[2], stdout))
		}
		shown++
		return "```console\n$ escapement " + m[1] + "\n" + stdout + "```"
	})
	if shown < 10 {
		t.Errorf("%d commands in the document", shown)
	}
	replaced = compareFormula(t, replaced)
	drawSideBySide(t)
	if *updateSimulated && replaced != doc {
		if err := os.WriteFile(simulated, []byte(replaced), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var delayedRow = regexp.MustCompile(`(?m)^ *delayed fixed (\d+)  .* ([+-][0-9.]+) %  [^%]*%  [^%]*%  [^%]*%  [^%]*%$`)

// compareFormula holds the table of the overshoot formula to what instances.yaml prints
// further down.
func compareFormula(t *testing.T, doc string) string {
	t.Helper()
	_, block, _ := strings.Cut(doc, "simulate scenarios/instances.yaml\n")
	block, _, _ = strings.Cut(block, "```")
	rows := "| N | (N − 1)·r·s | of the limit | simulated |\n|---|---|---|---|\n"
	found := delayedRow.FindAllStringSubmatch(block, -1)
	if len(found) != 4 {
		t.Fatalf("%d rows of delayed fixed windows in\n%s", len(found), block)
	}
	for _, m := range found {
		n, _ := strconv.Atoi(m[1])
		units := float64(n-1) * 800 / float64(n) * 0.2
		rows += fmt.Sprintf("| %d | %.1f | %+.2f %% | %s %% |\n", n, units, units/5, m[2])
	}
	head, rest, _ := strings.Cut(doc, "<!-- formula -->\n")
	old, tail, ok := strings.Cut(rest, "<!-- /formula -->")
	if !ok {
		t.Fatalf("%s has no table of the formula", simulated)
	}
	if old != rows && !*updateSimulated {
		t.Errorf("the formula: -document +simulated\n%s", cmp.Diff(old, rows))
	}
	return head + "<!-- formula -->\n" + rows + "<!-- /formula -->" + tail
}

func drawSideBySide(t *testing.T) {
	t.Helper()
	const kept = "docs/pictures/sync-side-by-side.png"
	path := filepath.Join(t.TempDir(), "drawn.png")
	if _, stderr, exit := command(t, "simulate", "scenarios/side-by-side.yaml", "--plot", path); exit != ExitFine {
		t.Fatalf("exit %d, %s", exit, stderr)
	}
	drawn, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if *updateSimulated {
		if err := os.WriteFile(kept, drawn, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if old, err := os.ReadFile(kept); err != nil || !bytes.Equal(old, drawn) {
		t.Errorf("%s is not what the command draws (%v); draw it again", kept, err)
	}
}

// Every scenario begins with its story, can be read, and keeps every promise.
func TestScenarios(t *testing.T) {
	t.Chdir("../..")
	files, err := filepath.Glob("scenarios/*.yaml")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(data, []byte("# ")) {
			t.Errorf("%s does not begin with its story", name)
		}
		if sc, findings := sim.Parse(name, data); sc == nil || len(findings) > 0 {
			t.Errorf("%v", findings)
		}
	}
	for _, name := range []string{"scenarios/mixed.yaml", "scenarios/network.yaml", "scenarios/store-clock.yaml"} {
		if stdout, stderr, exit := command(t, "simulate", name); exit != ExitFine || stderr != "" {
			t.Errorf("%s: exit %d, %s%s", name, exit, stdout, stderr)
		}
	}
}

func TestSimulateCommand(t *testing.T) {
	stdout, stderr, exit := command(t, "simulate", "--runs", "20", "--seed", "3", "--json")
	if exit != ExitFine || stderr != "" || stdout != `{"runs":20,"violations":0,"seed":3}`+"\n" {
		t.Errorf("exit %d, %s%s", exit, stdout, stderr)
	}
	wrong := write(t, "wrong.yaml", "title: x\nlimit: 5\nper: 1s\nwindow: fixd\nmode: lease\nload: {kind: constant, rate: 1}\n")
	stdout, stderr, exit = command(t, "simulate", wrong)
	if exit != ExitFinding || stdout != "" || !strings.Contains(stderr, "wrong.yaml:4:9: error: window: ") || !strings.Contains(stderr, "did you mean fixed?") {
		t.Errorf("exit %d, %s%s", exit, stdout, stderr)
	}
	for _, tt := range []struct {
		args []string
		exit int
		want string
	}{
		{[]string{"simulate"}, ExitUsage, "nothing to simulate"},
		{[]string{"simulate", "--runs", "-1"}, ExitUsage, "--runs -1"},
		{[]string{"simulate", wrong, "--runs", "3"}, ExitUsage, "takes no scenario"},
		{[]string{"simulate", wrong, "--plot", "x.gif"}, ExitUsage, "cannot write"},
		{[]string{"simulate", wrong + ".missing"}, ExitFailed, "no such file"},
	} {
		if stdout, stderr, exit := command(t, tt.args...); exit != tt.exit || stdout != "" || !strings.Contains(stderr, tt.want) {
			t.Errorf("%q: exit %d, %s%s", tt.args, exit, stdout, stderr)
		}
	}
}
