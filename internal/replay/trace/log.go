package trace

import "bytes"

// The fields of an access log, in the names of nginx.
const (
	logAddr = iota
	logIdent
	logUser
	logTime
	logRequest
	logStatus
	logBytes
	logReferer
	logAgent
	logMethod
	logURI
	logPath
	logProtocol
	logFields
)

var logNames = [logFields]string{
	logAddr: "remote_addr", logIdent: "ident", logUser: "remote_user", logTime: "time_local",
	logRequest: "request", logStatus: "status", logBytes: "body_bytes_sent",
	logReferer: "http_referer", logAgent: "http_user_agent",
	logMethod: "request_method", logURI: "request_uri", logPath: "uri", logProtocol: "server_protocol",
}

// log reads the common format,
//
//	192.0.2.1 - frank [10/Oct/2026:13:55:36 -0700] "GET /a?b HTTP/1.1" 200 2326
//
// or the combined one, which adds the referer and the user agent in quotes. More fields
// may follow.
func (p *parser) log(line []byte) Fault {
	var v [logFields][]byte
	if !splitLog(line, &v) {
		return BadLog
	}
	for i, to := range p.layout.columns {
		if to >= 0 {
			p.values[to] = v[i]
		}
	}
	return Fine
}

func splitLog(line []byte, v *[logFields][]byte) bool {
	var ok bool
	if v[logAddr], line, ok = cutByte(line, ' '); !ok || len(v[logAddr]) == 0 {
		return false
	}
	if v[logIdent], line, ok = cutByte(line, ' '); !ok {
		return false
	}
	i := bytes.IndexByte(line, '[')
	if i < 1 || line[i-1] != ' ' {
		return false
	}
	v[logUser] = line[:i-1]
	if v[logTime], line, ok = cutByte(line[i+1:], ']'); !ok {
		return false
	}
	if v[logRequest], line, ok = cutQuoted(line); !ok {
		return false
	}
	if len(line) == 0 || line[0] != ' ' {
		return false
	}
	v[logStatus], line, _ = cutByte(line[1:], ' ')
	if len(v[logStatus]) != 3 {
		return false
	}
	v[logBytes], line, ok = cutByte(line, ' ')
	if len(v[logBytes]) == 0 {
		return false
	}
	splitRequest(v)
	if !ok {
		return true
	}
	if v[logReferer], line, ok = cutQuoted(line); ok {
		v[logAgent], _, _ = cutQuoted(line)
	}
	return true
}

// splitRequest cuts "GET /a?b HTTP/1.1". What is not of that form has an empty rest.
func splitRequest(v *[logFields][]byte) {
	rest := v[logRequest]
	v[logMethod], rest, _ = cutByte(rest, ' ')
	v[logURI], v[logProtocol] = rest, rest[len(rest):]
	if i := bytes.LastIndexByte(rest, ' '); i >= 0 {
		v[logURI], v[logProtocol] = rest[:i], rest[i+1:]
	}
	v[logPath], _, _ = cutByte(v[logURI], '?')
}

// cutByte cuts around the first c; without one all is before.
func cutByte(s []byte, c byte) (before, after []byte, found bool) {
	if i := bytes.IndexByte(s, c); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, s[len(s):], false
}

// cutQuoted cuts out the quoted text that s begins with, after spaces. A backslash
// before a quote keeps it; escapes stay as they stand.
func cutQuoted(s []byte) (text, after []byte, ok bool) {
	for len(s) > 0 && s[0] == ' ' {
		s = s[1:]
	}
	if len(s) == 0 || s[0] != '"' {
		return nil, s, false
	}
	s = s[1:]
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return s[:i], s[i+1:], true
		}
	}
	return nil, nil, false
}
