package monitoring

import (
	"encoding/json"
	"slices"
	"testing"
)

const dashboardFile = "grafana/escapement.json"

// TestDashboard holds the dashboard to what Grafana needs of it. Its queries are run by
// internal/endtoend.
func TestDashboard(t *testing.T) {
	type source struct{ Type, UID string }
	var d struct {
		SchemaVersion int
		Panels        []struct {
			ID          int
			Title, Type string
			Datasource  source
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct {
				RefID      string
				Datasource source
			}
		}
		Templating struct {
			List []struct{ Name, Type string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, dashboardFile)), &d); err != nil {
		t.Fatal(err)
	}
	var variables, rows []string
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
	}
	if want := []string{"datasource", "job", "instance", "limit", "store"}; !slices.Equal(variables, want) {
		t.Errorf("variables %v, want %v", variables, want)
	}
	chosen := source{Type: "prometheus", UID: "${datasource}"}
	ids := map[int]bool{}
	covered := map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q: its id is taken, or it has no title", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := covered[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies on %s, or beyond the edge", p.Title, other)
				}
				covered[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if p.Datasource != chosen || target.Datasource != chosen || refs[target.RefID] {
				t.Errorf("%s: it does not ask the source that was chosen, or a query has no name of its own", p.Title)
			}
			refs[target.RefID] = true
		}
	}
	if want := []string{"Now", "Limits", "Clocks", "Stores", "Sync"}; !slices.Equal(rows, want) {
		t.Errorf("rows %v, want %v", rows, want)
	}
}
