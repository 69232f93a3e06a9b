package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// Whoever reads the lines finds every field in each, null where a workload does not
// measure it.
func TestJSONLines(t *testing.T) {
	var b bytes.Buffer
	r := &report{json: true, out: &b}
	hot, mem := find("hot"), find("mem1m")
	p := &peer{name: "escapement"}
	r.head("hot", hot)
	r.add(row(p, hot, 1, []result{{CPU: 30}, {CPU: 50}, {CPU: 40}}, []result{{CPU: 20}, {CPU: 20}, {CPU: 20}}))
	r.foot()
	r.head("mem1m", mem)
	r.add(row(p, mem, 2, []result{{CPU: 500, PerKey: 44}}, nil))
	r.foot()
	want := []map[string]any{
		{"peer": "escapement", "workload": "hot", "cpu_ns": 40.0, "ratio": 2.0, "allocs_per_op": 0.0, "bytes_per_key": nil},
		{"peer": "escapement", "workload": "mem1m", "cpu_ns": 500.0, "ratio": nil, "allocs_per_op": nil, "bytes_per_key": 44.0},
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), &b)
	}
	for i, l := range lines {
		var got map[string]any
		if err := json.Unmarshal([]byte(l), &got); err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		for k, v := range want[i] {
			if g, ok := got[k]; !ok || g != v {
				t.Errorf("line %d: %s is %v (there: %v), want %v", i, k, g, ok, v)
			}
		}
	}
}

// A table row has a cell for each column.
func TestTables(t *testing.T) {
	for _, w := range workloads {
		var b bytes.Buffer
		r := &report{out: &b}
		r.head(w.name, &w)
		r.add(row(&peer{name: "escapement"}, &w, 1, []result{{CPU: 1, PerKey: 1}}, []result{{CPU: 1}}))
		r.foot()
		columns := -1
		for l := range strings.Lines(b.String()) {
			if !strings.HasPrefix(l, "|") {
				continue
			}
			if n := strings.Count(l, "|"); columns >= 0 && n != columns {
				t.Errorf("%s: a row of %d bars under %d:\n%s", w.name, n, columns, &b)
			} else {
				columns = n
			}
		}
		if columns < 0 {
			t.Errorf("%s: no table:\n%s", w.name, &b)
		}
	}
}
