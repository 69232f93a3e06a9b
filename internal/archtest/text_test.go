package archtest

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"
)

// The words these rules look for are put together here, so that this file has none of
// them.
var (
	unfinished = regexp.MustCompile(`\b(` + strings.Join([]string{"TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"}, "|") + `)\b`)

	// A path that only one machine has: at the start of a word, not inside of a URL.
	machinePath = regexp.MustCompile(`(^|[\s"'=(:,` + "`" + `])(/(work|root|tmp|home/\w+|Users/\w+)/|[A-Z]:\\)`)
	outside     = regexp.MustCompile(`\.\./shared\b`)

	registry = regexp.MustCompile(`\b(` + strings.Join([]string{
		`proxy\.golang\.` + `org`, `sum\.golang\.` + `org`, `goproxy\.` + `(io|cn)`, `registry\.npmjs\.` + `org`,
		`(files\.)?pypi\.` + `org`, `pythonhosted\.` + `org`, `(index|static)\.crates\.` + `io`,
		`(deb|security)\.debian\.` + `org`, `archive\.ubuntu\.` + `com`, `registry-1\.docker\.` + `io`,
	}, "|") + `)\b`)
)

// matches finds each line of the text in which one of the patterns occurs.
func matches(name, text string, patterns ...*regexp.Regexp) []finding {
	var found []finding
	for i, line := range strings.Split(text, "\n") {
		for _, p := range patterns {
			if m := p.FindString(line); m != "" {
				found = append(found, finding{name, fmt.Sprintf("%s:%d", name, i+1), fmt.Sprintf("%q", strings.TrimSpace(m))})
			}
		}
	}
	return found
}

var finished = rule{
	why: "what is not done belongs in an issue, not in a comment that nobody reads again",
}

func TestNothingIsLeftUnfinished(t *testing.T) {
	r := open(t)
	var found []finding
	for name, text := range r.texts {
		found = append(found, matches(name, text, unfinished)...)
	}
	finished.enforce(t, len(r.texts), found)
}

var selfContained = rule{
	why: "the repository builds on any machine: no paths of one machine, no package registries, nothing outside the checkout",
}

func TestSelfContained(t *testing.T) {
	r := open(t)
	var found []finding
	for name, text := range r.texts {
		found = append(found, matches(name, text, machinePath, outside, registry)...)
	}
	selfContained.enforce(t, len(r.texts), found)
}

func TestPatternsAreFound(t *testing.T) {
	for line, want := range map[string]int{
		"// " + "TO" + "DO: later":                             1,
		"cat /" + "tmp/x":                                      1,
		`dir = "/` + `home/ann/src"`:                           1,
		"see ../" + "shared/notes":                             1,
		"GOPROXY=https://proxy.golang." + "org":                1,
		"https://example.org/home/ann/, mktemp -d, uri: /home": 0,
		"toDoList, a method called hack":                       0,
	} {
		if got := matches("x", line, unfinished, machinePath, outside, registry); len(got) != want {
			t.Errorf("%s: %v, want %d", line, got, want)
		}
	}
}

var linksResolve = rule{
	why: "a document that points nowhere costs every reader the search that its author saved",
}

var (
	inlineLink = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)`)
	reference  = regexp.MustCompile(`^\s{0,3}\[[^\]]+\]:\s*<?([^\s>]+)`)
	codeSpan   = regexp.MustCompile("`[^`]*`")
	scheme     = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
	notInID    = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// prose calls f with each line of a Markdown text outside of code blocks.
func prose(text string, f func(number int, line string)) {
	fence := ""
	for i, line := range strings.Split(text, "\n") {
		switch trimmed := strings.TrimSpace(line); {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			fence = trimmed[:3]
		default:
			f(i+1, line)
		}
	}
}

// anchors are the fragments a Markdown text can be linked by, as GitHub makes them.
func anchors(text string) map[string]bool {
	ids, times := map[string]bool{}, map[string]int{}
	prose(text, func(_ int, line string) {
		title := strings.TrimLeft(line, "#")
		if title == line || len(line)-len(title) > 6 || !strings.HasPrefix(title, " ") {
			return
		}
		id := strings.ReplaceAll(notInID.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-")
		n := times[id]
		times[id]++
		if n > 0 {
			id = fmt.Sprintf("%s-%d", id, n)
		}
		ids[id] = true
	})
	return ids
}

// deadLinks finds links of one Markdown file to files and headings that do not exist.
func deadLinks(texts map[string]string, exists func(string) bool, name string) (links int, found []finding) {
	check := func(number int, target string) {
		if scheme.MatchString(target) {
			return
		}
		links++
		file, fragment, _ := strings.Cut(target, "#")
		to := name
		if file != "" {
			to = path.Join(path.Dir(name), file)
		}
		place := fmt.Sprintf("%s:%d", name, number)
		if !exists(to) {
			found = append(found, finding{name, place, target + " does not exist"})
		} else if fragment != "" && strings.HasSuffix(to, ".md") && !anchors(texts[to])[fragment] {
			found = append(found, finding{name, place, to + " has no heading #" + fragment})
		}
	}
	prose(texts[name], func(number int, line string) {
		line = codeSpan.ReplaceAllString(line, "")
		for _, m := range inlineLink.FindAllStringSubmatch(line, -1) {
			check(number, m[1])
		}
		if m := reference.FindStringSubmatch(line); m != nil {
			check(number, m[1])
		}
	})
	return links, found
}

// has reports whether a file or folder is part of the repository.
func (r *repo) has(name string) bool {
	if _, ok := r.names[name]; ok {
		return true
	}
	for n := range r.names {
		if strings.HasPrefix(n, name+"/") {
			return true
		}
	}
	return name == "."
}

func TestMarkdownLinks(t *testing.T) {
	r := open(t)
	var found []finding
	n := 0
	for name := range r.texts {
		if strings.HasSuffix(name, ".md") {
			links, dead := deadLinks(r.texts, r.has, name)
			n += links
			found = append(found, dead...)
		}
	}
	linksResolve.enforce(t, n, found)
}

func TestDeadLinksAreFound(t *testing.T) {
	texts := map[string]string{
		"docs/a.md": "[ok](b.md) [ok](b.md#two-words) [ok](#here) [out](https://example.org/x)\n# Here\n" +
			"`[code](no.md)`\n```\n[code](no.md)\n```\n[up](../README.md \"title\")\n[ref]: b.md#two-words-1\n" +
			"[dead](c.md) [dead](b.md#three) [dead](../b.md)\n[ref]: ../no.md\n",
		"docs/b.md": "## Two `words`!\n## Two words\n",
		"README.md": "",
	}
	exists := func(name string) bool { _, ok := texts[name]; return ok }
	links, found := deadLinks(texts, exists, "docs/a.md")
	if links != 9 || len(found) != 4 {
		t.Errorf("%d links, dead: %v", links, found)
	}
}

var tableOfPackages = rule{
	why: "the table of packages in ARCHITECTURE.md is where a newcomer starts",
}

var tableRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

func TestTableOfPackages(t *testing.T) {
	r := open(t)
	rows := tableRow.FindAllStringSubmatch(r.texts["ARCHITECTURE.md"], -1)
	var found []finding
	for _, m := range rows {
		if dir := m[1]; dir != "escapement" && !r.has(dir) {
			found = append(found, finding{dir, "ARCHITECTURE.md", dir + " stands in the table and there is no such folder"})
		}
	}
	tableOfPackages.enforce(t, len(rows), found)
}
