package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/escapement-io/escapement/internal/policy"
)

// TestDocumentedConfigurations reads every block of the documents that is marked as a
// configuration ("```yaml configuration" or "```json configuration").
func TestDocumentedConfigurations(t *testing.T) {
	files, _ := filepath.Glob("../../*.md")
	err := filepath.WalkDir("../../docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ext, block, line := "", "", 0
		for text := range strings.Lines(string(data)) {
			line++
			mark := strings.TrimSpace(text)
			switch {
			case ext == "" && (mark == "```yaml configuration" || mark == "```json configuration"):
				ext, block = strings.Fields(mark)[0][3:], ""
			case ext != "" && mark == "```":
				blocks++
				c, findings := Parse("block."+ext, []byte(block), Options{LookupEnv: environmentOf(nil)})
				if c == nil {
					t.Errorf("the block that ends on line %d of %s:\n%s", line, file, lines(findings))
				}
				ext = ""
			case ext != "":
				block += text
			}
		}
		if ext != "" {
			t.Errorf("%s: a block is not closed", file)
		}
	}
	if blocks < 2 {
		t.Errorf("%d blocks found", blocks)
	}
}

func TestVariablesAreDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/reference/config.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(data), "\n## Variables\n")
	section, _, _ = strings.Cut(section, "\n## ")
	documented := map[string]bool{}
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cell, _, _ := strings.Cut(line[2:], "|")
		for _, name := range strings.Split(cell, ",") {
			documented[strings.Trim(name, " `")] = true
		}
	}
	for _, name := range policy.Names() {
		if !documented[name] {
			t.Errorf("%s is not documented", name)
		}
		delete(documented, name)
	}
	for name := range documented {
		if !policy.Known(name) {
			t.Errorf("%s is documented and does not exist", name)
		}
	}
}
