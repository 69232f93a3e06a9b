package tree

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func parse(name, text string) (*Node, []Finding) {
	r := &Report{File: name}
	n := Parse(r, []byte(text))
	return n, r.Findings()
}

// show is a tree as text, every value with its place.
func show(n *Node) string {
	var b strings.Builder
	var walk func(n *Node)
	walk = func(n *Node) {
		fmt.Fprintf(&b, "%d:%d", n.Place.Line, n.Place.Col)
		switch n.Kind {
		case List:
			b.WriteString("[")
			for i, item := range n.Items {
				if i > 0 {
					b.WriteString(" ")
				}
				walk(item)
			}
			b.WriteString("]")
		case Map:
			b.WriteString("{")
			for i, f := range n.Fields {
				if i > 0 {
					b.WriteString(" ")
				}
				fmt.Fprintf(&b, "%d:%d %s=", f.Place.Line, f.Place.Col, f.Key)
				walk(f.Value)
			}
			b.WriteString("}")
		case Null, Bool, Number, String:
			fmt.Fprintf(&b, "(%d %q)", n.Kind, n.Text)
		}
	}
	walk(n)
	return b.String()
}

func TestPlaces(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a.yaml", "a: 1\nb:\n  - x\n  - y: true\n", `1:1{1:1 a=1:4(2 "1") 2:1 b=3:3[3:5(3 "x") 4:5{4:5 y=4:8(1 "true")}]}`},
		{"a.yaml", "a: 1\r\nb: 'c'\r\n", `1:1{1:1 a=1:4(2 "1") 2:1 b=2:4(3 "c")}`},
		{"a.yaml", "\uFEFFa: ~\n", `1:1{1:1 a=1:4(0 "")}`},
		{"a.yaml", "é: {ü: 1, b: [2]}\n", `1:1{1:1 é=1:4{1:5 ü=1:8(2 "1") 1:11 b=1:14[1:15(2 "2")]}}`},
		{"a.yaml", "a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}\n", `1:1{1:1 a=1:7{1:8 b=1:11(2 "1")} 2:1 c=1:7{1:8 b=1:11(2 "1")} 3:1 d=3:4{3:13 e=3:16(2 "2") 1:8 b=1:11(2 "1")}}`},
		{"a.json", "{\n\t\"a\": 1,\n\t\"é\": [\"x\", null,true]\n}\n", `1:1{2:2 a=2:7(2 "1") 3:2 é=3:7[3:8(3 "x") 3:13(0 "") 3:18(1 "true")]}`},
		{"a.JSON", `{"a":{"b":[]},"c":1e3}`, `1:1{1:2 a=1:6{1:7 b=1:11[]} 1:15 c=1:19(2 "1e3")}`},
	} {
		n, findings := parse(c.name, c.text)
		if n == nil {
			t.Errorf("%q: %v", c.text, findings)
		} else if got := show(n); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestUnreadable(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a.yaml", "", "a.yaml: error: the file is empty"},
		{"a.yaml", " \n\t\n", "a.yaml: error: the file is empty"},
		{"a.yaml", "\uFEFF", "a.yaml: error: the file is empty"},
		{"a.yaml", "\xff\xfea\x00", "a.yaml:1:1: error: the file is UTF-16"},
		{"a.yaml", "a: 1\nb: é\xff\n", "a.yaml:2:5: error: byte 0xff is not UTF-8"},
		{"a.yaml", "a: 1\nb: \x00\n", "a.yaml:2:4: error: control character 0x00"},
		{"a.yaml", "a: 1\rb: 2\r", "a.yaml:1:5: error: a carriage return without a line feed"},
		{"a.yaml", "a: \x1b[31m\n", "a.yaml:1:4: error: control character 0x1b"},
		{"a.yaml", strings.Repeat("#", MaxBytes+1), "a.yaml: error: larger than 4 MiB"},
		{"a.yaml", strings.Repeat("- ", 1000) + "x", "a.yaml:1:129: error: nested deeper than 32"},
		{"a.yaml", strings.Repeat("[", 100_000), "a.yaml:1:65: error: nested deeper than 32"},
		{"a.yaml", strings.Repeat("{a: ", 100_000), "a.yaml:1:257: error: nested deeper than 32"},
		{"a.yaml", strings.Repeat("a:\n", MaxEntries+1), "a.yaml:16385:1: error: more than 16384 entries"},
		{"a.yaml", "a: [" + strings.Repeat("x,", MaxEntries+1) + "]", "a.yaml:1:32774: error: more than 16384 entries"},
		{"a.yaml", strings.Repeat("- ["+strings.Repeat("x,", 1000)+"]\n", 600), "a.yaml:524:"},
		{"a.json", "[" + strings.Repeat("1,", MaxEntries) + "1]", "a.json:1:32771: error: more than 16384 entries"},
		{"a.json", "", "a.json: error: the file is empty"},
		{"a.json", `{"a": 1`, "a.json:1:8: error: the JSON ends too early"},
		{"a.json", `{"a": 1,`, "a.json:1:9: error: the JSON ends too early"},
		{"a.json", "{\n  \"a\": 1,\n}", "a.json:3:1: error: not JSON: invalid character '}'"},
		{"a.json", "{a: 1}", "a.json:1:2: error: not JSON: invalid character 'a'"},
		{"a.json", `{"a": NaN}`, "a.json:1:7: error: not JSON: invalid character 'N'"},
		{"a.json", `{"a": 1} {"b": 2}`, "a.json:1:10: error: more than one JSON value"},
		{"a.json", `{"a": 1} }`, "a.json:1:10: error: not JSON"},
		{"a.json", strings.Repeat("[", 100_000), "a.json:1:34: error: nested deeper than 32"},
	} {
		n, findings := parse(c.name, c.text)
		if n != nil || len(findings) != 1 || !strings.HasPrefix(findings[0].String(), c.want) || findings[0].Hint == "" {
			t.Errorf("%.40q: %v\nwant one finding %q with a hint", c.text, findings, c.want)
		}
	}
}

func TestDuplicateKeys(t *testing.T) {
	for name, text := range map[string]string{"a.yaml": "b: {c: 1, c: 2, c: 3}\n", "a.json": `{"b": {"c": 1, "c": 2, "c": 3}}`} {
		n, findings := parse(name, text)
		if len(findings) != 2 || findings[0].Path != "b.c" || findings[0].Line != 1 {
			t.Errorf("%s: %v", name, findings)
		}
		if c := n.Field("b").Field("c"); c.Text != "1" {
			t.Errorf("%s: c is %q, want the first", name, c.Text)
		}
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{"250ms": 250 * time.Millisecond, "1h30m": 90 * time.Minute, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour} {
		if d, err := parseDuration(text); d != want || err != nil {
			t.Errorf("%s: %v %v", text, d, err)
		}
	}
	for _, text := range []string{"", "d", "1.5d", "-1d", "1dd", "10", "1 s", "99999999d", "5x"} {
		if d, err := parseDuration(text); err == nil {
			t.Errorf("%q is %v", text, d)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"count", "per", "burst", "algorithm", "rolling_window", "on_failure"}
	for word, want := range map[string]string{
		"cuont": "count", "conut": "count", "brust": "burst", "algoritm": "algorithm", "rolling": "rolling_window", //nolint:misspell // typing errors are what it is about
		"onfailure": "on_failure", "x": "", "": "", "zzz": "", "time_window": "", strings.Repeat("count", 20): "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) is %q, want %q", word, got, want)
		}
	}
}

func TestFindingsAreBounded(t *testing.T) {
	r := &Report{File: "a.yaml"}
	text := strings.Repeat("- 1\n", 5*MaxFindings)
	items, ok := Root(r, Parse(r, []byte(text))).Items(10 * MaxFindings)
	if !ok {
		t.Fatal(r.Findings())
	}
	for _, item := range items {
		item.Text()
	}
	if n := len(r.Findings()); n != MaxFindings+1 || r.Errors() != 5*MaxFindings {
		t.Errorf("%d findings kept of %d", n, r.Errors())
	}
}

func TestExpand(t *testing.T) {
	r := &Report{File: "a.yaml"}
	n := Parse(r, []byte("${{HOST}}:80: ${{WEIGHT:=3}}\nquoted: \"a ${{HOST}} b\"\nempty: \"${{NONE:=}}\"\nnone: ${{NONE}}\n"))
	Expand(r, n, func(name string) (string, bool) {
		v, ok := map[string]string{"HOST": "example.com"}[name]
		return v, ok
	})
	want := `1:1{1:1 example.com:80=1:15(2 "3") 2:1 quoted=2:9(3 "a example.com b") 3:1 empty=3:8(3 "") 4:1 none=4:7(3 "")}`
	if got := show(n); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if f := r.Findings(); len(f) != 1 || f[0].Path != "none" {
		t.Errorf("findings %v", f)
	}
	Value{Node: n.Field("quoted"), report: r}.Int(0, 1)
	if f := r.Findings(); strings.Contains(fmt.Sprint(f), "example.com") {
		t.Errorf("a message shows a value of the environment: %v", f)
	}
}
