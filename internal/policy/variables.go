package policy

import (
	"slices"
	"strings"
)

// variables are those that every gateway resolves, in the names of nginx and APISIX.
var variables = []string{
	"args",           // the query string
	"consumer_name",  // who the request comes from, by key-auth or a trusted header
	"content_length", // of the request
	"content_type",   // of the request
	"host",           // the host asked for, lower case, without the port
	"hostname",       // this machine
	"is_args",        // "?" where there is a query string
	"query_string",   // args
	"realip_remote_addr",
	"remote_addr", // the client's address behind trusted proxies
	"remote_port",
	"request_method",
	"request_uri", // path and query as sent
	"route_id",
	"route_name",
	"scheme",
	"server_addr",
	"server_port",
	"server_protocol",
	"uri", // the path, decoded
}

// prefixes begin the names of families of variables; the rest names the item.
var prefixes = []string{
	"arg_",    // a query argument
	"cookie_", // a cookie
	"http_",   // a request header, lower case, - written as _
}

// Known reports whether a variable of that name can have a value at all.
func Known(name string) bool {
	if slices.Contains(variables, name) {
		return true
	}
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) && len(name) > len(p) {
			return true
		}
	}
	return false
}

// Names are the known variables, families as their prefix and a *, sorted.
func Names() []string {
	names := slices.Clone(variables)
	for _, p := range prefixes {
		names = append(names, p+"*")
	}
	slices.Sort(names)
	return names
}
