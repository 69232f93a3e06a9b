package policy

import (
	"net/netip"
)

// Vars resolves variables of one request, such as remote_addr or http_x_tenant.
type Vars interface {
	// Var is the value of a variable; false if the request does not have it.
	Var(name string) (string, bool)
}

// Template is text with variables: "$a", "${a}", "${a ?? default}".
type Template struct {
	parts []part
}

type part struct {
	text     string // literal, or the name of a variable
	variable bool
	fallback string
	hasDef   bool
}

// Key is what a limit counts by: one or several templates, joined so that different
// values never make the same key.
type Key struct {
	Parts []Template
}

// Bypass lets requests through uncounted: whose peer lies in Prefix, or whose variable
// Var has the value Value.
type Bypass struct {
	Prefix     netip.Prefix
	Var, Value string
}
