package cli

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/escapement-io/escapement/internal/config"
)

// CheckCmd is escapement check.
type CheckCmd struct {
	Files             []string `arg:"" optional:"" name:"file" help:"Configuration: native YAML or JSON, an APISIX standalone file, or plugins alone."`
	JSON              bool     `name:"json" help:"Print one JSON document."`
	IgnoreUnsupported bool     `help:"Leave out what is not supported instead of refusing the file; what was left out is listed."`
	Schema            bool     `help:"Print the JSON Schema of the native form instead."`
}

// checked is one file of the JSON document.
type checked struct {
	File     string           `json:"file"`
	OK       bool             `json:"ok"`
	Findings []map[string]any `json:"findings"`
	Limits   []config.Summary `json:"limits"`
	Routes   int              `json:"routes"`
}

// Run prints every problem of the files with place and remedy, then what each limit
// enforces. Exit 0: nothing but advice, 1: a mistake, 3: a file could not be read.
func (c *CheckCmd) Run(out *Output) error {
	if c.Schema {
		out.Printf("%s", config.Schema)
		return nil
	}
	if len(c.Files) == 0 {
		return usage("check: no file\n  name the configurations to check")
	}
	var files []checked
	failed := false
	for _, name := range c.Files {
		data, err := config.ReadFile(name)
		if err != nil {
			return fmt.Errorf("check: %w\n  name a file that exists and can be read", err)
		}
		cfg, findings := config.Parse(name, data, config.Options{IgnoreUnsupported: c.IgnoreUnsupported})
		f := checked{File: name, OK: cfg != nil, Findings: []map[string]any{}, Limits: []config.Summary{}}
		failed = failed || cfg == nil
		for _, finding := range findings {
			f.Findings = append(f.Findings, finding.Document())
		}
		if cfg != nil {
			f.Routes = len(cfg.Routes)
			for _, l := range cfg.Limits {
				f.Limits = append(f.Limits, l.Summary())
			}
		}
		files = append(files, f)
		if !c.JSON {
			printChecked(out, findings, data, &f)
		}
	}
	if c.JSON {
		if err := out.JSON(map[string]any{"files": files}); err != nil {
			return fmt.Errorf("check: %w", err)
		}
	}
	if failed {
		return found()
	}
	return nil
}

func printChecked(out *Output, findings []config.Finding, data []byte, f *checked) {
	lines := strings.Split(strings.TrimPrefix(string(data), "\uFEFF"), "\n")
	errors, others := 0, 0
	for _, finding := range findings {
		if finding.Severity == config.Error {
			errors++
		} else {
			others++
		}
		out.Printf("%s\n", finding)
		if finding.Hint != "" {
			out.Printf("  %s\n", finding.Hint)
		}
		if n := finding.Line; n >= 1 && n <= len(lines) && !finding.Hidden && !private.MatchString(lines[n-1]) {
			printExcerpt(out, lines[finding.Line-1], finding.Line, finding.Col)
		}
	}
	for _, l := range f.Limits {
		out.Printf("%s\n", l)
	}
	if f.OK {
		out.Printf("%s: fine: %s, %s, %s\n", f.File, plural(len(f.Limits), "limit"), plural(f.Routes, "route"), plural(others, "remark"))
	} else {
		out.Printf("%s: refused: %s, %s\n", f.File, plural(errors, "mistake"), plural(others, "remark"))
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// private tells lines that may hold a secret under a key that was mistyped.
var private = regexp.MustCompile(`(?i)pass?w|secret|credential|api_?key|://[^ ]*@`)

// excerptWidth is how many characters of a line are shown.
const excerptWidth = 100

// printExcerpt shows the line of a finding with a caret below the place, cut to a window
// around it where the line is long. What a terminal would obey is not sent to it.
func printExcerpt(out *Output, line string, number, col int) {
	if !utf8.ValidString(line) {
		return
	}
	runes := []rune(strings.TrimRight(line, "\r"))
	at := min(max(col-1, 0), len(runes))
	from := max(min(at-excerptWidth/2, len(runes)-excerptWidth), 0)
	to := min(from+excerptWidth, len(runes))
	show := func(part []rune, keep bool) string {
		return strings.Map(func(r rune) rune {
			switch {
			case r == '\t' || keep && r >= ' ' && (r < 0x7f || r >= 0xa0):
				return r
			}
			return ' '
		}, string(part))
	}
	out.Printf("  %5d | %s\n", number, show(runes[from:to], true))
	out.Printf("        | %s^\n", show(runes[from:at], false))
}
