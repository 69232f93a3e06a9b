package httplimit

import (
	"fmt"
	"strconv"
	"strings"
)

// item is a member of a structured-field list (RFC 9651): a String with Integers as
// parameters. Members and parameters of other types are errors: no field here has any.
type item struct {
	name   string
	params map[string]int64
}

// parseList follows the parsing algorithms of RFC 9651, section 4.2, and knows nothing of
// the code that writes.
func parseList(lines []string) ([]item, error) {
	in := strings.Join(lines, ", ")
	p := &sfv{rest: strings.Trim(in, " ")}
	var list []item
	for p.rest != "" {
		it, err := p.item()
		if err != nil {
			return nil, fmt.Errorf("%w, before %q", err, p.rest)
		}
		list = append(list, it)
		p.skip(" \t")
		if p.rest == "" {
			break
		}
		if !p.eat(',') {
			return nil, fmt.Errorf("no comma before %q", p.rest)
		}
		p.skip(" \t")
		if p.rest == "" {
			return nil, fmt.Errorf("trailing comma")
		}
	}
	return list, nil
}

type sfv struct{ rest string }

func (p *sfv) eat(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *sfv) skip(set string) { p.rest = strings.TrimLeft(p.rest, set) }

func (p *sfv) item() (item, error) {
	name, err := p.str()
	if err != nil {
		return item{}, err
	}
	it := item{name, map[string]int64{}}
	for p.eat(';') {
		p.skip(" ")
		key, err := p.key()
		if err != nil {
			return item{}, err
		}
		if !p.eat('=') {
			return item{}, fmt.Errorf("parameter %s is a boolean", key)
		}
		n, err := p.integer()
		if err != nil {
			return item{}, err
		}
		if _, twice := it.params[key]; twice {
			return item{}, fmt.Errorf("parameter %s twice", key)
		}
		it.params[key] = n
	}
	return it, nil
}

func (p *sfv) str() (string, error) {
	if !p.eat('"') {
		return "", fmt.Errorf("no string")
	}
	var b strings.Builder
	for p.rest != "" {
		c := p.rest[0]
		p.rest = p.rest[1:]
		switch {
		case c == '"':
			return b.String(), nil
		case c == '\\':
			if p.rest == "" || p.rest[0] != '"' && p.rest[0] != '\\' {
				return "", fmt.Errorf("bad escape")
			}
			c = p.rest[0]
			p.rest = p.rest[1:]
		case c < 0x20 || c > 0x7e:
			return "", fmt.Errorf("byte %#x in a string", c)
		}
		b.WriteByte(c)
	}
	return "", fmt.Errorf("string without an end")
}

func (p *sfv) key() (string, error) {
	const first, others = "abcdefghijklmnopqrstuvwxyz*", "abcdefghijklmnopqrstuvwxyz*0123456789_-."
	if p.rest == "" || !strings.Contains(first, p.rest[:1]) {
		return "", fmt.Errorf("no key")
	}
	after := strings.TrimLeft(p.rest, others)
	key := p.rest[:len(p.rest)-len(after)]
	p.rest = after
	return key, nil
}

func (p *sfv) integer() (int64, error) {
	sign := p.eat('-')
	after := strings.TrimLeft(p.rest, "0123456789")
	digits := p.rest[:len(p.rest)-len(after)]
	p.rest = after
	if digits == "" || len(digits) > 15 {
		return 0, fmt.Errorf("integer of %d digits", len(digits))
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if sign {
		n = -n
	}
	return n, err
}
