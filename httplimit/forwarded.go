package httplimit

import "strings"

// The lists are cut from the right, because that is the end the trusted proxies write:
// whatever a client sends on the left, an open quote included, cannot change how their
// elements are read.

// cutLast cuts the last element off a comma-separated list.
func cutLast(list string) (rest, last string, more bool) {
	i := strings.LastIndexByte(list, ',')
	if i < 0 {
		return "", list, false
	}
	return list[:i], list[i+1:], true
}

// cutLastElement is cutLast for a list whose elements may hold quoted strings.
func cutLastElement(list string) (rest, last string, more bool) {
	quoted := false
	for i := len(list) - 1; i >= 0; i-- {
		switch list[i] {
		case '"':
			if !escaped(list, i) {
				quoted = !quoted
			}
		case ',':
			if !quoted {
				return list[:i], list[i+1:], true
			}
		}
	}
	return "", list, false
}

// escaped reports whether an odd number of backslashes stands before s[i].
func escaped(s string, i int) bool {
	n := 0
	for i > n && s[i-n-1] == '\\' {
		n++
	}
	return n%2 == 1
}

// forwardedFor is the node of the one "for" parameter in a forwarded-element of RFC 7239.
// False if the element is malformed, has none, or has several.
func forwardedFor(element string) (node string, ok bool) {
	for rest, more := element, true; more; {
		var pair string
		pair, rest, more = cutPair(rest)
		pair = strings.Trim(pair, " \t")
		if pair == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		if !found || name == "" {
			return "", false
		}
		value, valid := unquote(value)
		if !valid {
			return "", false
		}
		if !strings.EqualFold(name, "for") {
			continue
		}
		if ok {
			return "", false
		}
		node, ok = value, true
	}
	return node, ok
}

// cutPair cuts at the first semicolon outside of quotes.
func cutPair(s string) (pair, rest string, more bool) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if quoted {
				i++
			}
		case '"':
			quoted = !quoted
		case ';':
			if !quoted {
				return s[:i], s[i+1:], true
			}
		}
	}
	return s, "", false
}

// unquote is the value of a token or quoted-string.
func unquote(s string) (value string, ok bool) {
	if s == "" || s[0] != '"' {
		return s, s != "" && !strings.ContainsAny(s, "\"\\ \t,")
	}
	if len(s) < 2 || s[len(s)-1] != '"' {
		return "", false
	}
	s = s[1 : len(s)-1]
	if strings.IndexByte(s, '\\') < 0 && strings.IndexByte(s, '"') < 0 {
		return s, true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return "", false
		case '\\':
			if i++; i == len(s) {
				return "", false
			}
		}
		b.WriteByte(s[i])
	}
	return b.String(), true
}
