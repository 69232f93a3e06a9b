package trace

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds nesting within a line.
const maxDepth = 64

// json reads the members of an object. A member that is wanted must be a text or a
// number; others may be anything, and of two with one name the last counts.
func (p *parser) json(line []byte) Fault {
	s := scanner{b: line}
	s.space()
	if !s.eat('{') {
		return BadJSON
	}
	s.space()
	if s.eat('}') {
		return s.end()
	}
	for {
		s.space()
		name, ok := s.text(p)
		if !ok {
			return BadJSON
		}
		s.space()
		if !s.eat(':') {
			return BadJSON
		}
		s.space()
		if i := p.layout.field(name); i >= 0 {
			if p.values[i], ok = s.scalar(p); !ok {
				return BadJSON
			}
		} else if !s.skip(0) {
			return BadJSON
		}
		s.space()
		if s.eat('}') {
			return s.end()
		}
		if !s.eat(',') {
			return BadJSON
		}
	}
}

// scanner walks over JSON.
type scanner struct {
	b []byte
	i int
}

func (s *scanner) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\t') {
		s.i++
	}
}

func (s *scanner) eat(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) end() Fault {
	if s.space(); s.i != len(s.b) {
		return BadJSON
	}
	return Fine
}

// text reads a string; without escapes it is a piece of the line.
func (s *scanner) text(p *parser) ([]byte, bool) {
	if !s.eat('"') {
		return nil, false
	}
	start := s.i
	for ; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[start : s.i-1], true
		case c == '\\':
			return s.escaped(p, start)
		case c < 0x20:
			return nil, false
		}
	}
	return nil, false
}

// escaped reads the rest of a string that has escapes into the parser's own text.
func (s *scanner) escaped(p *parser, start int) ([]byte, bool) {
	from := len(p.text)
	p.text = append(p.text, s.b[start:s.i]...)
	for s.i < len(s.b) {
		c := s.b[s.i]
		s.i++
		switch {
		case c == '"':
			return p.text[from:], true
		case c < 0x20:
			return nil, false
		case c != '\\':
			p.text = append(p.text, c)
			continue
		}
		if s.i == len(s.b) {
			return nil, false
		}
		c = s.b[s.i]
		s.i++
		if c == 'u' {
			r, ok := s.rune()
			if !ok {
				return nil, false
			}
			p.text = utf8.AppendRune(p.text, r)
			continue
		}
		j := bytes.IndexByte([]byte(`"\/bfnrt`), c)
		if j < 0 {
			return nil, false
		}
		p.text = append(p.text, "\"\\/\b\f\n\r\t"[j])
	}
	return nil, false
}

// rune reads the digits of \u, and the second half of a surrogate pair.
func (s *scanner) rune() (rune, bool) {
	r, ok := s.hex()
	if !ok || !utf16.IsSurrogate(r) {
		return r, ok
	}
	if s.i+6 <= len(s.b) && s.b[s.i] == '\\' && s.b[s.i+1] == 'u' {
		back := s.i
		s.i += 2
		low, ok := s.hex()
		if !ok {
			return 0, false
		}
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, true
		}
		s.i = back
	}
	return utf8.RuneError, true
}

func (s *scanner) hex() (rune, bool) {
	if s.i+4 > len(s.b) {
		return 0, false
	}
	r := rune(0)
	for _, c := range s.b[s.i : s.i+4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	s.i += 4
	return r, true
}

// scalar reads a text, or a bare number or word as it stands.
func (s *scanner) scalar(p *parser) ([]byte, bool) {
	if s.i < len(s.b) && s.b[s.i] == '"' {
		return s.text(p)
	}
	return s.bare()
}

// bare reads a number, true or false; null counts as nothing.
func (s *scanner) bare() ([]byte, bool) {
	start := s.i
	for s.i < len(s.b) {
		c := s.b[s.i]
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && c != '+' && c != '.' {
			break
		}
		s.i++
	}
	v := s.b[start:s.i]
	switch {
	case len(v) == 0:
		return nil, false
	case v[0] == '-' || v[0] >= '0' && v[0] <= '9':
		return v, true
	case string(v) == "null":
		return nil, true
	}
	return v, string(v) == "true" || string(v) == "false"
}

// skip passes over any value.
func (s *scanner) skip(depth int) bool {
	if s.i == len(s.b) || depth > maxDepth {
		return false
	}
	switch s.b[s.i] {
	case '"':
		return s.skipText()
	case '{', '[':
		return s.skipNested(depth)
	}
	_, ok := s.bare()
	return ok
}

func (s *scanner) skipText() bool {
	for s.i++; s.i < len(s.b); s.i++ {
		switch s.b[s.i] {
		case '\\':
			s.i++
		case '"':
			s.i++
			return true
		}
	}
	return false
}

func (s *scanner) skipNested(depth int) bool {
	object := s.b[s.i] == '{'
	closing := s.b[s.i] + 2 // in ASCII both closing brackets stand two after the opening ones
	s.i++
	s.space()
	if s.eat(closing) {
		return true
	}
	for {
		s.space()
		if object {
			if s.i == len(s.b) || s.b[s.i] != '"' || !s.skipText() {
				return false
			}
			s.space()
			if !s.eat(':') {
				return false
			}
			s.space()
		}
		if !s.skip(depth + 1) {
			return false
		}
		s.space()
		if s.eat(closing) {
			return true
		}
		if !s.eat(',') {
			return false
		}
	}
}
