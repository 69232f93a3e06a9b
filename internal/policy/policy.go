package policy

import (
	"net/netip"
)

// Vars resolves variables of one request, such as remote_addr or http_x_tenant.
type Vars interface {
	// Var is the value of a variable; false if the request does not have it.
	Var(name string) (string, bool)
}

// Bypass lets requests through uncounted: whose peer lies in Prefix, or whose variable
// Var has the value Value.
type Bypass struct {
	Prefix     netip.Prefix
	Var, Value string
}
