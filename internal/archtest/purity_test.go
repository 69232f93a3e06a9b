package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var clockReads = rule{
	why: "a decision that reads a clock of its own is the mistake this module exists to rule out; " +
		"take instants as arguments, ask a store, or read through package clock",
	except: map[string]string{
		"tools/skewrun/testdata/demo/main.go": "the program that shows how skewrun steps its clock",
	},
}

// readers are the functions that read a clock, by import path.
var readers = map[string][]string{
	"time":                  {"Now", "Since", "Until"},
	"syscall":               {"Gettimeofday", "Time", "Adjtimex"},
	"golang.org/x/sys/unix": {"ClockGettime", "Gettimeofday", "Time", "Adjtimex", "ClockAdjtime"},
}

// readsOfClocks finds uses of readers under whatever name their package has in the file.
func readsOfClocks(f *ast.File) []ast.Node {
	names := map[string][]string{}
	var found []ast.Node
	for _, imp := range f.Imports {
		p, _ := strconv.Unquote(imp.Path.Value)
		banned, ok := readers[p]
		switch {
		case !ok:
		case imp.Name == nil:
			names[path.Base(p)] = banned
		case imp.Name.Name == ".":
			found = append(found, imp)
		default:
			names[imp.Name.Name] = banned
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		// An identifier with an object is a variable that hides the package.
		if x, ok := sel.X.(*ast.Ident); ok && x.Obj == nil && slices.Contains(names[x.Name], sel.Sel.Name) {
			found = append(found, sel)
		}
		return true
	})
	for _, g := range f.Comments {
		for _, c := range g.List {
			if strings.HasPrefix(c.Text, "//go:linkname ") && strings.Contains(c.Text, "time") {
				found = append(found, c)
			}
		}
	}
	return found
}

func TestOnlyClockReadsClocks(t *testing.T) {
	r := open(t)
	var found []finding
	for name, f := range r.files {
		if path.Dir(name) == "clock" {
			continue
		}
		for _, n := range readsOfClocks(f) {
			found = append(found, finding{name, r.fset.Position(n.Pos()).String(), "reads a clock"})
		}
	}
	clockReads.enforce(t, len(r.files), found)
}

func parse(t *testing.T, src string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestReadsOfClocksAreFound(t *testing.T) {
	for src, want := range map[string]int{
		`package x; import "time"; var t = time.Now()`:                              1,
		`package x; import t "time"; var f = t.Since`:                               1,
		`package x; import . "time"; var t = Now()`:                                 1,
		`package x; import "golang.org/x/sys/unix"; var f = unix.ClockGettime`:      1,
		"package x\n//go:linkname nanotime runtime.nanotime\nfunc nanotime() int64": 1,
		`package x; import "time"; var d = time.Second`:                             0,
		`package x; import "time"; var _ time.Time; func f(time c) { time.Now() }`:  0,
		`package x; import "other/time2"; var t = time2.Now()`:                      0,
	} {
		if got := readsOfClocks(parse(t, src)); len(got) != want {
			t.Errorf("%s: %d found, want %d", src, len(got), want)
		}
	}
}

var exactCore = rule{
	why: "algo is exact and pure: every store, the simulator and other languages reproduce it bit by bit from integers alone",
}

// coreImports is all that package algo may import.
var coreImports = []string{"errors", "fmt", "math/bits"}

// impurities finds imports that are not allowed and floats, by type or literal.
func impurities(f *ast.File) map[ast.Node]string {
	found := map[ast.Node]string{}
	for _, imp := range f.Imports {
		if p, _ := strconv.Unquote(imp.Path.Value); !slices.Contains(coreImports, p) || imp.Name != nil {
			found[imp] = "imports " + imp.Path.Value + ", not one of " + strings.Join(coreImports, ", ")
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if n.Name == "float32" || n.Name == "float64" {
				found[n] = "uses " + n.Name
			}
		case *ast.BasicLit:
			if n.Kind == token.FLOAT || n.Kind == token.IMAG {
				found[n] = "uses the float " + n.Value
			}
		}
		return true
	})
	return found
}

func TestCoreIsExactAndPure(t *testing.T) {
	r := open(t)
	var found []finding
	n := 0
	for name, f := range r.files {
		if path.Dir(name) != "algo" || isTest(name) {
			continue
		}
		n++
		for node, problem := range impurities(f) {
			found = append(found, finding{name, r.fset.Position(node.Pos()).String(), problem})
		}
	}
	exactCore.enforce(t, n, found)
}

func TestImpuritiesAreFound(t *testing.T) {
	for src, want := range map[string]int{
		`package x; import "time"; var _ time.Duration`:                       1,
		`package x; var f float64`:                                            1,
		`package x; const c = 1.5`:                                            1,
		`package x; import "math"; var n = int(math.Sqrt(4))`:                 1,
		`package x; import b "math/bits"; var n = b.UintSize`:                 1,
		`package x; import "math/bits"; const n int64 = bits.UintSize + 0x10`: 0,
	} {
		if got := impurities(parse(t, src)); len(got) != want {
			t.Errorf("%s: %v, want %d", src, got, want)
		}
	}
}

var lightPackages = rule{
	why: "who imports the library must not inherit a gateway's dependencies; these packages pull in the standard library and golang.org/x/sys",
}

// light are the packages held to that.
var light = []string{".", "./algo", "./clock", "./memstore", "./httplimit", "./httpretry"}

func TestLightPackages(t *testing.T) {
	r := open(t)
	cmd := exec.Command("go", append([]string{"list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}"}, light...)...)
	cmd.Dir = r.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, &stderr)
	}
	deps := strings.Fields(string(out))
	lightPackages.enforce(t, len(deps), heavy(deps))
}

func heavy(deps []string) []finding {
	var found []finding
	for _, p := range deps {
		if p != module && !strings.HasPrefix(p, module+"/") && !strings.HasPrefix(p, "golang.org/x/sys/") {
			found = append(found, finding{p, strings.Join(light, " "), "depend on " + p})
		}
	}
	return found
}

func TestHeavyPackagesAreFound(t *testing.T) {
	if got := heavy([]string{module, module + "/algo", "golang.org/x/sys/unix", "example.org/heavy"}); len(got) != 1 {
		t.Errorf("%v", got)
	}
}
