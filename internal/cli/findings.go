package cli

import (
	"fmt"
	"io"

	"github.com/escapement-io/escapement/internal/config"
)

// printFindings writes each finding as a line with its place, and what to do below it.
func printFindings(w io.Writer, findings []config.Finding) {
	names := [...]string{config.Error: "error", config.Warning: "warning", config.Dropped: "dropped"}
	for _, f := range findings {
		fmt.Fprintf(w, "%s:%d:%d: %s: %s: %s\n", f.File, f.Line, f.Col, names[f.Severity], f.Path, f.Problem)
		if f.Hint != "" {
			fmt.Fprintf(w, "    %s\n", f.Hint)
		}
	}
}
