package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

type request map[string]string

func (r request) Var(name string) (string, bool) {
	v, ok := r[name]
	return v, ok
}

func TestTemplates(t *testing.T) {
	r := request{"remote_addr": "10.0.0.1", "http_x": "", "uri": "/a"}
	for _, c := range []struct {
		text, value string
		ok          bool
	}{
		{"", "", true},
		{"plain", "plain", true},
		{"$remote_addr", "10.0.0.1", true},
		{"${remote_addr}_2s", "10.0.0.1_2s", true},
		{"$remote_addr_2s", "", false}, // names take every letter that fits
		{"$uri$remote_addr", "/a10.0.0.1", true},
		{"$missing-$uri", "-/a", true},
		{"$missing", "", false},
		{"a-$missing", "a-", false},
		{"$http_x", "", true}, // there, and empty
		{"${http_count ?? 2}", "2", true},
		{"${http_count??2}", "2", true},
		{"${ uri ?? 2 }", "/a", true},
		{"${missing ?? }", "", true},
		{`\$uri`, "$uri", true},
		{"5$", "5$", true},
		{"$ 5", "$ 5", true},
		{"$5", "$5", true},
		{"$$uri", "$/a", true},
		{"{uri}", "{uri}", true},
	} {
		tpl, err := Parse(c.text)
		if err != nil {
			t.Errorf("Parse(%q): %v", c.text, err)
			continue
		}
		if v, ok := tpl.Eval(r); v != c.value || ok != c.ok {
			t.Errorf("%q: %q %v, want %q %v", c.text, v, ok, c.value, c.ok)
		}
		again, err := Parse(tpl.String())
		if err != nil || again.String() != tpl.String() {
			t.Errorf("%q reads back as %q, %v", tpl.String(), again.String(), err)
		}
	}
}

func TestTemplateMistakes(t *testing.T) {
	for text, offset := range map[string]int{
		"${":                            0,
		"a${uri":                        1,
		"${}":                           0,
		"${a-b}":                        0,
		"${?? 5}":                       0,
		"x${1a}":                        1,
		strings.Repeat("x", 1025):       0,
		strings.Repeat("$a ", 17):       48,
		"${a ?? b} ${":                  10,
		"$uri ${host ?? x} ${bad name}": 18,
	} {
		_, err := Parse(text)
		e, ok := errors.AsType[*TemplateError](err)
		if !ok || e.Offset != offset || e.Problem == "" || e.Hint == "" {
			t.Errorf("Parse(%.40q): %v, want a mistake at %d with a hint", text, err, offset)
		}
	}
}

func TestAlwaysResolves(t *testing.T) {
	for text, want := range map[string]bool{"": true, "x": true, "$a": false, "$a-${b ?? 1}": true, "x$a": false} {
		tpl, err := Parse(text)
		if err != nil || tpl.AlwaysResolves() != want {
			t.Errorf("%q: %v, want %v (%v)", text, !want, want, err)
		}
		if _, ok := tpl.Eval(request{}); ok != want {
			t.Errorf("%q resolves for an empty request: %v, AlwaysResolves says %v", text, ok, want)
		}
	}
}

func TestKnown(t *testing.T) {
	for name, want := range map[string]bool{
		"remote_addr": true, "consumer_name": true, "http_x_tenant": true, "arg_a": true, "cookie_sid": true,
		"consumer_nam": false, "http_": false, "": false, "HTTP_X": false,
	} {
		if Known(name) != want {
			t.Errorf("Known(%q) is %v", name, !want)
		}
	}
	if names := Names(); !slices.IsSorted(names) || len(names) < 20 {
		t.Errorf("Names: %v", names)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"", "$uri", "${uri ?? x}", "${", `\$a$b`, "$$", "${a ?? ${b}}", "\xff$a", "${a ?? \\$}"} {
		f.Add(s, "v")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		tpl, err := Parse(text)
		if err != nil {
			if _, ok := errors.AsType[*TemplateError](err); !ok {
				t.Fatalf("%T", err)
			}
			return
		}
		r := request{}
		for _, name := range tpl.Variables() {
			if !IsName(name) {
				t.Fatalf("%q is a variable of %q", name, text)
			}
			r[name] = value
		}
		want, ok := tpl.Eval(r)
		if !ok {
			t.Fatalf("%q does not resolve with all its variables", text)
		}
		again, err := Parse(tpl.String())
		if len(tpl.String()) > MaxTemplate {
			return
		}
		if err != nil {
			t.Fatalf("%q, written %q: %v", text, tpl.String(), err)
		}
		if got, _ := again.Eval(r); got != want {
			t.Fatalf("%q gives %q, read back as %q gives %q", text, want, tpl.String(), got)
		}
		if buf, _ := tpl.Append([]byte("x"), r); string(buf) != "x"+want {
			t.Fatalf("Append gives %q, Eval %q", buf, want)
		}
	})
}

func ExampleParse() {
	t, err := Parse("${http_x_tenant ?? nobody}:$remote_addr")
	if err != nil {
		panic(err)
	}
	fmt.Println(t.Eval(request{"remote_addr": "10.0.0.1"}))
	// Output: nobody:10.0.0.1 true
}
