package docs

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/plot"
)

var update = flag.Bool("update", false, "write the tables into the documents and draw the pictures")

// table compares what stands between <!-- name --> and <!-- /name --> in a document with
// the rows, the first of which is the head.
func table(t *testing.T, document, name string, rows ...[]string) {
	t.Helper()
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&b, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	between := regexp.MustCompile(fmt.Sprintf(`(?s)(<!-- %[1]s -->\n)(.*?)(<!-- /%[1]s -->)`, name))
	m := between.FindSubmatch(text)
	switch {
	case m == nil:
		t.Fatalf("%s has no table between <!-- %[2]s --> and <!-- /%[2]s -->", document, name)
	case string(m[2]) == b.String():
	case *update:
		text = bytes.Replace(text, m[0], []byte(string(m[1])+b.String()+string(m[3])), 1)
		if err := os.WriteFile(document, text, 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s, table %s: the document says\n%s\nand the code\n%s\nwrite it with: go test ./docs -update", document, name, m[2], b.String())
	}
}

// says fails unless the document has the sentence, line breaks aside.
func says(t *testing.T, document, sentence string) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), sentence) {
		t.Errorf("%s does not say %q", document, sentence)
	}
}

// picture draws charts, and with -update keeps them.
func picture(t *testing.T, name string, columns int, charts ...*plot.Chart) {
	t.Helper()
	var b bytes.Buffer
	if err := plot.WriteGrid(&b, ".png", columns, charts...); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("pictures", name)
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("%v; draw it with: go test ./docs -update", err)
	}
}

// limited is one limit and its state.
type limited struct {
	plan  *algo.Plan
	state algo.State
}

func limit(t *testing.T, l escapement.Limit) *limited {
	t.Helper()
	l.Name = "x"
	p, err := l.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return &limited{plan: p.Core(), state: algo.State{Ring: make([]uint32, p.Core().Slots())}}
}

func (l *limited) take(now algo.Store) bool {
	return l.plan.Take(&l.state, now, 1).Admitted
}

func rate(count int64, per time.Duration) escapement.Rate {
	return escapement.Rate{Count: count, Per: per}
}

// epoch is the instant at which everything here begins, a multiple of every window.
const epoch = 1_800_000_000_000_000

func number(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && n >= 10_000; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}
