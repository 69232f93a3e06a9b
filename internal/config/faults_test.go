package config

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what comes out into the fixtures; read the difference before committing it")

// want begins a line of a fixture that holds an expected finding; they come first.
const want = "# want: "

// TestFaults reads files with one fault each: the findings at their head, and no others,
// come out.
func TestFaults(t *testing.T) {
	files, err := filepath.Glob("testdata/faults/*")
	if err != nil || len(files) < 150 {
		t.Fatalf("%d fixtures, %v", len(files), err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			expected, body := splitFixture(data)
			c, findings := Parse(filepath.Base(name), body, Options{})
			var got []string
			broken := false
			for _, f := range findings {
				got = append(got, fixtureLine(f))
				broken = broken || f.Severity == Error
			}
			if *update {
				head := ""
				for _, line := range got {
					head += want + line + "\n"
				}
				if err := os.WriteFile(name, append([]byte(head), body...), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if broken == (c != nil) {
				t.Errorf("errors: %v, a configuration: %v", broken, c != nil)
			}
			if len(expected) == 0 {
				t.Error("the fixture expects nothing")
			}
			if d := cmp.Diff(expected, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// splitFixture parts the expected findings at the head from the configuration.
func splitFixture(data []byte) (expected []string, body []byte) {
	for bytes.HasPrefix(data, []byte(want)) {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		expected = append(expected, strings.TrimPrefix(string(line), want))
		data = rest
	}
	return expected, data
}

func fixtureLine(f Finding) string {
	return fmt.Sprintf("%d:%d: %v: %s: %s -> %s", f.Line, f.Col, f.Severity, f.Path, f.Problem, f.Hint)
}
