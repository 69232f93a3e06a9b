package tree

import (
	"cmp"
	"fmt"
	"slices"
)

// Finding is something the reader of a configuration should know.
type Finding struct {
	File      string
	Line, Col int    // from 1; column in characters; 0: the file as a whole
	Path      string // such as limits.per-client.count
	Severity  Severity
	Problem   string
	Hint      string // what to do
	Hidden    bool   // the line holds a secret: show the place, not the text
}

// Severity tells a mistake from advice.
type Severity uint8

// The severities. One Error refuses the whole file.
const (
	Error Severity = iota
	Warning
	Dropped // not supported and left out by --ignore-unsupported
)

// String is the word in front of a finding.
func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	case Dropped:
		return "dropped"
	}
	return fmt.Sprintf("severity(%d)", uint8(s))
}

// String is the finding on one line, without its hint.
func (f Finding) String() string {
	place := f.File
	if f.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Col)
	}
	if f.Path == "" {
		return fmt.Sprintf("%s: %v: %s", place, f.Severity, f.Problem)
	}
	return fmt.Sprintf("%s: %v: %s: %s", place, f.Severity, f.Path, f.Problem)
}

// Document is the finding as a value for JSON.
func (f Finding) Document() map[string]any {
	return map[string]any{"file": f.File, "line": f.Line, "column": f.Col, "path": f.Path,
		"severity": f.Severity.String(), "problem": f.Problem, "hint": f.Hint}
}

// MaxFindings is how many findings a report keeps; one more says that there were more.
const MaxFindings = 1000

// Report collects the findings of one file.
type Report struct {
	File              string
	IgnoreUnsupported bool // what is not supported is Dropped and not an Error

	findings []Finding
	keys     map[string]bool
	hidden   map[int]bool
	errors   int
}

// Add records a finding at a place.
func (r *Report) Add(p Place, path string, s Severity, problem, hint string) {
	if s == Error {
		r.errors++
	}
	if len(r.findings) == MaxFindings {
		r.findings = append(r.findings, Finding{File: r.File, Severity: s,
			Problem: fmt.Sprintf("more than %d findings; the rest is left out", MaxFindings), Hint: "begin with the first ones"})
	}
	if len(r.findings) > MaxFindings {
		return
	}
	r.findings = append(r.findings, Finding{File: r.File, Line: p.Line, Col: p.Col, Path: path, Severity: s, Problem: problem, Hint: hint})
}

// Failed reports whether an Error was found.
func (r *Report) Failed() bool { return r.errors > 0 }

// Errors counts the Errors so far, those left out included.
func (r *Report) Errors() int { return r.errors }

// Findings are the findings by place; those about the file as a whole come first. Equal
// ones, which aliases cause, are given once.
func (r *Report) Findings() []Finding {
	out := slices.Clone(r.findings)
	for i := range out {
		out[i].Hidden = r.hidden[out[i].Line]
	}
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col), cmp.Compare(a.Severity, b.Severity))
	})
	return slices.Compact(out)
}

// Keys are the keys that were asked for so far, as paths in which * stands for any name
// and [] for any index.
func (r *Report) Keys() []string {
	out := make([]string, 0, len(r.keys))
	for k := range r.keys {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (r *Report) know(key string) {
	if r.keys == nil {
		r.keys = map[string]bool{}
	}
	r.keys[key] = true
}

func (r *Report) hide(line int) {
	if r.hidden == nil {
		r.hidden = map[int]bool{}
	}
	r.hidden[line] = true
}
