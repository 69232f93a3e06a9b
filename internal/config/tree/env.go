package tree

import (
	"fmt"
	"regexp"
	"strconv"
)

var reference = regexp.MustCompile(`\$\{\{\s*(\w+)\s*(?:\:=([^}]*))?\}\}`)

// Expand replaces "${{NAME}}" and "${{NAME:=default}}" in every key and scalar by the
// environment's value. A value that is a number or a truth after that is read as one.
func Expand(r *Report, n *Node, lookup func(string) (string, bool)) {
	e := expander{r, lookup, map[*Node]bool{}}
	e.node(n, "")
}

type expander struct {
	report *Report
	lookup func(string) (string, bool)
	seen   map[*Node]bool
}

func (e *expander) node(n *Node, path string) {
	if e.seen[n] {
		return
	}
	e.seen[n] = true
	for i, item := range n.Items {
		e.node(item, index(path, i))
	}
	for i := range n.Fields {
		f := &n.Fields[i]
		p := join(path, f.Key)
		f.Key, _, _ = e.text(f.Key, f.Place, p)
		e.node(f.Value, p)
	}
	if n.Kind != String {
		return
	}
	text, changed, missing := e.text(n.Text, n.Place, path)
	n.unset = missing
	if !changed {
		return
	}
	n.shown, n.Text = n.Text, text
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		n.Kind = Number
	} else if text == "true" || text == "false" {
		n.Kind = Bool
	}
}

func (e *expander) text(s string, p Place, path string) (out string, changed, missing bool) {
	out = reference.ReplaceAllStringFunc(s, func(ref string) string {
		m := reference.FindStringSubmatch(ref)
		changed = true
		if v, ok := e.lookup(m[1]); ok {
			return v
		}
		if len(m[2]) == 0 && ref[len(ref)-4:len(ref)-2] != ":=" {
			missing = true
			e.report.Add(p, path, Error, fmt.Sprintf("the environment variable %s is not set", m[1]), fmt.Sprintf("set it, or write ${{%s:=default}}", m[1]))
		}
		return m[2]
	})
	return out, changed, missing
}
