package httpretry

import "strings"

// member is an item of a structured field list (RFC 9651), as far as RateLimit needs it.
type member struct {
	named  bool // the item is a String
	params []param
}

type param struct {
	key     string
	integer int64
	valid   bool // the value is an Integer of 0 or more
}

// integer is the value of a parameter; of several with one key the last counts.
func (m member) integer(key string) (int64, bool) {
	for i := len(m.params) - 1; i >= 0; i-- {
		if p := m.params[i]; p.key == key {
			return p.integer, p.valid
		}
	}
	return 0, false
}

// list is what of a field has not been read yet.
type list struct{ rest string }

// parseList reads a whole List. As the standard asks, one mistake makes all of it void.
func parseList(field string) ([]member, bool) {
	l := list{strings.Trim(field, " ")}
	var members []member
	for l.rest != "" {
		m, ok := l.member()
		if !ok || len(members) == maxMembers {
			return nil, false
		}
		members = append(members, m)
		l.skip(" \t")
		if l.rest == "" {
			return members, true
		}
		if !l.take(',') {
			return nil, false
		}
		l.skip(" \t")
		if l.rest == "" {
			return nil, false
		}
	}
	return members, true
}

func (l *list) peek() byte {
	if l.rest == "" {
		return 0
	}
	return l.rest[0]
}

func (l *list) take(c byte) bool {
	if l.peek() != c || c == 0 {
		return false
	}
	l.rest = l.rest[1:]
	return true
}

func (l *list) skip(set string) { l.rest = strings.TrimLeft(l.rest, set) }

// while takes the longest prefix of bytes that in allows.
func (l *list) while(in func(c byte) bool) string {
	n := 0
	for n < len(l.rest) && in(l.rest[n]) {
		n++
	}
	s := l.rest[:n]
	l.rest = l.rest[n:]
	return s
}

// member is an item or an inner list, with parameters.
func (l *list) member() (member, bool) {
	var m member
	if l.take('(') {
		if !l.inner() {
			return m, false
		}
	} else {
		m.named = l.peek() == '"'
		if _, ok := l.bare(); !ok {
			return m, false
		}
	}
	var ok bool
	m.params, ok = l.parameters()
	return m, ok
}

// inner reads an inner list behind its opening parenthesis.
func (l *list) inner() bool {
	for {
		l.skip(" ")
		if l.take(')') {
			return true
		}
		if _, ok := l.bare(); !ok {
			return false
		}
		if _, ok := l.parameters(); !ok {
			return false
		}
		if c := l.peek(); c != ' ' && c != ')' {
			return false
		}
	}
}

func (l *list) parameters() ([]param, bool) {
	var params []param
	for l.take(';') {
		l.skip(" ")
		if c := l.peek(); c != '*' && !lower(c) {
			return nil, false
		}
		p := param{key: l.while(func(c byte) bool { return lower(c) || digit(c) || strings.IndexByte("_-.*", c) >= 0 })}
		if l.take('=') {
			n, ok := l.bare()
			if !ok {
				return nil, false
			}
			p.integer, p.valid = n.value, n.integer && n.value >= 0
		}
		params = append(params, p)
	}
	return params, true
}

// number is a bare item, of which only integers have a value.
type number struct {
	integer bool
	value   int64
}

// bare reads a bare item of any type.
func (l *list) bare() (number, bool) {
	switch c := l.peek(); {
	case c == '"':
		return number{}, l.text()
	case c == '-' || digit(c):
		return l.number()
	case c == '*' || letter(c):
		l.while(func(c byte) bool { return letter(c) || digit(c) || strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0 })
		return number{}, true
	case l.take(':'):
		l.while(func(c byte) bool { return letter(c) || digit(c) || strings.IndexByte("+/=", c) >= 0 })
		return number{}, l.take(':')
	case l.take('?'):
		return number{}, l.take('0') || l.take('1')
	case l.take('@'):
		n, ok := l.number()
		return number{}, ok && n.integer
	case l.take('%'):
		return number{}, l.text()
	}
	return number{}, false
}

// text reads a String, or a Display String behind its percent sign.
func (l *list) text() bool {
	if !l.take('"') {
		return false
	}
	for l.rest != "" {
		c := l.rest[0]
		l.rest = l.rest[1:]
		switch {
		case c == '"':
			return true
		case c == '\\':
			if !l.take('"') && !l.take('\\') {
				return false
			}
		case c < 0x20 || c > 0x7e:
			return false
		}
	}
	return false
}

// number reads an Integer of at most 15 digits or a Decimal of at most 12 and 3.
func (l *list) number() (number, bool) {
	negative := l.take('-')
	whole := l.while(digit)
	n, ok := digits(whole)
	if !ok || len(whole) > 15 {
		return number{}, false
	}
	if l.take('.') {
		fraction := l.while(digit)
		return number{}, len(whole) <= 12 && len(fraction) >= 1 && len(fraction) <= 3
	}
	if negative {
		n = -n
	}
	return number{integer: true, value: n}, true
}

func digit(c byte) bool  { return c >= '0' && c <= '9' }
func lower(c byte) bool  { return c >= 'a' && c <= 'z' }
func letter(c byte) bool { return lower(c) || c >= 'A' && c <= 'Z' }
