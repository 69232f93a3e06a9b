package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/escapement-io/escapement"

// repo is what the rules look at. Names are slash paths from the top of the repository.
type repo struct {
	dir   string
	names map[string]bool   // every file
	texts map[string]string // the contents of those that are text
	fset  *token.FileSet
	files map[string]*ast.File // the Go files of the main module, those in testdata included
}

var load = sync.OnceValues(func() (*repo, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	r := &repo{dir: filepath.Dir(filepath.Dir(dir)), names: map[string]bool{}, texts: map[string]string{}, fset: token.NewFileSet(), files: map[string]*ast.File{}}
	names, err := list(r.dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(r.dir, name))
		if os.IsNotExist(err) {
			continue // deleted and not committed yet
		}
		if err != nil {
			return nil, err
		}
		r.names[name] = true
		if !bytes.ContainsRune(b[:min(len(b), 8192)], 0) {
			r.texts[name] = string(b)
		}
	}
	for name, text := range r.texts {
		if !strings.HasSuffix(name, ".go") || r.foreign(name) {
			continue
		}
		f, err := parser.ParseFile(r.fset, name, text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		r.files[name] = f
	}
	return r, nil
})

// list is what git would commit, or without git every file.
func list(dir string) ([]string, error) {
	git := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	git.Dir = dir
	if out, err := git.Output(); err == nil && len(out) > 0 {
		return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
	}
	var names []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() {
			rel, err := filepath.Rel(dir, p)
			if err != nil {
				return err
			}
			names = append(names, filepath.ToSlash(rel))
		}
		return nil
	})
	return names, err
}

// foreign reports whether a file belongs to another module inside the repository.
func (r *repo) foreign(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, ok := r.texts[dir+"/go.mod"]; ok {
			return true
		}
	}
	return false
}

func open(t *testing.T) *repo {
	t.Helper()
	r, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func isTest(name string) bool { return strings.HasSuffix(name, "_test.go") }

// inTestdata reports whether the go command ignores the file's folder.
func inTestdata(name string) bool { return strings.Contains("/"+name, "/testdata/") }

// rule is something that stays true.
type rule struct {
	why    string
	except map[string]string // what it does not hold for, and why not
}

// finding is a place where a rule does not hold. subject is what an exception names.
type finding struct{ subject, place, problem string }

// enforce reports findings that are no exception, exceptions without a finding, and a
// rule that had nothing to look at.
func (r rule) enforce(t *testing.T, lookedAt int, found []finding) {
	t.Helper()
	for _, problem := range r.judge(lookedAt, found) {
		t.Errorf("%s\n\twhy: %s", problem, r.why)
	}
}

func (r rule) judge(lookedAt int, found []finding) []string {
	var problems []string
	if lookedAt == 0 {
		problems = append(problems, "the rule finds nothing to look at; repair or delete it")
	}
	used := map[string]bool{}
	for _, f := range found {
		if _, ok := r.except[f.subject]; ok {
			used[f.subject] = true
			continue
		}
		problems = append(problems, f.place+": "+f.problem)
	}
	for subject := range r.except {
		if !used[subject] {
			problems = append(problems, subject+" is listed as an exception and needs none; delete it from the list")
		}
	}
	sort.Strings(problems)
	return problems
}

func TestExceptionsAreUsedAndReasonsShown(t *testing.T) {
	r := rule{except: map[string]string{"a": "reason", "b": "reason"}}
	got := r.judge(1, []finding{{"a", "a:1", "bad"}, {"c", "c:2", "bad"}})
	want := []string{"b is listed as an exception and needs none; delete it from the list", "c:2: bad"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (rule{}).judge(0, nil); len(got) != 1 {
		t.Errorf("a rule without anything to look at: %q", got)
	}
}
