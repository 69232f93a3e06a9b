// Package tree reads YAML and JSON into nodes that know their place, and hands typed
// values out of them: every mistake becomes a finding with file, line, column and path,
// and reading goes on. Size, depth and expansion of aliases are bounded.
package tree
