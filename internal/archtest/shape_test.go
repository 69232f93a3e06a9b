package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"
)

var packageComments = rule{
	why: "a reader finds what a package is for in one place: the comment above the package clause of one file, not of a test",
}

// commentOn says what is wrong with the package comments of one folder, or nothing.
func commentOn(files map[string]*ast.File) string {
	var docs, command = 0, false
	for name, f := range files {
		if f.Doc == nil {
			continue
		}
		if isTest(name) {
			return path.Base(name) + ", a test, has a package comment"
		}
		docs++
		want := "Package " + f.Name.Name + " "
		if command = f.Name.Name == "main"; command {
			want = "Command " + path.Base(path.Dir(name))
		}
		if !strings.HasPrefix(f.Doc.Text(), want) {
			return fmt.Sprintf("the comment in %s does not begin with %q", path.Base(name), want)
		}
	}
	if docs != 1 {
		return fmt.Sprintf("%d package comments, want 1", docs)
	}
	return ""
}

func TestOnePackageComment(t *testing.T) {
	r := open(t)
	dirs := map[string]map[string]*ast.File{}
	for name, f := range r.files {
		dir := path.Dir(name)
		if dirs[dir] == nil {
			dirs[dir] = map[string]*ast.File{}
		}
		dirs[dir][name] = f
	}
	var found []finding
	for dir, files := range dirs {
		if problem := commentOn(files); problem != "" {
			found = append(found, finding{dir, dir, problem})
		}
	}
	packageComments.enforce(t, len(dirs), found)
}

func TestPackageCommentsAreJudged(t *testing.T) {
	good := parse(t, "// Package x does.\npackage x")
	none := parse(t, "// Copyright\n\npackage x")
	for _, tt := range []struct {
		files map[string]*ast.File
		ok    bool
	}{
		{map[string]*ast.File{"a/x.go": good, "a/y.go": none}, true},
		{map[string]*ast.File{"a/x.go": good, "a/y.go": good}, false},
		{map[string]*ast.File{"a/x.go": none}, false},
		{map[string]*ast.File{"a/x.go": parse(t, "// This package\npackage x")}, false},
		{map[string]*ast.File{"a/x.go": good, "a/x_test.go": good}, false},
		{map[string]*ast.File{"a/main.go": parse(t, "// Command a does.\npackage main")}, true},
	} {
		if problem := commentOn(tt.files); (problem == "") != tt.ok {
			t.Errorf("%v: %q", tt.files, problem)
		}
	}
}

const (
	maxFile     = 400 // lines
	maxFunction = 60
)

var sizes = rule{
	why: fmt.Sprintf("a file is one idea and at most %d lines, a function at most %d; split by idea, not by length", maxFile, maxFunction),
}

// oversize finds what is too long in a file.
func oversize(fset *token.FileSet, f *ast.File) map[token.Pos]string {
	found := map[token.Pos]string{}
	if n := fset.File(f.FileStart).LineCount(); n > maxFile {
		found[f.Package] = fmt.Sprintf("the file has %d lines, at most %d are allowed", n, maxFile)
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > maxFunction {
			found[fn.Pos()] = fmt.Sprintf("function %s has %d lines, at most %d are allowed", fn.Name.Name, n, maxFunction)
		}
	}
	return found
}

func TestSizes(t *testing.T) {
	r := open(t)
	var found []finding
	n := 0
	for name, f := range r.files {
		if isTest(name) {
			continue
		}
		n++
		for pos, problem := range oversize(r.fset, f) {
			found = append(found, finding{name, r.fset.Position(pos).String(), problem})
		}
	}
	sizes.enforce(t, n, found)
}

func TestOversizeIsFound(t *testing.T) {
	for _, tt := range []struct {
		file, function, want int
	}{{maxFile, maxFunction, 0}, {maxFile + 1, maxFunction, 1}, {maxFile, maxFunction + 1, 1}} {
		body := strings.Repeat("\n", tt.function-1)
		src := "package x\nfunc f() {" + body + "}\n"
		src += strings.Repeat("\n", tt.file-strings.Count(src, "\n"))
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "x.go", src, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := oversize(fset, f); len(got) != tt.want {
			t.Errorf("%d lines, function of %d: %v", tt.file, tt.function, got)
		}
	}
}
