package cli

import (
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// VersionCmd is escapement version.
type VersionCmd struct {
	JSON bool `help:"Print one JSON document."`
}

// Run prints what this binary was built from.
func (c *VersionCmd) Run(out *Output) error {
	v := struct {
		Version  string `json:"version"`
		Revision string `json:"revision"`
		Go       string `json:"go"`
		Platform string `json:"platform"`
	}{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if b, ok := debug.ReadBuildInfo(); ok {
		if b.Main.Version != "" {
			v.Version = b.Main.Version
		}
		for _, s := range b.Settings {
			if s.Key == "vcs.revision" {
				v.Revision = s.Value
			}
		}
	}
	if c.JSON {
		return out.JSON(v)
	}
	known := slices.DeleteFunc([]string{v.Version, v.Revision, v.Go, v.Platform}, func(s string) bool { return s == "" })
	out.Printf("escapement %s\n", strings.Join(known, " "))
	return nil
}
