package cli

import (
	"fmt"
	"io"

	"github.com/escapement-io/escapement/internal/config"
)

// printFindings writes each finding as a line with its place, and what to do below it.
func printFindings(w io.Writer, findings []config.Finding) {
	for _, f := range findings {
		fmt.Fprintln(w, f)
		if f.Hint != "" {
			fmt.Fprintf(w, "    %s\n", f.Hint)
		}
	}
}
