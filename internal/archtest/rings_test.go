package archtest

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// kits stand beside the rings: packages for tests. They may import each other and rings
// up to the number.
var kits = map[string]int{
	"algo/algomodel":     0,
	"clocktest":          1,
	"storetest":          1,
	"internal/redistest": 3,
}

// sideways are the imports within a ring.
var sideways = rule{
	why: "an import within a ring or outwards makes two packages one; move what both need to a lower ring, " +
		"or list the exception with its reason",
	except: map[string]string{
		"lease -> internal/ledgers":          "what the shells of both kinds of ledger share needs root and clock, and they are stores; half a ring would be no clearer",
		"batch -> internal/ledgers":          "likewise",
		"internal/config -> internal/policy": "a checked configuration is made of policies; half a ring would be no clearer",
	},
}

var ringLine = regexp.MustCompile(`^\s*(?:ring (\d+))?\s+(\S.*)$`)

// picture reads the rings from ARCHITECTURE.md, so that there is one table of them: unit
// to ring. A unit is a package with all that lies below its folder. What stands above the
// highest ring is outermost.
func picture(doc string) (map[string]int, error) {
	_, rest, _ := strings.Cut(doc, "```\n")
	block, _, ok := strings.Cut(rest, "```")
	if !ok {
		return nil, fmt.Errorf("ARCHITECTURE.md has no picture of the rings in a code block")
	}
	units, last := map[string]int{}, -1
	for _, line := range strings.Split(strings.TrimRight(block, "\n"), "\n") {
		m := ringLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("ARCHITECTURE.md: %q is not a line of rings", line)
		}
		ring := 1 << 10
		if m[1] != "" {
			ring, _ = strconv.Atoi(m[1])
			if last >= 0 && ring != last-1 {
				return nil, fmt.Errorf("ARCHITECTURE.md: ring %d stands below ring %d", ring, last)
			}
			last = ring
		}
		for _, unit := range strings.Fields(m[2]) {
			if unit == "(root)" {
				continue
			}
			if unit == "escapement" {
				unit = "."
			}
			units[unit] = ring
		}
	}
	if last != 0 {
		return nil, fmt.Errorf("ARCHITECTURE.md: the innermost ring is %d, want 0", last)
	}
	return units, nil
}

// unitOf is the longest unit that holds the package in dir.
func unitOf[V any](units map[string]V, dir string) (string, bool) {
	for d := dir; ; d = path.Dir(d) {
		if _, ok := units[d]; ok && (d != "." || dir == ".") {
			return d, true
		}
		if d == "." {
			return "", false
		}
	}
}

// checkImport says what is wrong with an import between two folders, or nothing.
func checkImport(units map[string]int, from, to string, test bool) string {
	if kit, ok := unitOf(kits, to); ok {
		if _, fromKit := unitOf(kits, from); test || fromKit {
			return ""
		}
		return fmt.Sprintf("imports %s, a kit for tests", kit)
	}
	target, ok := unitOf(units, to)
	if !ok || test {
		return "" // a package without a ring is reported by TestEveryPackageHasARing
	}
	if kit, ok := unitOf(kits, from); ok {
		if units[target] > kits[kit] {
			return fmt.Sprintf("imports %s of ring %d, and a kit of its kind stops at ring %d", to, units[target], kits[kit])
		}
		return ""
	}
	source, ok := unitOf(units, from)
	if !ok || source == target || units[target] < units[source] {
		return ""
	}
	return fmt.Sprintf("imports %s: ring %d imports ring %d", to, units[source], units[target])
}

func TestRings(t *testing.T) {
	r := open(t)
	units, err := picture(r.texts["ARCHITECTURE.md"])
	if err != nil {
		t.Fatal(err)
	}
	var found []finding
	n := 0
	for name, f := range r.files {
		if inTestdata(name) {
			continue
		}
		from := path.Dir(name)
		for _, imp := range f.Imports {
			p, _ := strconv.Unquote(imp.Path.Value)
			if p != module && !strings.HasPrefix(p, module+"/") {
				continue
			}
			n++
			to := strings.TrimPrefix(strings.TrimPrefix(p, module), "/")
			if to == "" {
				to = "."
			}
			if problem := checkImport(units, from, to, isTest(name)); problem != "" {
				source, _ := unitOf(units, from)
				target, _ := unitOf(units, to)
				found = append(found, finding{source + " -> " + target, r.fset.Position(imp.Pos()).String(), problem})
			}
		}
	}
	sideways.enforce(t, n, found)
}

var everyRing = rule{
	why: "the picture in ARCHITECTURE.md is the import rule; add the package where it belongs, or to the kits of this test",
	except: map[string]string{
		"tools/skewrun": "imports nothing of ours; a tool of its own that tests run",
	},
}

func TestEveryPackageHasARing(t *testing.T) {
	r := open(t)
	units, err := picture(r.texts["ARCHITECTURE.md"])
	if err != nil {
		t.Fatal(err)
	}
	var found []finding
	used, seen := map[string]bool{}, map[string]bool{}
	for name, f := range r.files {
		dir := path.Dir(name)
		// A folder of nothing but tests and a package comment imports and offers nothing.
		if inTestdata(name) || isTest(name) || len(f.Decls) == 0 && f.Doc != nil && alone(r, dir) || seen[dir] {
			continue
		}
		seen[dir] = true
		unit, ok := unitOf(kits, dir)
		if !ok {
			unit, ok = unitOf(units, dir)
		}
		if used[unit] = true; !ok {
			found = append(found, finding{dir, dir, "the package has no ring"})
		}
	}
	for unit := range units {
		if !used[unit] {
			found = append(found, finding{unit, "ARCHITECTURE.md", unit + " stands in the picture and there is no such package"})
		}
	}
	for kit := range kits {
		if !used[kit] {
			found = append(found, finding{kit, "kits", kit + " is listed and there is no such package"})
		}
	}
	everyRing.enforce(t, len(seen), found)
}

// alone reports whether a folder has only one file that is not a test.
func alone(r *repo, dir string) bool {
	n := 0
	for name := range r.files {
		if path.Dir(name) == dir && !isTest(name) {
			n++
		}
	}
	return n == 1
}

func TestPictureAndImportsAreJudged(t *testing.T) {
	units, err := picture("x\n```\n    cmd/x\n ring 2   b\n ring 1   escapement (root)   clock\n ring 0   algo\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		from, to string
		test, ok bool
	}{
		{"b", ".", false, true},
		{"b/below", "algo", false, true},
		{"b/below", "b", false, true},
		{"cmd/x", "b", false, true},
		{".", "clock", false, false},
		{"clock", ".", false, false},
		{"algo", "b", false, false},
		{"algo", "b", true, true},
		{"b", "clocktest", false, false},
		{"b", "clocktest", true, true},
		{"clocktest", "clock", false, true},
		{"clocktest", "b", false, false},
		{"clocktest", "algo/algomodel", false, true},
	} {
		if problem := checkImport(units, tt.from, tt.to, tt.test); (problem == "") != tt.ok {
			t.Errorf("%s -> %s, test %v: %q", tt.from, tt.to, tt.test, problem)
		}
	}
	for _, bad := range []string{"", "```\n ring 1 a\n```\n", "```\n ring 2 a\n ring 0 b\n```\n"} {
		if units, err := picture(bad); err == nil {
			t.Errorf("%q is read as %v", bad, units)
		}
	}
}
