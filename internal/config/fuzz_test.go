package config

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzParse looks for panics, for refusals without a reason and for configurations that
// do not hold what a Config promises.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/faults/*", "testdata/*.yaml", "../../examples/*"} {
		files, _ := filepath.Glob(pattern)
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data, filepath.Ext(name) == ".json")
		}
	}
	o := Options{LookupEnv: environmentOf(nil), ReadFile: func(string) ([]byte, error) { return nil, os.ErrNotExist }}
	f.Fuzz(func(t *testing.T, data []byte, asJSON bool) {
		name := "a.yaml"
		if asJSON {
			name = "a.json"
		}
		c, findings := Parse(name, bytes.Clone(data), o)
		broken := false
		for _, x := range findings {
			broken = broken || x.Severity == Error
			if x.Problem == "" || x.File != name || x.Line < 0 || x.Col < 0 {
				t.Fatalf("%+v", x)
			}
		}
		if broken == (c != nil) {
			t.Fatalf("errors: %v, a configuration: %v", broken, c != nil)
		}
		if c == nil {
			return
		}
		names := map[string]bool{}
		for _, l := range c.Limits {
			if _, err := l.ForWindow(l.Rate.Per).Compile(); err != nil || names[l.Name] {
				t.Fatalf("limit %s: %v, there twice: %v", l.Name, err, names[l.Name])
			}
			names[l.Name] = true
			if l.Summary().Bound == "" {
				t.Fatalf("limit %s has no bound", l.Name)
			}
		}
		for _, r := range c.Routes {
			if r.ID == "" || len(r.URIs) == 0 || r.Upstream == nil || len(r.Upstream.Nodes) == 0 {
				t.Fatalf("route %+v", r)
			}
			for _, l := range r.Limits {
				if !names[l.Name] {
					t.Fatalf("route %s has a limit %s that the configuration has not", r.ID, l.Name)
				}
			}
		}
		c.Redacted()
	})
}
