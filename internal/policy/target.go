package policy

import (
	"net"
	"strings"
)

// HostName is the host of a Host field: lower case, without port, brackets and trailing
// dot.
func HostName(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.IndexByte(host[i:], ']') < 0 {
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
	} else if n := len(host); n > 2 && host[0] == '[' && host[n-1] == ']' {
		host = host[1 : n-1]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// CleanPath is the path a route is matched by: dot segments resolved and runs of slashes
// merged, as the upstream may do, so that no spelling of a path escapes its limits. What
// is forwarded is the path as sent, unless it has dot segments.
func CleanPath(p string) string {
	if p == "" || p[0] != '/' {
		p = "/" + p
	}
	if isClean(p) {
		return p
	}
	segments := make([]string, 0, 16)
	parts := strings.Split(p[1:], "/")
	for i, s := range parts {
		last := i == len(parts)-1
		switch s {
		case "", ".":
			if !last {
				continue
			}
			s = ""
		case "..":
			segments = segments[:max(0, len(segments)-1)]
			if !last {
				continue
			}
			s = ""
		}
		segments = append(segments, s)
	}
	return "/" + strings.Join(segments, "/")
}

func isClean(p string) bool {
	for i := 0; i < len(p); i++ {
		if p[i] != '/' || i+1 == len(p) {
			continue
		}
		if c := p[i+1]; c == '/' || c == '.' {
			return false
		}
	}
	return true
}

// HasDots reports whether a path has segments "." or "..".
func HasDots(p string) bool {
	if isClean(p) {
		return false
	}
	for s := range strings.SplitSeq(p, "/") {
		if s == "." || s == ".." {
			return true
		}
	}
	return false
}
