package retrystorm

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

// What is printed is what the page promises, field by field.
func TestFields(t *testing.T) {
	b, err := os.ReadFile("../../../docs/drills.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(b), "## `escapement drill retry-storm`")
	page, _, _ = strings.Cut(page, "\n## ")
	for _, part := range []any{Report{}, PhaseReport{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(part)) {
			name := f.Tag.Get("json")
			if f.IsExported() && !strings.Contains(page, "`"+name+"`") && !strings.Contains(page, "[]."+name+"`") && !strings.Contains(page, "`"+name+"[].") {
				t.Errorf("docs/drills.md does not say what %s is", name)
			}
		}
	}
	o := options()
	out, err := json.Marshal(Judge(&o, []Phase{phase(Naive, AtOnce, back, fine)}))
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Phases []map[string]any }
	if err := json.Unmarshal(out, &got); err != nil || len(got.Phases) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"limiter", "client", "amplification", "p99_ms", "calm_after_s", "refused_pct"} {
		if _, ok := got.Phases[0][name]; !ok {
			t.Errorf("no %s in %s", name, out)
		}
	}
}
