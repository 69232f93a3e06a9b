package endtoend

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement/clock"
)

const dashboardFile = "../../monitoring/grafana/escapement.json"

// dashboard is what is asked for in the JSON of a Grafana dashboard.
type dashboard struct {
	Panels []struct {
		Title, Type string
		Targets     []struct{ Expr string }
	}
	Annotations struct {
		List []struct{ Name, Expr string }
	}
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
}

// mayBeEmpty are the metrics whose queries may have no answer, and why.
var mayBeEmpty = map[string]string{
	"escapement_clock_offset_seconds":      "not every machine knows the error of its clock",
	"escapement_clock_error_bound_seconds": "not every machine knows the error of its clock",
}

func filled(query string) string {
	return strings.NewReplacer("$job", ".*", "$instance", ".*", "$limit", ".*", "$store", ".*", "$__rate_interval", "5s").Replace(query)
}

var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// tryDashboard runs every query of the dashboard: of its panels, its annotations and its
// variables.
func tryDashboard(ctx context.Context, t *testing.T, s *server) {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	queries := 0
	try := func(of, query string, ask func(string) ([]result, error)) {
		queries++
		query = filled(query)
		got, err := ask(query)
		switch {
		case strings.Contains(query, "$"):
			t.Errorf("%s: a variable that nobody fills in %s", of, query)
		case err != nil:
			t.Errorf("%s: %s: %v", of, query, err)
		case len(got) == 0 && !expectedEmpty(query):
			t.Errorf("%s: no answer to %s", of, query)
		}
	}
	now := clock.Wall()
	over := func(query string) ([]result, error) {
		return s.get(ctx, "query_range", url.Values{"query": {query}, "step": {"1s"},
			"start": {fmt.Sprint(now.Add(-20 * time.Second).Unix())}, "end": {fmt.Sprint(now.Unix() + 1)}})
	}
	for _, p := range d.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s asks for nothing", p.Title)
		}
		for _, target := range p.Targets {
			try(p.Title, target.Expr, over)
		}
	}
	for _, a := range d.Annotations.List {
		try(a.Name, a.Expr, over)
	}
	for _, v := range d.Templating.List {
		if v.Type == "datasource" {
			continue
		}
		m := labelValues.FindStringSubmatch(v.Definition)
		if m == nil {
			t.Errorf("the variable %s is %q, want label_values(...)", v.Name, v.Definition)
			continue
		}
		try("variable "+v.Name, m[1], func(query string) ([]result, error) {
			return s.get(ctx, "label/"+m[2]+"/values", url.Values{"match[]": {query}})
		})
	}
	t.Logf("%d queries of the dashboard are answered", queries)
	if queries < 40 {
		t.Errorf("%d queries in the dashboard, want more", queries)
	}
}

func expectedEmpty(query string) bool {
	for name := range mayBeEmpty {
		if strings.Contains(query, name) {
			return true
		}
	}
	return false
}
