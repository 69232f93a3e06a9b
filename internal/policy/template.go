package policy

import (
	"fmt"
	"strings"
)

// Bounds of one template.
const (
	MaxTemplate  = 1024 // bytes of text
	MaxVariables = 16   // variables named in it
)

// Template is text with variables: "$a", "${a}", "${a ?? default}"; "\$" is a dollar
// sign. The zero Template is the empty text.
type Template struct {
	parts []part
}

type part struct {
	text     string // literal, or the name of a variable
	variable bool
	fallback string
	hasDef   bool
}

// TemplateError says what is wrong with the text of a template.
type TemplateError struct {
	Offset  int // bytes from the start of the text
	Problem string
	Hint    string
}

func (e *TemplateError) Error() string {
	return fmt.Sprintf("at byte %d: %s; %s", e.Offset, e.Problem, e.Hint)
}

// Parse reads a template. A dollar sign that no name follows stands for itself. The
// error is a *TemplateError.
func Parse(text string) (Template, error) {
	if len(text) > MaxTemplate {
		return Template{}, &TemplateError{0, fmt.Sprintf("%d bytes long", len(text)), fmt.Sprintf("use at most %d bytes", MaxTemplate)}
	}
	var t Template
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			t.parts = append(t.parts, part{text: lit.String()})
			lit.Reset()
		}
	}
	variables := 0
	for i := 0; i < len(text); {
		switch {
		case text[i] == '\\' && i+1 < len(text) && text[i+1] == '$':
			lit.WriteByte('$')
			i += 2
			continue
		case text[i] != '$':
			lit.WriteByte(text[i])
			i++
			continue
		}
		p, n, err := parseVariable(text, i)
		if err != nil {
			return Template{}, err
		}
		if n == 0 {
			lit.WriteByte('$')
			i++
			continue
		}
		if variables++; variables > MaxVariables {
			return Template{}, &TemplateError{i, "too many variables", fmt.Sprintf("use at most %d", MaxVariables)}
		}
		flush()
		t.parts = append(t.parts, p)
		i += n
	}
	flush()
	return t, nil
}

// parseVariable reads the variable whose dollar sign stands at text[at], and its length
// in bytes: zero if none does.
func parseVariable(text string, at int) (part, int, error) {
	rest := text[at+1:]
	if !strings.HasPrefix(rest, "{") {
		n := nameLength(rest)
		return part{text: rest[:n], variable: true}, min(n, 1) + n, nil
	}
	end := strings.IndexByte(rest, '}')
	if end < 0 {
		return part{}, 0, &TemplateError{at, "\"${\" is not closed", "write ${name}, or \\$ for a dollar sign"}
	}
	name, def, hasDef := strings.Cut(rest[1:end], "??")
	name = strings.TrimSpace(name)
	if name == "" || nameLength(name) != len(name) {
		return part{}, 0, &TemplateError{at, fmt.Sprintf("%q is not the name of a variable", name), "use letters, digits and _"}
	}
	return part{text: name, variable: true, fallback: strings.TrimSpace(def), hasDef: hasDef}, end + 2, nil
}

// nameLength is the length of the variable's name that s begins with.
func nameLength(s string) int {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(s)
}

// Variable is the template of one variable.
func Variable(name string) Template {
	return Template{parts: []part{{text: name, variable: true}}}
}

// Literal is the template of a text without variables.
func Literal(text string) Template {
	if text == "" {
		return Template{}
	}
	return Template{parts: []part{{text: text}}}
}

// Variables are the names of the variables, in order of appearance.
func (t Template) Variables() []string {
	var names []string
	for _, p := range t.parts {
		if p.variable {
			names = append(names, p.text)
		}
	}
	return names
}

// AlwaysResolves reports whether Eval resolves for every request: nothing depends on it,
// or a variable has a default.
func (t Template) AlwaysResolves() bool {
	resolves := true
	for _, p := range t.parts {
		if p.variable {
			resolves = false
			if p.hasDef {
				return true
			}
		}
	}
	return resolves
}

// Constant reports whether the template names no variable; text is then its value.
func (t Template) Constant() (text string, ok bool) {
	for _, p := range t.parts {
		if p.variable {
			return "", false
		}
		text += p.text
	}
	return text, true
}

func (t *Template) constant() bool {
	for i := range t.parts {
		if t.parts[i].variable {
			return false
		}
	}
	return true
}

// String is the template in the syntax of Parse; parsing it gives an equal template.
func (t Template) String() string {
	var b strings.Builder
	for _, p := range t.parts {
		switch {
		case !p.variable:
			b.WriteString(strings.ReplaceAll(p.text, "$", `\$`))
		case p.hasDef:
			b.WriteString("${" + p.text + " ?? " + p.fallback + "}")
		default:
			b.WriteString("${" + p.text + "}")
		}
	}
	return b.String()
}

// Eval is the text with the request's values in place. A variable that the request does
// not have gives its default, or nothing. It is false if the template has variables and
// none of them gave a value: the text says nothing about this request.
func (t Template) Eval(v Vars) (string, bool) {
	if len(t.parts) == 1 {
		return t.parts[0].eval(v)
	}
	buf, ok := t.Append(nil, v)
	return string(buf), ok
}

// Append is Eval into a buffer.
func (t Template) Append(dst []byte, v Vars) ([]byte, bool) {
	variables, resolved := 0, 0
	for i := range t.parts {
		p := &t.parts[i]
		s, ok := p.eval(v)
		if p.variable {
			variables++
			if ok {
				resolved++
			}
		}
		dst = append(dst, s...)
	}
	return dst, variables == 0 || resolved > 0
}

func (p *part) eval(v Vars) (string, bool) {
	if !p.variable {
		return p.text, true
	}
	if s, ok := v.Var(p.text); ok {
		return s, true
	}
	return p.fallback, p.hasDef
}

// IsName reports whether s is written like the name of a variable.
func IsName(s string) bool { return s != "" && nameLength(s) == len(s) }
