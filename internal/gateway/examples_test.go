package gateway

import (
	"path/filepath"
	"testing"

	"github.com/escapement-io/escapement/internal/config"
)

// TestExamples: every example that check accepts can be served.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	served := 0
	for _, f := range files {
		switch filepath.Ext(f) {
		case ".yaml", ".json":
		default:
			continue
		}
		c, findings, err := config.Load(f, config.Options{LookupEnv: func(name string) (string, bool) { return "of " + name, true }})
		if err != nil || c == nil {
			t.Errorf("%s: %v %v", f, findings, err)
			continue
		}
		s, err := compile(c, nil)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		again, err := compile(c, s)
		if err != nil {
			t.Errorf("%s, again: %v", f, err)
			continue
		}
		for i, l := range again.limits {
			if l.plan != s.limits[i].plan || l.variants != s.limits[i].variants || l.counts != s.limits[i].counts {
				t.Errorf("%s: limit %s is another after a reload of the same file", f, l.Name)
			}
		}
		served++
	}
	if served == 0 {
		t.Error("no example was served")
	}
}
